"""D1-D3 of two truncated pmfs, as certified intervals over all completions.

KL, chi-square and Rényi divergence are infinite where the draft lacks a token of the target.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import spectheory.divergences as exact
from spectheory.checks import amount
from spectheory.distributions import ratio
from spectheory.intervals import Interval
from spectheory.truncated.completions import (
    Value,
    _best_log_ratios,
    _Overlap,
    all_known,
    between,
    disjoint_tails,
    farthest_ratios,
    overlap,
)
from spectheory.truncated.top import EPS, Floats, TopLogProbs, a_top, outward, rounding_slack, settled


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


# Low ends of KL, chi-square and Rényi divergence by tangents: certain however small the draft's masses are.
#
# A completion found in floating point is off by some 1e-17 of mass, and p^2/q on a token with q = 1e-36 makes anything
# of that. So of the best completion only the ratios r = p/q are taken, as places of tangents. For convex f, each r >= 0
# and all p, q >= 0,
#
#     q f(p/q) >= f'(r) p - (r f'(r) - f(r)) q,                   equal at p = r q.
#
# With f(r) = (r^a - 1 - a(r-1))/(a-1), at a = 1 r log r - r + 1, the left sides add up to (M - 1)/(a - 1), M = sum p^a
# q^(1-a), of which the divergences are increasing functions, and the right sides are A p - B q, A = a(r^(a-1) -
# 1)/(a-1), at a = 1 log r, B = r^a - 1. Therefore, *whatever the r*,
#
#     (M - 1)/(a - 1), least over all (P, Q)  >=  least sum of A p  -  largest sum of B q:
#
# two linear programs, each solved by filling up in the order of cost. Rounding: all of the sums' range is used, and the
# caps are raised by more than their error. Fixed masses, A and B are known up to a relative error w, which takes off w
# times the sum of |A| p, and likewise for B. Poor ratios lower the end, they cannot falsify it; those of the best
# completion attain it. Where M is far from 1, f = r^a serves likewise.
#
# Order infinity has no tangents. There, and where the order is so large that it makes no difference, the sets S = {r >=
# c} are tried, all else merged: M >= P(S)^a Q(S)^(1-a), log max p/q >= log(P(S)/Q(S)), with the least P(S) and largest
# Q(S).


_LARGEST_EXPONENT = 700.0
"""Exponents up to this size have a float; a ratio beyond it gets the tangent of this one."""

_LARGE_ORDER = 1e6
"""Sets serve beyond it: with K different ratios the loss is log(K)/(a-1) at most."""

_LAST_STEPS = 16 * EPS
"""Relative rounding of the logarithm that ends it all, and of what is added to it."""


class _Side(NamedTuple):
    """Masses of one side, fixed, or of `cap` per token up to `room`, with a sum in `least`..`most`; one entry for
    unknown ones.
    """

    fixed: Floats
    room: Floats
    cap: float
    least: float
    most: float

    @property
    def possible(self) -> np.ndarray:
        """Where there may be mass."""
        return (self.fixed > 0) | (self.room > 0)

    def cheapest(self, cost: Floats) -> Floats:
        """The masses with the least sum of cost times mass: what pays is filled to `most`, what costs to `least`."""
        order = np.argsort(cost, kind="stable")
        room = self.room[order]
        before = np.append(0.0, np.cumsum(room)[:-1])
        masses = self.fixed.copy()
        masses[order] += np.clip(np.where(cost[order] < 0, self.most, self.least) - before, 0.0, room)
        return masses


def _least_renyi_divergence(target: TopLogProbs, draft: TopLogProbs, order: float) -> float:
    """Certain lower bound of the Rényi divergence of all completions, any order > 0: 1 is KL, inf the largest ratio."""
    # The exponential of the largest logarithm of a mass has half as many units in the last place of error.
    deepest = max(-math.log(float(top.probabilities[top.probabilities > 0].min())) for top in (target, draft))
    wide = rounding_slack(target, draft) + EPS * deepest
    parts = overlap(target, draft)
    p, q = _sides(target, draft, parts, wide)
    above = _log_ratios(parts, p, q, p.least, q.most)
    if order > _LARGE_ORDER:
        return _down(_by_sets(p, q, above, order, wide))
    below = _log_ratios(parts, p, q, p.most, q.least)
    # Each form has its minimum over the ranges of the unseen masses elsewhere: at ratios near 1, or at an end.
    near = np.maximum(np.minimum(above, below), np.minimum(np.maximum(above, below), 0.0))
    bound = _near_one(p, q, near, order, wide)
    if order != 1:
        far = above if order > 1 else _log_ratios(parts, p, q, p.most, q.most)
        bound = max(bound, _far_from_one(p, q, far, order, wide))
    return _down(bound)


def _sides(target: TopLogProbs, draft: TopLogProbs, parts: _Overlap, wide: float) -> tuple[_Side, _Side]:
    """What is known of both pmfs, the upper limits raised by the relative error."""
    ours, theirs, none = np.zeros(len(parts.target_only)), np.zeros(len(parts.draft_only)), np.zeros(1)
    fixed_p = np.concatenate([parts.both_target, parts.target_only, theirs, none])
    fixed_q = np.concatenate([parts.both_draft, ours, parts.draft_only, none])
    tokens_p = np.concatenate([0 * parts.both_target, ours, theirs + 1, none + parts.outside])
    tokens_q = np.concatenate([0 * parts.both_draft, ours + 1, theirs, none + parts.outside])
    (s_least, s_most), (t_least, t_most) = target.unseen_range, draft.unseen_range
    a, b = target.cap * (1 + wide), draft.cap * (1 + wide)
    return (
        _Side(fixed_p, tokens_p * a, a, s_least, s_most * (1 + wide)),
        _Side(fixed_q, tokens_q * b, b, t_least, t_most * (1 + wide)),
    )


def _log_ratios(parts: _Overlap, p: _Side, q: _Side, s: float, t: float) -> Floats:
    """Logarithms of p/q at the best completion for these unseen masses; infinite only where one side is surely 0."""
    logs = np.clip(_best_log_ratios(parts, p.cap, s, q.cap, t), -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    only_p, only_q = p.possible & ~q.possible, q.possible & ~p.possible
    logs[only_p], logs[only_q], logs[~(p.possible | q.possible)] = math.inf, -math.inf, 0.0
    return logs


def _near_one(p: _Side, q: _Side, logs: Floats, order: float, wide: float) -> float:
    """From tangents of (r^a - 1 - a(r-1))/(a-1), which lose no digits where M is near 1; 0 where they overflow."""
    steps, finite = order - 1, logs[np.isfinite(logs)]
    if order * finite.max(initial=0.0) > _LARGEST_EXPONENT:
        return 0.0
    a = order * (np.expm1(steps * logs) / steps) if order != 1 else logs
    low = _least(p, q, a, np.expm1(order * logs), wide + _steepness(order, finite))
    return low if order == 1 or low == math.inf else math.log1p(max(steps * low, EPS - 1)) / steps


def _far_from_one(p: _Side, q: _Side, logs: Floats, order: float, wide: float) -> float:
    """From tangents of r^a, above order 1 in units of the largest r^(a-1): M may be tiny or huge."""
    steps, weight, finite = order - 1, max(order, 1.0), logs[np.isfinite(logs)]
    wide += _steepness(order, finite)
    if order > 1:  # the best place for masses p (1 - wide) and q (1 + wide), as the rounding has them
        logs = logs + (math.log1p(-wide) - math.log1p(wide))
    unit = float(logs[np.isfinite(logs)].max(initial=0.0)) if order > 1 else 0.0
    sign = math.copysign(1.0, steps)  # below order 1, M is at most something
    a = sign * (order / weight) * np.exp(steps * (logs - unit))
    b = sign * (steps / weight) * np.exp(order * (logs - unit) + unit)
    m = sign * weight * _least(p, q, a, b, wide)
    return unit + math.log(m) / steps - _LAST_STEPS * unit if 0 < m < math.inf else max(0.0, m)


def _steepness(order: float, logs: Floats) -> float:
    """Relative error of exponentials of up to (1 + order) times a difference of these logarithms."""
    return 4 * EPS * (1 + order) * float(np.abs(logs).max(initial=0.0))


def _least(p: _Side, q: _Side, a: Floats, b: Floats, wide: float) -> float:
    """The least sum of a p - b q, less its rounding."""
    gain, loss = _weighed(a, p.cheapest(a)), _weighed(b, q.cheapest(-b))
    low = float(np.sum(gain) - np.sum(loss))
    return low - wide * float(np.sum(np.abs(gain)) + np.sum(np.abs(loss))) if low < math.inf else low


def _weighed(weights: Floats, masses: Floats) -> Floats:
    """Products, 0 where there is no mass even if the weight is infinite."""
    return np.where(masses > 0, weights, 0.0) * masses


def _by_sets(p: _Side, q: _Side, logs: Floats, order: float, wide: float) -> float:
    """The largest (a log P(S) - (a-1) log Q(S))/(a-1) that is sure, over sets S of tokens with the largest ratios."""
    falling = np.argsort(-logs, kind="stable")
    elsewhere = np.append(np.cumsum(p.room[falling][:0:-1])[::-1], 0.0)
    sure = np.cumsum(p.fixed[falling]) * (1 - wide) + np.maximum(p.least - elsewhere, 0.0)
    at_most = np.cumsum(q.fixed[falling]) * (1 + wide) + np.minimum(q.most, np.cumsum(q.room[falling]))
    log_ratio = np.log(ratio(sure, at_most, np)[sure > 0])
    return float((log_ratio + np.log(sure[sure > 0]) / (order - 1)).max(initial=0.0))


def _down(bound: float) -> float:
    """Below the rounding of the last steps."""
    return max(0.0, bound - _LAST_STEPS * (1 + bound)) if bound < math.inf else bound


_LARGEST_LOG = math.log(sys.float_info.max) - EPS * 1000
"""Beyond it an exponential is infinite, which is no lower bound."""


def kl_divergence(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    r"""Kullback-Leibler divergence :math:`\sum_x p_x\log(p_x/q_x)` in nats over all completions (D1, §9; certified).

    The low end is attained. The high one is infinite, as a rule: a token that the draft does not know may have q = 0;
    it is finite, certain and loose if the draft's unseen mass leaves none of its tokens out.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(kl_divergence(p, q))
    0.173 [0.173, inf]
    """

    def value(masses: Floats, ratios: Floats) -> float:
        return float(np.sum(masses * np.log(ratios)))

    return _unbounded(target, draft, exact.kl_divergence, value, 1.0)


def chi_square(target: TopLogProbs, draft: TopLogProbs) -> Interval:
    r"""Chi-square divergence :math:`\sum_x p_x^2/q_x-1` over all completions (D1, §9; certified bound).

    Ends as for :func:`kl_divergence`.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.25, 0], 4), TopLogProbs.from_pmf([0.25, 0.5, 0.25, 0], 3)
    >>> print(chi_square(p, q), chi_square(p, q).kind)
    0.375 exact
    """

    def value(masses: Floats, ratios: Floats) -> float:
        with np.errstate(over="ignore"):  # beyond the floats is infinite
            return float(np.sum(masses * ratios)) - 1

    return _unbounded(target, draft, exact.chi_square, value, 2.0, squared=True)


def renyi_divergence(target: TopLogProbs, draft: TopLogProbs, order: float) -> Interval:
    r"""Rényi divergence :math:`\frac{1}{a-1}\log\sum_x p_x^aq_x^{1-a}` of order a > 0 over all completions (D1, §9).

    The low end is attained. The high end is that of disjoint tails below order 1, and as for :func:`kl_divergence`
    from order 1 on.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(renyi_divergence(p, q, 0.5))
    0.390 [0.088, 0.693]
    """
    order = exact.checked_order(order)
    if order == 1:
        return kl_divergence(target, draft)

    def whole(p: Floats, q: Floats) -> Any:
        return exact.renyi_divergence(p, q, order)

    def value(masses: Floats, ratios: Floats) -> float:
        return _renyi(masses, ratios, order)

    return _unbounded(target, draft, whole, value, order)


def _renyi(masses: Floats, ratios: Floats, order: float) -> float:
    """Rényi divergence from target masses and ratios p/q."""
    logs = np.log(ratios)
    if order == math.inf or (order > 1 and logs.max() == math.inf):
        return float(logs.max())
    total = float(np.logaddexp.reduce(np.log(masses) + (order - 1) * logs))
    return total / (order - 1)


def _unbounded(
    target: TopLogProbs,
    draft: TopLogProbs,
    whole: Callable[[Floats, Floats], Any],
    value: Value,
    order: float,
    *,
    squared: bool = False,
) -> Interval:
    """Interval of a divergence: `whole` of two known pmfs, `value` of target masses and ratios, at the far end.

    From order 1 on, a sum of p^a q^(1-a) falls in q and (beyond x log x, which the slack covers) rises in p; below
    order 1 it rises in both, and the divergence is largest at the disjoint tails.
    """
    slack = rounding_slack(target, draft)
    p, q = disjoint_tails(target, draft)  # target masses and their ratios, infinite where the draft has none
    farthest = (p[p > 0], ratio(p, q, np)[p > 0]) if order < 1 else farthest_ratios(target, draft)
    finite = farthest[1][farthest[1] < math.inf]
    # A mean log-ratio moves with the masses by the largest log-ratio, x log x by e log e.
    factor = 1.0 if squared or order in (1, math.inf) else (1 + order) / abs(order - 1)
    scale = factor * (3 - 2 * math.log(slack) + float(np.abs(np.log(finite)).max(initial=0.0)))
    if all_known(target, draft) and target.complete:
        return settled(float(whole(*disjoint_tails(target, draft))), scale, target, draft, relative=squared)
    low = _least_renyi_divergence(target, draft, order)
    if squared:
        low = math.expm1(min(low, _LARGEST_LOG)) * (1 - 4 * EPS) if low < math.inf else low
    far = value(*farthest)
    high = outward(far, far, scale * slack, relative=squared).high
    return outward(low, max(low, high), 0.0)
