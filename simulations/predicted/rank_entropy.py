"""The entropy of the cut rank (H; R1, R2, R3), less what an estimate from so many draws lacks in the mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import exp1

from simulations.counts.quantities import Mean
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.intervals import Interval
from spectheory.verification import PoissonRace, RaceVerification, RecursiveRejection, rank_entropy
from spectheory.verification.base import RankRule

RULES: dict[str, tuple[str, RankRule]] = {
    "poisson": ("R1", PoissonRace()),
    "race": ("R2", RaceVerification()),
    "recursive": ("R3", RecursiveRejection()),
}
ROUNDING = 1e-12
"""Of a sum of up to ten thousand terms; it is all that is left where the rank is certain."""


@predicts("rank-entropy")
def entropy(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """H(R) from the exact law of the rank."""
    statement, rule = RULES[parameters["rule"]]
    law = np.asarray(rule.rank_pmf(parameters["target"], parameters["draft"], parameters["max_rank"]))
    exact = abs(float(rank_entropy(law)))
    low = exact - lacking(np.append(law, max(1 - law.sum(), 0.0)), parameters["draws"]) - ROUNDING
    value = Interval(low, exact, exact + ROUNDING, "bound")
    yield Predicted("H(R), as estimated", statement, Mean("entropy"), value)


def lacking(law: Any, draws: int) -> float:
    r"""At least what the estimate lacks in the mean: :math:`\sum_i p_i E_1(-(n - \frac12) \log(1-p_i))`.

    The terms :math:`(1-p)^v/v`, v = n, n+1, ..., are convex in v: each is at most the integral around it.

    Examples
    --------
    >>> lacking([0.5, 0.5], 1000) < 1e-300
    True
    """
    p = np.asarray(law, dtype=np.float64)
    p = np.minimum(p[p > 0], 1.0)
    with np.errstate(divide="ignore", under="ignore"):
        return float((p * exp1(-(draws - 0.5) * np.log1p(-p))).sum())
