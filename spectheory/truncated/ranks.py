"""Acceptance, and the law of the rank, of two truncated pmfs as certified intervals: A1, A2, R1 to R6.

Alone and given the output; :data:`RANKED` has what is known of each rule.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import spectheory.divergences as exact
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.truncated.completions import (
    MANY,
    Acceptance,
    RuleBounds,
    all_known,
    best_completion,
    between,
    disjoint_tails,
    overlap,
)
from spectheory.truncated.top import Floats, TopLogProbs, outward, rounding_slack, settled
from spectheory.verification import optimal
from spectheory.verification.base import Rule, at_least_one
from spectheory.verification.block import BlockVerification
from spectheory.verification.gumbel_list import GumbelList
from spectheory.verification.kseq import KSeq
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.race import RaceVerification
from spectheory.verification.recursive import RecursiveRejection
from spectheory.verification.token import TokenVerification

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


def _remainders(target: TopLogProbs, draft: TopLogProbs, k: int) -> _Remainders:
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


def _remainder_scale(k: int) -> float:
    """How much a change of either pmf by a distance of d moves these ranges, in units of d; E(s) by max(1, s)."""
    return 2.0 * (k + 1) ** 2


def _left(p: Floats, q: Floats, s: Floats) -> Floats:
    """The sum of (p - s q)+ at each s."""
    return np.asarray(np.maximum(p - s[:, None] * q, 0.0).sum(axis=-1))


# Acceptance rates


_RACE_SCALE = 2.0
"""Races of P and P' have different winners with probability at most 1 - (1-d)/(1+d) <= 2d, d their distance (A3)."""
_INTEGRAL = 1e-12
"""Error of R6's integral over the winning time."""


def _monotone(rule: Rule, scale: float) -> Acceptance:
    """Acceptance that is monotone in the order of channels; `scale` as for :func:`_between`, for each candidate."""
    return lambda target, draft, k: between(target, draft, lambda p, q: float(rule.acceptance(p, q, k)), scale * k)


_poisson_acceptance = _monotone(PoissonRace(), _RACE_SCALE)


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


def _recursive_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    """P(R <= k) of recursive rejection with i.i.d. candidates, :math:`1-G_k` (R3, §9; certified bound, at most R4's).

    For k > 1 its ends, which are proved above, are not attained.
    """
    if all_known(target, draft):
        value = float(RecursiveRejection().acceptance(*disjoint_tails(target, draft), k))
        return settled(value, _remainder_scale(k), target, draft)
    return _recursive_ends(target, draft, _remainders(target, draft, k), k)


def _recursive_ends(target: TopLogProbs, draft: TopLogProbs, left: _Remainders, k: int) -> Interval:
    """P(R <= k) of recursive rejection from what is left over after k or more rejections, not all being known."""
    best = float(optimal.optimal_acceptance(*best_completion(target, draft), k))
    low, high = 1 - float(left.left_high[k]), 1 - float(left.left_low[k])
    return outward(low, max(low, min(high, best)), _remainder_scale(k) * rounding_slack(target, draft), ceiling=1.0)


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
    return between(target, draft, lambda p, q: float(rule.acceptance_bound(p, q, k)), scale=_RACE_SCALE * k)


def _gumbel_list_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    r"""Acceptance of Gumbel list sampling with k races (R6, §9; certified bound; ``rowan2025``).

    It is not monotone in the order of channels for k > 1: halve the first token of p = (1/2, 1/2), q = (1/4, 3/4), and
    .854 becomes .844 for k = 2. The acceptance given x falls in sums :math:`\sum_{y\ne x}(\alpha q_y-\beta p_y)_+`,
    which for an x known to both are least at the best completion and largest at the disjoint tails: there the ends
    count these outputs. The high end adds the lesser of the probabilities of any other output and of a candidate not
    known to both. It is at most R4's and not attained. k = 1 is the exponential race.
    """
    rule, scale = GumbelList(), 2 * _RACE_SCALE * k
    if k == 1:
        return gumbel_list_acceptance_bound(target, draft, 1)
    low = float(rule.acceptance(*disjoint_tails(target, draft), k))
    if all_known(target, draft):
        return settled(low, scale, target, draft)
    p, q = best_completion(target, draft)
    both = len(overlap(target, draft).both_target)
    of_known = float(np.sum(p[:both] * rule.acceptance_given(p, q, k)[:both]))
    unknown = 1 - min(1.0, float(np.sum(q[:both]))) ** k
    high = min(of_known + min(_reachable(target, draft), unknown), float(optimal.optimal_acceptance(p, q, k)))
    return outward(low, max(low, high), scale * rounding_slack(target, draft) + _INTEGRAL, ceiling=1.0)


