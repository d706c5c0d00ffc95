"""Calls that the path theorem expects of a given text, for a rule and any shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Shape, StoppingRule
from spectheory.measure.columns.noise import text_key
from spectheory.measure.forward import teacher_forced
from spectheory.measure.grown import grown_columns
from spectheory.measure.pair import ModelPair
from spectheory.measure.suffix import suffix_columns
from spectheory.prediction.call_system import TextCalls
from spectheory.prediction.drafted_lengths import Drafted
from spectheory.prediction.law import law_of_calls, trimmed
from spectheory.prediction.paths import calls_of_texts, calls_of_tree
from spectheory.prediction.shape_calls import survival_of
from spectheory.prediction.stopped import lengths_of_calls
from spectheory.trace import TextInfo, Trace
from spectheory.verification import Columns, PathRule, RankRule, SuffixMatch
from spectheory.verification.by_start import by_position, deepest
from spectheory.verification.suffix import OWN_TEXT

READINGS = 4
"""Independent estimates of an estimated law; their spread gives the error of their mean."""
CONTROLS = ("per_position", "fixed")
"""Wrong readings that the calls must refute."""
_EXPENSIVE = ("race_rank", "distinct_rank")
"""Columns that are computed only where they are needed."""

_Reading: TypeAlias = tuple[float, float, NDArray[np.float64]]
"""Mean, variance and law of the calls of a text."""


@dataclass(frozen=True)
class Expected:
    """Calls of one text, given the text (§7).

    `calls` is the expected number and `variance` its variance: exact, or means over unbiased readings if the rule's law
    is estimated. `noise` is then the estimated variance of `calls` itself, else 0. `law` is P(calls = least), P(calls =
    least + 1), ... without negligible ends. `per_position` is the control of a draft head: what its first draft at each
    position would give if the pmfs did not depend on the start (§10). `fixed` is the control of a stopping rule: the
    chain that always drafts k (§11). `drafted` are the drafts of all calls of a stopped chain: certain lower bound, the
    two estimates of :mod:`~spectheory.prediction.drafted_lengths`, certain upper bound.
    """

    calls: float
    variance: float
    noise: float
    least: int
    law: tuple[float, ...]
    per_position: Expected | None = None
    fixed: Expected | None = None
    drafted: tuple[float, float, float, float] | None = None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Expected:
        """What was written as a dictionary."""
        controls = {name: content[name] and cls.from_dict(content[name]) for name in CONTROLS}
        drafted = content["drafted"] and tuple(content["drafted"])
        return cls(**{**content, **controls, "law": tuple(content["law"]), "drafted": drafted})

    @property
    def spread(self) -> float:
        """Variance of the number of calls given the text (exact, or an unbiased estimate).

        The variance of a reading around its own mean is on average too small by the variance of that mean, which is
        added.
        """
        return self.variance + READINGS * self.noise


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
) -> Expected:
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
        readings.append(_read(rule, shape, columns, len(text)))
        if rule.uses_draft and shape.depth > 1 and deepest(columns) is not None:
            controls.append(_read(rule, shape, by_position(columns), len(text)))
        if shape.stop:
            fixed.append(_read(rule, Chain(shape.depth), columns, len(text)))
    found = replace(_mean(readings), per_position=_mean(controls) if controls else None)
    if not shape.stop:
        return found
    drafted = _drafted(rule, shape.stop, shape.depth, columns, len(text), tokens or len(text))
    return replace(found, fixed=_mean(fixed), drafted=drafted)


def _drafted(
    rule: PathRule, stop: StoppingRule, k: int, columns: Columns, length: int, tokens: int
) -> tuple[float, float, float, float]:
    """Drafts of all calls of one text, which ended by itself if it has fewer than `tokens`."""
    trace = Trace(dict(columns), (TextInfo("", length, ended=length < tokens),), {"settings": {"tokens": tokens}})
    _, found = lengths_of_calls(Drafted(trace, rule, k), stop, columns)
    low, going, stopping, high = (float(each.sum()) for each in (found.low, found.going, found.stopping, found.high))
    return low, going, stopping, high


def _mean(readings: Sequence[_Reading]) -> Expected:
    """One reading, or the mean of unbiased ones with the variance of that mean."""
    calls, variances = (np.array(column) for column in list(zip(*readings, strict=True))[:2])
    noise = float(calls.var(ddof=1)) / len(calls) if len(calls) > 1 else 0.0
    # A path of calls passes each position once, so the mean of the laws is unbiased, as is that of the expectations.
    least, law = trimmed(np.mean([law for *_, law in readings], axis=0))
    return Expected(float(calls.mean()), float(variances.mean()), noise, least, tuple(law.tolist()))


def _read(rule: PathRule, shape: Shape, columns: Columns, tokens: int) -> _Reading:
    """Mean, variance and law of the calls of one text."""
    survival, _ = survival_of(rule, shape, columns)
    calls = calls_of_texts(survival, np.array([tokens]))
    return float(calls.expected[0]), float(calls.variance[0]), law_of_calls(survival)


def calls_of(rule: PathRule, shape: Shape, columns: Columns, lengths: NDArray[np.int64]) -> TextCalls:
    """Calls of texts with their variances, from the columns along them (§7)."""
    return calls_of_tree(*survival_of(rule, shape, columns), lengths, variance=True)
