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
    r"""Acceptance rate of token verification :math:`\sum_x\min(p_x,q_x)` over all completions (A1, §9; certified).

    The high end is attained; the low one (known to both alone) if ceil(s/a) + ceil(t/b) <= n.

    Parameters
    ----------
    target, draft : TopLogProbs
        Over one vocabulary.

    Returns
    -------
    Interval
        In [0, 1].

    Raises
    ------
    ShapeError
        If the vocabularies differ.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(token_acceptance(p, q))
    0.625 [0.500, 0.750]
    """
    return between(target, draft, lambda p, q: float(np.minimum(p, q).sum()))


def race_acceptance(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    r"""Acceptance rate of the exponential race :math:`\sum_x p_x/(1+g(p_x/q_x))` over all completions (A2, §9).

    Ends as for :func:`token_acceptance`.

    Parameters
    ----------
    target, draft : TopLogProbs
        Over one vocabulary.

    Returns
    -------
    Interval
        In [0, 1].

    Raises
    ------
    ShapeError
        If the vocabularies differ.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(race_acceptance(p, q))
    0.572 [0.444, 0.700]
    """
    return poisson_race_acceptance(target, draft, 1)


def poisson_race_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""P(R <= k) of the Poisson race, :math:`1-\sum_x p_x\big(\tfrac{g_x}{1+g_x}\big)^k` (R1, §9; certified bound).

    Ends as for :func:`token_acceptance`. One candidate is the exponential race.

    Parameters
    ----------
    target, draft : TopLogProbs
        Over one vocabulary.
    k : int
        Candidates, i.i.d. from the draft, at least 1.

    Returns
    -------
    Interval
        In [0, 1]; grows with k.

    Raises
    ------
    SettingError
        If k is below 1.
    ShapeError
        If the vocabularies differ.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(poisson_race_acceptance(p, q, 3))
    0.800 [0.664, 0.936]
    """
    at_least_one("k", k)
    return between(target, draft, lambda p, q: float(PoissonRace().acceptance(p, q, k)), scale=RACE_SCALE * k)


def optimal_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""Best acceptance of any lossless rule with k i.i.d. drafts, :math:`1+\min_H[p(H)-q(H)^k]` (R4, §9; certified).

    Ends as for :func:`token_acceptance` (``khisti2025``, ``hu2025``).

    Parameters
    ----------
    target, draft : TopLogProbs
        Over one vocabulary.
    k : int
        Drafts at the position, at least 1.

    Returns
    -------
    Interval
        In [0, 1]; grows with k.

    Raises
    ------
    SettingError
        If k is below 1.
    ShapeError
        If the vocabularies differ.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(optimal_acceptance(p, q, 2))
    0.812 [0.687, 0.938]
    """
    at_least_one("k", k)
    return between(target, draft, lambda p, q: float(optimal.optimal_acceptance(p, q, k)), scale=1.0 + k)
