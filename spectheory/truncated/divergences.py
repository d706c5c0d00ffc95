"""D1-D3 of two truncated pmfs where they are bounded, as certified intervals over all completions."""

from __future__ import annotations

import math
from collections.abc import Callable

import spectheory.divergences as exact
from spectheory.checks import amount
from spectheory.intervals import Interval
from spectheory.truncated.completions import between
from spectheory.truncated.top import TopLogProbs, a_top, outward, rounding_slack, settled


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


# Entropy and second log-moment of one truncated pmf: the mu and mu2 of the branching bounds (§9, B2').
#
# Both are the known tokens' sum and the sum of some h over N unseen tokens with mass s and cap a. Spreading mass evenly
# makes it largest, N h(s/N); filling one token after the other to the cap makes it smallest, if h is concave. h = x
# log^2 x is so only up to 1/e; yet moving mass from a smaller x to a larger y lowers h(x) + h(y) as x + y <= 2/e: h'
# falls up to 1/e and rises after, more slowly. A cap up to 1/e gives x + y <= 2/e, a larger one leaves s < 2/e.


def entropy(top: TopLogProbs) -> Interval:
    r"""Shannon entropy :math:`-\sum_x p_x\log p_x` in nats over all completions (D1, §9; certified, both attained).

    Examples
    --------
    >>> print(entropy(TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2)))
    1.126 [1.040, 1.213]
    """
    return _ends(top, lambda x: -x * math.log(x) if x > 0 else 0.0, steepness=1)


def second_log_moment(top: TopLogProbs) -> Interval:
    r"""Second log-moment :math:`\sum_x p_x\log^2p_x`, nats squared, over all completions (D1, §9; certified, attained).

    Examples
    --------
    >>> print(second_log_moment(TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2)))
    1.501 [1.201, 1.802]
    """
    return _ends(top, lambda x: x * math.log(x) ** 2 if x > 0 else 0.0, steepness=2)


def _ends(top: TopLogProbs, h: Callable[[float], float], steepness: int) -> Interval:
    known = math.fsum(h(float(p)) for p in a_top("top", top).probabilities)
    # A mass off by e moves x log x by about e log e, squared for x log^2 x.
    scale = (3 - math.log(top.slack) + math.log(top.vocabulary)) ** steepness
    if top.complete:
        return settled(known, scale, top)
    full = min(math.floor(top.unseen / top.cap), top.hidden)
    low = known + full * h(top.cap) + h(max(0.0, top.unseen - full * top.cap))
    high = known + top.hidden * h(top.unseen / top.hidden)
    return outward(min(low, high), high, scale * rounding_slack(top))
