"""Acceptance rates of two truncated pmfs as certified intervals: A1, A2, R1, R3 to R6."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spectheory.intervals import Interval
from spectheory.truncated.completions import all_known, best_completion, between, disjoint_tails, overlap
from spectheory.truncated.top import Floats, TopLogProbs, outward, rounding_slack, settled
from spectheory.verification import optimal
from spectheory.verification.base import at_least_one
from spectheory.verification.gumbel_list import GumbelList
from spectheory.verification.kseq import KSeq
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.recursive import RecursiveRejection

# What recursive rejection leaves over (R3) when only the largest probabilities are known.
#
# With :math:`E(s) = \sum_x(p_x-sq_x)_+ = 1-s+g(s)` the mass left after m rejections is :math:`G_m = P(R>m) =
# E(s_{m+1})`, :math:`s_1 = 0`, :math:`s_{r+1} = s_r + E(s_r)`. E is largest at the disjoint tails and least at the best
# completion, and s + E(s) never falls in s: by induction each :math:`s_r` lies between its values at these two.
#
# **G does not, for m > 1**: where more is left at first, s goes further. Of p = (.8, .15, .05, 0), q = (.2, .1, .1, .6)
# the merger of the second and third token lowers every g, and yet P(R <= 2) falls, from .53 to .52. So G is enclosed.
# E(s) is C(s), over the tokens known to both, and a *tail* of mass T and draft mass U, which falls in s, is convex, and
# lies between the tail of the best completion, t(s), and T.
#
# - *Low*. Let the tail at s_{m+1} have fallen by a slope of u in the mean, to :math:`T-us_{m+1}`. Before, it is below T
#   - us; so every s_r is at most what C(s) + T - us makes it, S(u), and G_m at least C + T - us at S(u), and C + t.
# - *High*. Let the tail at s_{m+1} be v. Before, it is at least v, and t; so every s_r is at least what C + max(t, v)
#   makes it, S(v), and G_m is at most C + v at s = S(v).
#
# The ranges [0, U] of u and [0, T] of v are cut into cells, and of each the worse end is taken: the result is certain.


_CELLS = 512
"""Cells of an unknown slope or height; the ends are loose by about k^2/2 times the tail over this number."""


class _Remainders(NamedTuple):
    """Ranges of :math:`s_{m+1}` and :math:`G_m`, m = 0..k, each ``[k + 1]``."""

    s_low: Floats
    s_high: Floats
    left_low: Floats
    left_high: Floats


def remainders(target: TopLogProbs, draft: TopLogProbs, k: int) -> _Remainders:
    """Certified ranges for k rejections, up to rounding: 512 O(k m)."""
    near, far = best_completion(target, draft), disjoint_tails(target, draft)
    both = len(far[0]) - 2
    known, tail = (near[0][:both], near[1][:both]), (near[0][both:], near[1][both:])
    mass, slope = far[0][-2], far[1][-1]
    cells = np.linspace(0.0, 1.0, _CELLS + 1)
    s_most, s_least = np.zeros(_CELLS), np.zeros(_CELLS)
    rows = [(0.0, 0.0, 1.0, 1.0)]
    for _ in range(k):
        s_most = s_most + _left(*known, s_most) + np.maximum(mass - slope * cells[:-1] * s_most, _left(*tail, s_most))
        s_least = s_least + _left(*known, s_least) + np.maximum(mass * cells[:-1], _left(*tail, s_least))
        low = _left(*known, s_most) + np.maximum(mass - slope * cells[1:] * s_most, _left(*tail, s_most))
        high = _left(*known, s_least) + mass * cells[1:]
        rows.append((float(s_least[0]), float(s_most[0]), float(low.min()), float(high.max())))
    s_low, s_high, left_low, left_high = np.array(rows).T
    return _Remainders(s_low, np.maximum(s_low, s_high), left_low, np.maximum(left_low, left_high))


def remainder_scale(k: int) -> float:
    """How much a change of either pmf by a distance of d moves these ranges, in units of d; E(s) by max(1, s)."""
    return 2.0 * (k + 1) ** 2


def _left(p: Floats, q: Floats, s: Floats) -> Floats:
    """The sum of (p - s q)+ at each s."""
    return np.asarray(np.maximum(p - s[:, None] * q, 0.0).sum(axis=-1))


# Acceptance rates


RACE_SCALE = 2.0
"""Races of P and P' have different winners with probability at most 1 - (1-d)/(1+d) <= 2d, d their distance (A3)."""
_INTEGRAL = 1e-12
"""Error of R6's integral over the winning time."""


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