def _reachable(target: TopLogProbs, draft: TopLogProbs) -> float:
    """The most target mass on tokens that are not known to both and that the draft may draw."""
    parts, unseen = overlap(target, draft), target.unseen_range[1]
    if draft.complete:
        return min(unseen, target.cap * int(np.count_nonzero(parts.draft_only)))
    return math.fsum([unseen, *parts.target_only])


# Acceptance given the output token, from truncated pmfs, as certified intervals: the factors of the path theorem


def _token_acceptance_given(target: TopLogProbs, draft: TopLogProbs, token: int) -> Interval:
    r"""Acceptance by token verification given the output x, :math:`\min(1, q_x/p_x)` (A1, §9; certified, attained)."""
    (p_low, p_high), (q_low, q_high) = _ranges(target, draft, token)
    # Cut at 1 before dividing: the quotient cannot overflow.
    low = 1.0 if q_low >= p_high else q_low / p_high
    high = float(q_high > 0) if q_high >= p_low else q_high / p_low
    if q_high == 0 or (p_low, q_low) == (p_high, q_high):
        return settled(low, 2.0, target, draft)
    return outward(low, high, 2 * rounding_slack(target, draft), ceiling=1.0)


def _race_acceptance_given(target: TopLogProbs, draft: TopLogProbs, token: int) -> Interval:
    """Acceptance by the exponential race given the output x, :math:`1/(1+g(p_x/q_x))` (A2, §9; certified bound).

    The high end, attained, has the least g at the least ratio p_x/q_x: there the token adds nothing to g. The low end
    has the disjoint tails and the largest ratio; it is 0 if the draft may give the token nothing.
    """
    (p_low, p_high), (q_low, q_high) = _ranges(target, draft, token)
    known = (p_low, q_low) == (p_high, q_high)
    if q_high == 0:
        return Interval.exact(0.0)
    high = 1 / (1 + float(exact.hockey_stick(*best_completion(target, draft), p_low / q_high)))
    if all_known(target, draft) and known:
        return settled(high, _RACE_SCALE, target, draft)
    low = 0.0
    if q_low > 0:
        farthest = float(exact.hockey_stick(*disjoint_tails(target, draft), p_high / q_low))
        # A token at this very ratio adds nothing; a tail of the draft would count it as p.
        low = 1 / (1 + max(0.0, farthest - (0.0 if known else p_high)))
    return outward(min(low, high), high, _RACE_SCALE * rounding_slack(target, draft), ceiling=1.0)


def _poisson_acceptance_given(target: TopLogProbs, draft: TopLogProbs, token: int, k: int) -> Interval:
    """P(R <= k | x) of the Poisson race, :math:`1-(g_x/(1+g_x))^k` (R1, §9; certified): see
    :func:`_race_acceptance_given`.
    """
    one = _race_acceptance_given(target, draft, token)
    # 1 - (1 - a)^k without loss for small a
    low, best, high = (1.0 if a >= 1 else -math.expm1(k * math.log1p(-a)) for a in (one.low, one.best, one.high))
    if one.kind == "exact":
        return Interval.exact(best)
    return outward(low, high, rounding_slack(target, draft), ceiling=1.0)


