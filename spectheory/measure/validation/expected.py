"""Calls that the path theorem expects of a text that is there, for a rule and any shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Shape
from spectheory.measure.forward import teacher_forced
from spectheory.measure.noise import text_key
from spectheory.measure.pair import ModelPair
from spectheory.paths import TextCalls, calls_of_texts, calls_of_tree, tree_survival
from spectheory.verification import Columns, PathRule, RankRule

READINGS = 4
"""Independent estimates of a law that is estimated; their spread is the error of their mean."""
_DEAR = ("race_rank", "distinct_rank")
"""Columns that are worked out only where they are read."""


@dataclass(frozen=True)
class Expected:
    """Calls of one text, given the text (§7).

    Attributes
    ----------
    calls : float
        Expected number (exact; the mean of unbiased estimates if the rule's law is estimated).
    variance : float
        Of the number of calls (exact).
    noise : float
        Variance of `calls` itself, estimated from independent readings; 0 where it is exact.
    full : float
        Expected calls that follow one in which the whole path was accepted.
    """

    calls: float
    variance: float
    noise: float
    full: float


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
) -> Expected:
    """Expected calls of a text that the decoder under test has made; one teacher-forced pass, or a few."""
    dear = isinstance(rule, RankRule) and not isinstance(shape, Chain) and rule.recorded_in in _DEAR
    estimated = isinstance(rule, RankRule) and rule.estimated and shape.max_rank > 1
    readings = []
    for number in range(READINGS if estimated else 1):
        columns = teacher_forced(
            pair,
            prompt_ids,
            text,
            sampling,
            chunk=chunk,
            race=dear,
            sampled=True,
            key=text_key(key, number),
            name=name,
        )
        readings.append(calls_of(rule, shape, columns, np.array([len(text)])))
    calls, variances, full = (
        np.array([float(getattr(one, name)[0]) for one in readings]) for name in ("expected", "variance", "full")
    )
    noise = float(calls.var(ddof=1)) / len(calls) if estimated else 0.0
    return Expected(float(calls.mean()), float(variances.mean()), noise, float(full.mean()))


def calls_of(rule: PathRule, shape: Shape, columns: Columns, lengths: NDArray[np.int64]) -> TextCalls:
    """Calls of texts with their variances, from the columns along them (§7)."""
    if isinstance(rule, RankRule) and not isinstance(shape, Chain):
        law = rule.rank_law(columns, shape.max_rank)
        return calls_of_tree(*tree_survival(law, shape.tree()), lengths, variance=True)
    return calls_of_texts(rule.path_survival(columns, shape.depth), lengths)
