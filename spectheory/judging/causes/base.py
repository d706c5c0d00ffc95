"""What a cause is: a fault of an engine, or of its counting, under which counts that were refuted are as expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spectheory.judging.counting import torn
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog

if TYPE_CHECKING:
    from spectheory.judging.counting import Counting
    from spectheory.judging.standing import Floats, Standing
    from spectheory.judging.starts import Calls


EXPLAINED = 0.05
"""Under a cause, counts have at least this p-value: the true cause is passed over with at most this probability. Fifty
times the level at which a rule is refuted, so that counts which barely refute it are no sign of every cause."""

Reread = Callable[..., Trace]
"""Both models on the same texts: with changed logits (keywords `draft_change` and `target_change`), or under another
`key`, the randomness of estimated laws."""


@dataclass(frozen=True)
class Context:
    """What a cause may look at.

    - `refuted`: the standings to be explained, of the stated rules, of every rule if none fits, or of the `served`
      ones if only others fit; `others`: the rest.
    - `judge(rule, counting, trace=None)`: how a rule, by name or by its survival ``[N, k]``, stands under a way of
      counting and on another reading of the pair.
    - `survival(rule)`: P(tau >= i) of a rule by name, ``[N, k]``; `calls`: the calls with known starts, or None.
    - `reread`: reads the pair again; None where there are no models.
    """

    log: CallLog
    trace: Trace
    counting: Counting
    refuted: Sequence[Standing]
    others: Sequence[Standing]
    judge: Callable[..., Standing]
    survival: Callable[[str], Floats]
    calls: Calls | None = None
    reread: Reread | None = None


@dataclass(frozen=True)
class Finding:
    """A cause that explains: one sentence with its numbers, the rule that it is about, and the evidence as data.

    `closeness` is that of the rule's standing under the cause; None for what is certain or has a test of its own.
    """

    cause: str
    sentence: str
    rule: str = ""
    evidence: Standing | Mapping[str, Any] = field(default_factory=dict)
    closeness: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Cause:
    """A fault and its test.

    `explains` returns a finding where the hypothesis without the fault is refuted and the one with it fits
    (:data:`EXPLAINED`). A right
    engine is blamed with at most the probability with which its rule is refuted
    (:data:`~spectheory.judging.standing.FALSE_ALARMS`), if it runs a rule that is `served`: causes are looked for only
    where each of these is refuted. A `structural`
    one is looked for also where listed calls do not make up their texts, which is certain, and one `of_output` also
    where the output alone is refuted.
    """

    name: str
    meaning: str
    explains: Callable[[Context], Finding | None]
    structural: bool = False
    of_output: bool = False


def best_fit(
    context: Context, survivals: Mapping[str, str | Floats], counting: Counting
) -> tuple[str, Standing] | None:
    """Of some rules (by the names of `survivals`) the one that fits best under a way of counting, if one fits; those
    that engines are known to run go first.
    """
    served = {one.rule for one in context.refuted if one.served}
    tried = [(name, context.judge(survival, counting)) for name, survival in survivals.items()]
    fitting = [(name, one) for name, one in tried if one.p >= EXPLAINED]
    return max(fitting, key=lambda found: (found[0] in served, found[1].closeness), default=None)


def by_counting(context: Context, counting: Counting, cause: str, sentence: str) -> Finding | None:
    """A finding where a refuted rule fits under another way of counting, and listed calls make up their texts."""
    if torn(context.log, counting):
        return None
    found = best_fit(context, {one.rule: one.rule for one in context.refuted}, counting)
    if found is None:
        return None
    rule, standing = found
    said = f"{sentence}: then rule {rule} fits (p = {standing.p:.2g})"
    return Finding(cause, said, rule, standing, standing.closeness)
