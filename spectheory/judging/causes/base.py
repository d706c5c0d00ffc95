"""What a cause is: a fault of an engine, or of its counting, under which counts that were refuted are as expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spectheory.trace import Trace
from spectheory.trace.calls import CallLog

if TYPE_CHECKING:
    from spectheory.judging.standing import Counting, Standing


Reread = Callable[..., Trace]
"""Both models on the same texts with changed logits: keywords `draft_change` and `target_change`."""


@dataclass(frozen=True)
class Context:
    """What a cause may look at.

    `refuted` are the standings that are to be explained: of the stated rules, or of every rule if none fits; `others`
    are all the rest. `judge` holds the log against another trace, rule or way of counting. `reread` reads the pair
    again; None where there are no models.
    """

    log: CallLog
    trace: Trace
    counting: Counting
    refuted: Sequence[Standing]
    others: Sequence[Standing]
    judge: Callable[..., Standing]
    reread: Reread | None = None


@dataclass(frozen=True)
class Finding:
    """A cause that explains: one sentence with its numbers, the rule that it is about, and the evidence as data."""

    cause: str
    sentence: str
    rule: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cause:
    """A fault and its test.

    `explains` returns a finding where the hypothesis without the fault is refuted and the one with it is not. A right
    engine is blamed with at most the probability with which its rule is refuted
    (:data:`~spectheory.judging.standing.FALSE_ALARMS`): causes are looked for only after a refutation.
    """

    name: str
    meaning: str
    explains: Callable[[Context], Finding | None]
