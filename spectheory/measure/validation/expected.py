"""Calls that the path theorem expects of a given text, for a rule and any shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Shape, StoppingRule
from spectheory.judging.comparison import READINGS, CallLaw
from spectheory.measure.columns.noise import text_key
from spectheory.measure.forward import teacher_forced
from spectheory.measure.grown import grown_columns
from spectheory.measure.pair import ModelPair
from spectheory.measure.suffix import suffix_columns
from spectheory.prediction.shape_calls import survival_of
from spectheory.prediction.stopped import Drafted, lengths_of_calls
from spectheory.trace import TextInfo, Trace
from spectheory.verification import Columns, PathRule, RankRule, SuffixMatch
from spectheory.verification.by_start import by_position, deepest
from spectheory.verification.suffix import OWN_TEXT

CONTROLS = ("per_position", "fixed")
"""Wrong readings that the calls must refute."""
_EXPENSIVE = ("race_rank", "distinct_rank")
"""Columns that are computed only where they are needed."""


@dataclass(frozen=True)
class ExpectedCalls(CallLaw):
    """Calls of one text, given the text, with what wrong readings expect of it.

    `per_position` is the control of a draft head: what its first draft at each position would give if the pmfs did not
    depend on the start (§10). `fixed` is the control of a stopping rule: the chain that always drafts k (§11).
    `drafted` are the drafts of all calls of a stopped chain: certain lower bound, the two estimates of
    :mod:`~spectheory.prediction.stopped`, certain upper bound.
    """

    per_position: ExpectedCalls | None = None
    fixed: ExpectedCalls | None = None
    drafted: tuple[float, float, float, float] | None = None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ExpectedCalls:
        """What was written as a dictionary."""
        controls = {name: content[name] and cls.from_dict(content[name]) for name in CONTROLS}
        drafted = content["drafted"] and tuple(content["drafted"])
        return cls(**{**content, **controls, "law": tuple(content["law"]), "drafted": drafted})


def expected_calls(
    pair: ModelPair,
    prompt_ids: Tensor,
    text: Tensor,
    sampling: Sampling,
    rule: PathRule,
    shape: Shape,
    *,
    key: int = 0,
    chunk: int = 256,
    name: str = "",
    tokens: int | None = None,
) -> ExpectedCalls:
    """Expected calls of a text from the decoder under test; one teacher-forced pass, or several for estimated laws.

    A call drafts nothing at or past the last of `tokens` (those of the text), nor after the text's end.
    """
    expensive = isinstance(rule, RankRule) and not shape.is_chain and rule.recorded_in in _EXPENSIVE
    estimated = isinstance(rule, RankRule) and rule.estimated and shape.max_rank > 1
    deep = shape.depth if pair.draft.head is not None and rule.uses_draft else None

    def read(number: int) -> dict[str, Any]:
        return teacher_forced(
            pair,
            prompt_ids,
            text,
            sampling,
            chunk=chunk,
            race=expensive,
            sampled=True,
            key=text_key(key, number),
            name=name,
            depth=deep,
        )

    readings, controls, fixed = [], [], []
    for number in range(READINGS if estimated else 1):
        if isinstance(shape, Grown):
            columns = grown_columns(pair, prompt_ids, text, shape, chunk=chunk, name=name)
        else:
            columns = read(number)
        if isinstance(rule, SuffixMatch):
            columns |= suffix_columns([(prompt_ids.cpu(), text.cpu())], OWN_TEXT, pair.end_of_text)
        readings.append(survival_of(rule, shape, columns)[0])
        if rule.uses_draft and shape.depth > 1 and deepest(columns) is not None:
            controls.append(survival_of(rule, shape, by_position(columns))[0])
        if shape.stop:
            fixed.append(survival_of(rule, Chain(shape.depth), columns)[0])
    found = replace(ExpectedCalls.of(readings), per_position=ExpectedCalls.of(controls) if controls else None)
    if not shape.stop:
        return found
    drafted = _drafted(rule, shape.stop, shape.depth, columns, len(text), tokens or len(text))
    return replace(found, fixed=ExpectedCalls.of(fixed), drafted=drafted)


def _drafted(
    rule: PathRule, stop: StoppingRule, k: int, columns: Columns, length: int, tokens: int
) -> tuple[float, float, float, float]:
    """Drafts of all calls of one text, which ended by itself if it has fewer than `tokens`."""
    trace = Trace(dict(columns), (TextInfo("", length, ended=length < tokens),), {"settings": {"tokens": tokens}})
    _, found = lengths_of_calls(Drafted(trace, rule, k), stop, columns)
    low, going, stopping, high = (float(each.sum()) for each in (found.low, found.going, found.stopping, found.high))
    return low, going, stopping, high