def recursive_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    """P(R <= k) of recursive rejection with i.i.d. candidates, :math:`1-G_k` (R3, §9; certified bound, at most R4's).

    For k > 1 :mod:`spectheory.truncated.candidates` proves its ends, which are not attained.
    """
    at_least_one("k", k)
    if all_known(target, draft):
        value = float(RecursiveRejection().acceptance(*disjoint_tails(target, draft), k))
        return settled(value, remainder_scale(k), target, draft)
    return recursive_ends(target, draft, remainders(target, draft, k), k)


def recursive_ends(target: TopLogProbs, draft: TopLogProbs, left: _Remainders, k: int) -> Interval:
    """P(R <= k) of recursive rejection from what is left over after k or more rejections, not all being known."""
    best = float(optimal.optimal_acceptance(*best_completion(target, draft), k))
    low, high = 1 - float(left.left_high[k]), 1 - float(left.left_low[k])
    return outward(low, max(low, min(high, best)), remainder_scale(k) * rounding_slack(target, draft), ceiling=1.0)


def kseq_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""Acceptance of k-SEQ (R5, §9; certified bound; ``sun2023spectr``).

    It is :math:`\max_{1\le\rho\le k}\min\big(1-(g(\rho)/\rho)^k, \rho-g(\rho)\big)`: both fall in g, which is least at
    the best completion and largest at the disjoint tails.
    """
    at_least_one("k", k)
    return between(target, draft, lambda p, q: float(KSeq().acceptance(p, q, k)), scale=float(k))


def gumbel_list_acceptance_bound(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""The printed lower bound of Gumbel list sampling, :math:`\sum_x p_x/(1+g_x/k)` (R6, §9; certified bound;
    ``rowan2025``).

    It is monotone in the order of channels as the race is: 1 + g(r)/k is the largest of lines A + B r, A and B >= 0,
    r/(A + B r) is concave in r, and a merger lowers g.

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(gumbel_list_acceptance_bound(p, q, 2))
    0.674 [0.543, 0.806]
    """
    at_least_one("k", k)
    rule = GumbelList()
    return between(target, draft, lambda p, q: float(rule.acceptance_bound(p, q, k)), scale=RACE_SCALE * k)


def gumbel_list_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""Acceptance of Gumbel list sampling with k races (R6, §9; certified bound; ``rowan2025``).

    It is not monotone in the order of channels for k > 1: halve the first token of p = (1/2, 1/2), q = (1/4, 3/4), and
    .854 becomes .844 for k = 2. The acceptance given x falls in sums :math:`\sum_{y\ne x}(\alpha q_y-\beta p_y)_+`,
    which for an x known to both are least at the best completion and largest at the disjoint tails: there the ends
    count these outputs. The high end adds the lesser of the probabilities of any other output and of a candidate not
    known to both. It is at most R4's and not attained. k = 1 is the exponential race.
    """
    at_least_one("k", k)
    rule, scale = GumbelList(), 2 * RACE_SCALE * k
    if k == 1:
        return gumbel_list_acceptance_bound(target, draft, 1)
    low = float(rule.acceptance(*disjoint_tails(target, draft), k))
    if all_known(target, draft):
        return settled(low, scale, target, draft)
    p, q = best_completion(target, draft)
    both = len(overlap(target, draft).both_target)
    of_known = float(np.sum(p[:both] * rule.acceptance_given(p, q, k)[:both]))
    drawn = 1 - min(1.0, float(np.sum(q[:both]))) ** k
    high = min(of_known + min(reachable(target, draft), drawn), float(optimal.optimal_acceptance(p, q, k)))
    return outward(low, max(low, high), scale * rounding_slack(target, draft) + _INTEGRAL, ceiling=1.0)


def reachable(target: TopLogProbs, draft: TopLogProbs) -> float:
    """The most target mass on tokens that are not known to both and that the draft may draw."""
    parts, unseen = overlap(target, draft), target.unseen_range[1]
    if draft.complete:
        return min(unseen, target.cap * int(np.count_nonzero(parts.draft_only)))
    return math.fsum([unseen, *parts.target_only])