def _ranges(target: TopLogProbs, draft: TopLogProbs, token: int) -> tuple[tuple[float, float], tuple[float, float]]:
    overlap(target, draft)
    p, q = target.range(token), draft.range(token)
    if p[1] == 0:
        raise SettingError(
            f"token {token} has target probability 0",
            limit="the output must be possible",
            remedy="check that text and settings belong together",
        )
    return p, q


# The race over distinct tokens (R2) when only the largest probabilities are known.
#
# Given the winner i and its time u, R - 1 counts independent events of probability :math:`1-e^{-u\lambda_y}`,
# :math:`\lambda_y = (cq_y-p_y)_+`, c = p_i/q_i. For a winner known to both, the rates of the tokens known to both are
# known; of the others only ranges, and the sum. With a given sum the count is the larger the more evenly it is spread:
# between two tokens, P(neither) stays and P(both) = (1-e^{-ua})(1-e^{-ub}) grows as a and b approach each other. So
#
# - *latest* R: a token with draft probability q has at most the rate c q, and the unseen mass t on N tokens at most N
#   equal rates c t/N;
# - *earliest* R: the sum is at least that of the best completion, and is heaped on as few tokens as their largest rates
#   allow, c q_y or c b; any of them taken together count less still.
#
# Hence **P(R2 <= k) is not monotone in the order of channels** for k > 1: tokens split in proportion are more tokens to
# be passed, and it falls towards the Poisson race's P(R1 <= k), a lower bound; the best completion is no upper one.


_LOG_TIMES = np.linspace(-40.0, 5.0, 361)
_TIMES = np.exp(_LOG_TIMES)
_WEIGHTS = _TIMES * np.exp(-_TIMES) * (_LOG_TIMES[1] - _LOG_TIMES[0])
"""Trapezoid rule in the logarithm of the winner's time: analytic and dying off at both ends, so good to 1e-15."""
_CERTAIN = 1e22
"""A rate of an event that has happened at the first of these times, to the last digit."""
_ROWS = 128
"""Winners at a time."""
_HEAPS = 64
"""Most unseen tokens on which the draft's mass is heaped one by one; what is beyond them counts as one more."""


def _distinct_race_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    """P(R <= k) of the race over distinct tokens (R2, §9; certified bound; ``kobus2025``): O(k m^2) integrals.

    An output known to both counts with its latest rank at the low end, with its earliest at the high one. Any other
    adds nothing to the low end; to the high end at most its probability where the draft may draw it, and at most P(k
    candidates are not all known to both). The low end is at least the Poisson race's. Neither is attained for k > 1.
    """
    if k == 1:
        return _poisson_acceptance(target, draft, 1)
    parts = overlap(target, draft)
    can = np.flatnonzero((parts.both_target > 0) & (parts.both_draft > 0))
    p, c = parts.both_target[can], parts.both_target[can] / parts.both_draft[can]
    known = np.maximum(c[:, None] * parts.both_draft - parts.both_target, 0.0)
    known[np.arange(len(can)), can] = 0.0
    spare = 0.0 if draft.complete else draft.unseen_range[1]
    latest = np.hstack([known, c[:, None] * parts.draft_only])
    low = float(p @ _passed_by_fewer(latest, k, c * spare, draft.hidden))
    # Relative errors of the masses move each rate's event by their size, and the winner with them.
    scale = 4.0 * (len(parts.both_draft) + len(parts.draft_only) + 2)
    if all_known(target, draft) and draft.complete:
        return settled(low, scale, target, draft)
    earliest = np.hstack([known, _heaped(target, draft, c)])
    # Where the first k distinct candidates are not all among the tokens known to both: the others race as one.
    other = math.fsum([spare, *parts.draft_only])
    leaves_known = float(_passed_by_fewer(parts.both_draft[None, :] / other, k)[0]) if other > 0 else 0.0
    high = float(p @ _passed_by_fewer(earliest, k)) + min(_reachable(target, draft), leaves_known)
    return outward(low, max(low, high), scale * rounding_slack(target, draft), ceiling=1.0)


