"""D1-D3 of two truncated pmfs where they are bounded, as certified intervals over all completions."""

from __future__ import annotations

import spectheory.divergences as exact
from spectheory.checks import amount
from spectheory.intervals import Interval
from spectheory.truncated.completions import between
from spectheory.truncated.top import TopLogProbs


def total_variation(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    r"""Total variation distance :math:`\tfrac12\sum_x|p_x-q_x|` over all completions (D1, §9; certified bound).

    The low end is attained; the high one is if ceil(s/a) + ceil(t/b) <= n (tails that avoid each other).

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(total_variation(p, q))
    0.375 [0.250, 0.500]
    """
    return between(target, draft, lambda p, q: float(exact.total_variation(p, q)))


def harmonic_mean_similarity(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    r"""Sum of the harmonic means :math:`\sum_x 2p_xq_x/(p_x+q_x)` over all completions (D2, §9; certified bound).

    The high end is attained; the low one as in :func:`total_variation`.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.5, 0, 0], 2), TopLogProbs.from_pmf([0.5, 0.25, 0.25, 0], 2)
    >>> print(harmonic_mean_similarity(p, q))
    0.833
    """
    return between(target, draft, lambda p, q: float(exact.harmonic_mean_similarity(p, q)), scale=2.0)


def harmonic_mean_distance(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    """One minus the harmonic-mean similarity, over all completions (D2, §9; certified bound).

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(harmonic_mean_distance(p, q))
    0.208 [0.083, 0.333]
    """
    return between(target, draft, lambda p, q: float(exact.harmonic_mean_distance(p, q)), scale=2.0)


def hockey_stick(target: TopLogProbs, draft: TopLogProbs, c: float) -> Interval:
    r"""Hockey-stick divergence :math:`g(c) = \sum_y (c\,q_y-p_y)_+` over all completions (D3, §9; certified bound).

    The low end is attained, for every c by one completion; the high one as in :func:`total_variation`.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(hockey_stick(p, q, 2.0))
    1.125 [1.000, 1.250]
    """
    c = amount("c", c, remedy="g(inf) is infinite")
    scale = max(1.0, c)
    return between(target, draft, lambda p, q: float(exact.hockey_stick(p, q, c)), scale=scale, ceiling=c)
