"""Acceptance rates of two truncated pmfs as certified intervals: A1, A2, R1, R4."""

from __future__ import annotations

import numpy as np

from spectheory.intervals import Interval
from spectheory.truncated.completions import between
from spectheory.truncated.top import TopLogProbs
from spectheory.verification import optimal
from spectheory.verification.base import at_least_one
from spectheory.verification.poisson import PoissonRace

RACE_SCALE = 2.0
"""Races of P and P' have different winners with probability at most 1 - (1-d)/(1+d) <= 2d, d their distance (A3)."""


def token_acceptance(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    r"""Acceptance rate of token verification :math:`\sum_x\min(p_x,q_x)` (A1, §9; certified)."""
    return between(target, draft, lambda p, q: float(np.minimum(p, q).sum()))


def poisson_race_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""P(R <= k) of the Poisson race, :math:`1-\sum_x p_x\big(\tfrac{g_x}{1+g_x}\big)^k` (R1, §9; certified)."""
    at_least_one("k", k)
    return between(target, draft, lambda p, q: float(PoissonRace().acceptance(p, q, k)), scale=RACE_SCALE * k)


def optimal_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""Best acceptance of any lossless rule with k i.i.d. drafts, :math:`1+\min_H[p(H)-q(H)^k]` (R4, §9; certified).

    See ``khisti2025`` and ``hu2025``.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(optimal_acceptance(p, q, 2))
    0.812 [0.687, 0.938]
    """
    at_least_one("k", k)
    return between(target, draft, lambda p, q: float(optimal.optimal_acceptance(p, q, k)), scale=1.0 + k)