def _heaped(target: TopLogProbs, draft: TopLogProbs, c: Floats) -> Floats:
    """Rates of the earliest rank, of the tokens not known to both, ``[winners, heaps]``."""
    parts = overlap(target, draft)
    p, q = (pmf[len(parts.both_target) :] for pmf in best_completion(target, draft))
    total = np.maximum(c[:, None] * q - p, 0.0).sum(axis=1) - (1 + c) * rounding_slack(target, draft)
    caps = np.concatenate([parts.draft_only, np.full(min(_HEAPS, draft.hidden), draft.cap)])
    before = np.cumsum(np.append(0.0, -np.sort(-caps)))
    left = np.maximum(total[:, None] - c[:, None] * before, 0.0)
    return np.hstack([left[:, :-1] - left[:, 1:], left[:, -1:]])


def _passed_by_fewer(rates: Floats, k: int, even: Floats | None = None, tokens: int = 0) -> Floats:
    """P(fewer than k tokens come before the winner), from their rates; `tokens` more tokens share the rate `even`
    equally.
    """
    shares = np.zeros(len(rates))
    for start in range(0, len(rates), _ROWS):
        rows = slice(start, start + _ROWS)
        counts = np.zeros((k, len(rates[rows]), len(_TIMES)))
        counts[0] = 1.0
        for rate in rates[rows].T:
            exponent = -np.minimum(rate, _CERTAIN)[:, None] * _TIMES
            came, stayed = -np.expm1(exponent), np.exp(exponent)
            counts[1:] = counts[1:] * stayed + counts[:-1] * came
            counts[0] *= stayed
        fewer = np.cumsum(counts, axis=0)
        if even is not None and tokens:
            each = np.minimum(even[rows, None] / tokens, _CERTAIN) * _TIMES
            fewer = sum(_exactly(j, tokens, each) * fewer[k - 1 - j] for j in range(min(k, tokens + 1)))[None]
        shares[rows] = fewer[-1] @ _WEIGHTS
    return shares


def _exactly(j: int, tokens: int, rate: Floats) -> Floats:
    """P(j of `tokens` events of probability 1 - exp(-rate) each)."""
    ways = math.lgamma(tokens + 1) - math.lgamma(j + 1) - math.lgamma(tokens - j + 1)
    with np.errstate(divide="ignore"):
        came = j * np.log(-np.expm1(-rate)) if j else 0.0
    return np.exp(ways + came - (tokens - j) * rate)


# Laws of the rank


def _poisson_rank_pmf(target: TopLogProbs, draft: TopLogProbs, max_rank: int) -> tuple[Interval, ...]:
    """P(R = r), r = 1..max_rank, of the Poisson race, one interval each (R1, §9; certified bound; ``li2018``).

    Given an output known to both, it is :math:`f(g) = g^{r-1}/(1+g)^r` with g between its values at the best completion
    and at the disjoint tails; f has one peak, at g = r - 1. Any other output adds at most the peak times its
    probability, and at most the draft's probability of a candidate not known to both. The law falls in r and is a
    difference of P(R <= r); the tightest of these ends is taken.
    """
    if all_known(target, draft):
        law = PoissonRace().rank_pmf(*disjoint_tails(target, draft), max_rank)
        return tuple(settled(float(x), 2 * _RACE_SCALE * (r + 1), target, draft) for r, x in enumerate(law))
    p, least, most = _odds(target, draft)
    parts = overlap(target, draft)
    spare, unknown = _reachable(target, draft), 1 - math.fsum(parts.both_draft)
    laws = []
    for r in range(1, max_rank + 1):
        low = float(p @ np.minimum(_geometric(least, r), _geometric(most, r)))
        high = float(p @ _geometric(np.clip(r - 1.0, least, most), r))
        high += min(spare * float(_geometric(np.array(r - 1.0), r)), max(unknown, 0.0))
        laws.append(outward(low, high, 4 * _RACE_SCALE * r * rounding_slack(target, draft), ceiling=1.0))
    return _falling(laws, [_poisson_acceptance(target, draft, r + 1) for r in range(max_rank)])


def _recursive_rank_pmf(target: TopLogProbs, draft: TopLogProbs, max_rank: int) -> tuple[Interval, ...]:
    r"""P(R = r), r = 1..max_rank, of recursive rejection with i.i.d. candidates (R3, §9; certified bound).

    It is :math:`\sum_x\min\big((p_x-s_rq_x)_+, G_{r-1}q_x\big)`, falling in s and rising in G, whose ranges
    are those of ``_remainders``. Tokens not known to both add at most G times their draft mass, and at
    most the share G/(s+G) of their target mass T: by convexity at most what they have left, t, and at most
    :math:`G(T-t)/s`. The law falls in r and is a difference of P(R <= r); the tightest of these ends is taken.
    """
    scale = 2 * _remainder_scale(max_rank)
    if all_known(target, draft):
        law = RecursiveRejection().rank_pmf(*disjoint_tails(target, draft), max_rank)
        return tuple(settled(float(x), scale, target, draft) for x in law)
    parts, left = overlap(target, draft), _remainders(target, draft, max_rank)
    p, q = parts.both_target, parts.both_draft
    spare, unknown = _reachable(target, draft), max(0.0, 1 - math.fsum(q))
    laws = []
    for r in range(max_rank):
        low = float(np.minimum(np.maximum(p - left.s_high[r] * q, 0.0), left.left_low[r] * q).sum())
        high = float(np.minimum(np.maximum(p - left.s_low[r] * q, 0.0), left.left_high[r] * q).sum())
        s, most = float(left.s_low[r]), float(left.left_high[r])
        high += min(spare * most / (s + most) if most > 0 else 0.0, most * unknown)
        laws.append(outward(low, high, scale * rounding_slack(target, draft), ceiling=1.0))
    return _falling(laws, [_recursive_ends(target, draft, left, r + 1) for r in range(max_rank)])


def _poisson_rank_pmf_given(target: TopLogProbs, draft: TopLogProbs, token: int, max_rank: int) -> tuple[Interval, ...]:
    r"""P(R = r | x), r = 1..max_rank, of the Poisson race: geometric, :math:`a(1-a)^{r-1}` (R1, §9; certified bound).

    a is that of :func:`_race_acceptance_given`; there is one peak, at a = 1/r, so the ends are tight where a's are.
    """
    one = _race_acceptance_given(target, draft, token)
    laws = []
    for r in range(1, max_rank + 1):
        low, high, top = (a * (1 - a) ** (r - 1) for a in (one.low, one.high, min(max(1 / r, one.low), one.high)))
        widened = outward(min(low, high), top, rounding_slack(target, draft), ceiling=1.0)
        laws.append(Interval.exact(top) if one.kind == "exact" else widened)
    return tuple(laws)


def _recursive_rank_pmf_given(
    target: TopLogProbs, draft: TopLogProbs, token: int, max_rank: int
) -> tuple[Interval, ...]:
    r"""P(R = r | x), r = 1..max_rank, of recursive rejection with i.i.d. candidates (R3, §9; certified bound).

    With a = min(1, q_x/p_x) it is :math:`\min\big((1-s_ra)_+, G_{r-1}a\big)`, with one peak in a, at 1/(s + G).
    """
    one, left = _token_acceptance_given(target, draft, token), _remainders(target, draft, max_rank)
    settles = all_known(target, draft) and one.kind == "exact"
    scale, laws = _remainder_scale(max_rank), []
    for r in range(max_rank):
        nearest, farthest = (left.s_low[r], left.left_high[r]), (left.s_high[r], left.left_low[r])
        top = min(max(1 / sum(nearest), one.low), one.high)
        high = _share(top, *nearest)
        low = min(_share(one.low, *farthest), _share(one.high, *farthest))
        widened = outward(low, high, scale * rounding_slack(target, draft), ceiling=1.0)
        laws.append(Interval.exact(high) if settles else widened)
    return tuple(laws)


def _recursive_acceptance_given(target: TopLogProbs, draft: TopLogProbs, token: int, k: int) -> Interval:
    r"""P(R <= k | x) of recursive rejection with i.i.d. candidates, :math:`\min(1, s_{k+1}q_x/p_x)` (R3, §9;
    certified).

    s is largest at the disjoint tails and least at the best completion.
    """
    one, left = _token_acceptance_given(target, draft, token), _remainders(target, draft, k)
    low, high = (min(1.0, a * float(s)) for a, s in ((one.low, left.s_low[k]), (one.high, left.s_high[k])))
    if all_known(target, draft) and one.kind == "exact":
        return Interval.exact(low)
    return outward(low, high, _remainder_scale(k) * rounding_slack(target, draft), ceiling=1.0)


def _share(a: float, s: float, left: float) -> float:
    return float(min(max(1 - s * a, 0.0), left * a))


def _odds(target: TopLogProbs, draft: TopLogProbs) -> tuple[Floats, Floats, Floats]:
    """Target masses of the tokens known to both that can be drafted, and the least and the largest g at their ratio."""
    parts = overlap(target, draft)
    can = (parts.both_target > 0) & (parts.both_draft > 0)
    p, c = parts.both_target[can], parts.both_target[can] / parts.both_draft[can]
    near, far = best_completion(target, draft), disjoint_tails(target, draft)
    least, most = (np.asarray(exact.hockey_stick(*pair, c)) for pair in (near, far))
    return p, least, np.maximum(least, most)


def _geometric(g: Floats, r: int) -> Floats:
    """P(R = r) of a geometric rank, g^(r-1)/(1+g)^r."""
    return (g / (1 + g)) ** (r - 1) / (1 + g)


def _falling(laws: list[Interval], within: list[Interval]) -> tuple[Interval, ...]:
    """Tighten the law of a rank by P(R <= r), r = 1, 2, ..., of which it is the difference, and by its falling in r."""
    before = [Interval.exact(0.0), *within[:-1]]
    low = [max(law.low, now.low - last.high) for law, now, last in zip(laws, within, before, strict=True)]
    high = [min(law.high, now.high - last.low) for law, now, last in zip(laws, within, before, strict=True)]
    low = list(np.maximum.accumulate(low[::-1])[::-1])
    high = list(np.minimum.accumulate(high))
    ends = ((float(min(a, b)), float(max(a, b))) for a, b in zip(low, high, strict=True))
    return tuple(Interval(a, (a + b) / 2, b, "bound") for a, b in ends)


_RECURSIVE = RuleBounds(
    _recursive_acceptance,
    _recursive_acceptance_given,
    _recursive_rank_pmf,
    _recursive_rank_pmf_given,
    most=MANY,
    most_given=MANY,
)
_TOKEN = RuleBounds(_monotone(TokenVerification(), 1.0), lambda p, q, x, k: _token_acceptance_given(p, q, x))

RANKED: dict[Rule, RuleBounds] = {
    TokenVerification(): _TOKEN,
    BlockVerification(): _TOKEN,
    RaceVerification(): RuleBounds(
        _distinct_race_acceptance, lambda p, q, x, k: _race_acceptance_given(p, q, x), most=MANY
    ),
    PoissonRace(): RuleBounds(
        _poisson_acceptance,
        _poisson_acceptance_given,
        _poisson_rank_pmf,
        _poisson_rank_pmf_given,
        most=MANY,
        most_given=MANY,
    ),
    RecursiveRejection(): _RECURSIVE,
    RecursiveRejection(replacement=False): _TOKEN,
    # min(1 - (g/rho)^k, rho - g) falls in g for every rho, and so does its largest value.
    KSeq(): RuleBounds(_monotone(KSeq(), 1.0), most=MANY),
    GumbelList(): RuleBounds(_gumbel_list_acceptance, most=MANY),
}
"""What is known of rules that reject or race."""
