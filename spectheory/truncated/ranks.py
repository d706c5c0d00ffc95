"""Laws of the rank from two truncated pmfs, as certified intervals: R1 and R3, alone and given the output."""

from __future__ import annotations

import math

import numpy as np

import spectheory.divergences as exact
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.truncated.candidates import (
    RACE_SCALE,
    poisson_race_acceptance,
    reachable,
    recursive_ends,
    remainder_scale,
    remainders,
)
from spectheory.truncated.completions import all_known, best_completion, disjoint_tails, overlap
from spectheory.truncated.top import Floats, TopLogProbs, outward, rounding_slack, settled
from spectheory.verification.base import at_least_one
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.recursive import RecursiveRejection

# Acceptance given the output token, from truncated pmfs, as certified intervals: the factors of the path theorem


def token_acceptance_given(target: TopLogProbs, draft: TopLogProbs, token: int) -> Interval:
    r"""Acceptance by token verification given the output x, :math:`\min(1, q_x/p_x)` (A1, §9; certified, attained)."""
    (p_low, p_high), (q_low, q_high) = _ranges(target, draft, token)
    # Cut at 1 before dividing: the quotient cannot overflow.
    low = 1.0 if q_low >= p_high else q_low / p_high
    high = float(q_high > 0) if q_high >= p_low else q_high / p_low
    if q_high == 0 or (p_low, q_low) == (p_high, q_high):
        return settled(low, 2.0, target, draft)
    return outward(low, high, 2 * rounding_slack(target, draft), ceiling=1.0)


def race_acceptance_given(target: TopLogProbs, draft: TopLogProbs, token: int) -> Interval:
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
        return settled(high, RACE_SCALE, target, draft)
    low = 0.0
    if q_low > 0:
        farthest = float(exact.hockey_stick(*disjoint_tails(target, draft), p_high / q_low))
        # A token at this very ratio adds nothing; a tail of the draft would count it as p.
        low = 1 / (1 + max(0.0, farthest - (0.0 if known else p_high)))
    return outward(min(low, high), high, RACE_SCALE * rounding_slack(target, draft), ceiling=1.0)


def poisson_race_acceptance_given(target: TopLogProbs, draft: TopLogProbs, token: int, k: int) -> Interval:
    """P(R <= k | x) of the Poisson race, :math:`1-(g_x/(1+g_x))^k` (R1, §9; certified): see
    :func:`race_acceptance_given`.
    """
    at_least_one("k", k)
    one = race_acceptance_given(target, draft, token)
    low, best, high = (_within(success, k) for success in (one.low, one.best, one.high))
    if one.kind == "exact":
        return Interval.exact(best)
    return outward(low, high, rounding_slack(target, draft), ceiling=1.0)


def independent_acceptance_given(draft: TopLogProbs, token: int) -> Interval:
    """Acceptance by an independent match given the output x, q_x (A4, §9; certified, both ends attained)."""
    low, high = draft.range(token)
    return settled(low, 1.0, draft) if low == high else outward(low, high, rounding_slack(draft), ceiling=1.0)


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


def _within(success: float, k: int) -> float:
    """P(R <= k) = 1 - (1 - success)^k of a geometric rank, without loss for small successes."""
    return 1.0 if success >= 1 else -math.expm1(k * math.log1p(-success))


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


def distinct_race_acceptance(target: TopLogProbs, draft: TopLogProbs, k: int) -> Interval:
    """P(R <= k) of the race over distinct tokens (R2, §9; certified bound; ``kobus2025``): O(k m^2) integrals.

    An output known to both counts with its latest rank at the low end, with its earliest at the high one. Any other
    adds nothing to the low end; to the high end at most its probability where the draft may draw it, and at most P(k
    candidates are not all known to both). The low end is at least the Poisson race's. Neither is attained for k > 1.
    """
    at_least_one("k", k)
    if k == 1:
        return poisson_race_acceptance(target, draft, 1)
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
    high = float(p @ _passed_by_fewer(earliest, k)) + min(reachable(target, draft), leaves_known)
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
    found = np.zeros(len(rates))
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
        found[rows] = fewer[-1] @ _WEIGHTS
    return found


def _exactly(j: int, tokens: int, rate: Floats) -> Floats:
    """P(j of `tokens` events of probability 1 - exp(-rate) each)."""
    ways = math.lgamma(tokens + 1) - math.lgamma(j + 1) - math.lgamma(tokens - j + 1)
    with np.errstate(divide="ignore"):
        came = j * np.log(-np.expm1(-rate)) if j else 0.0
    return np.exp(ways + came - (tokens - j) * rate)


# Laws of the rank


def poisson_rank_pmf(target: TopLogProbs, draft: TopLogProbs, max_rank: int) -> tuple[Interval, ...]:
    """P(R = r), r = 1..max_rank, of the Poisson race, one interval each (R1, §9; certified bound; ``li2018``).

    Given an output known to both, it is :math:`f(g) = g^{r-1}/(1+g)^r` with g between its values at the best completion
    and at the disjoint tails; f has one peak, at g = r - 1. Any other output adds at most the peak times its
    probability, and at most the draft's probability of a candidate not known to both. The law falls in r and is a
    difference of P(R <= r); the tightest of these ends is taken.
    """
    at_least_one("max_rank", max_rank)
    if all_known(target, draft):
        law = PoissonRace().rank_pmf(*disjoint_tails(target, draft), max_rank)
        return tuple(settled(float(x), 2 * RACE_SCALE * (r + 1), target, draft) for r, x in enumerate(law))
    p, least, most = _odds(target, draft)
    parts = overlap(target, draft)
    spare, drawn = reachable(target, draft), 1 - math.fsum(parts.both_draft)
    laws = []
    for r in range(1, max_rank + 1):
        ends, peak = [_geometric(g, r) for g in (least, most)], _geometric(np.array(r - 1.0), r)
        low = float(p @ np.minimum(*ends))
        over = (least <= r - 1) & (r - 1 <= most)
        high = float(p @ np.where(over, peak, np.maximum(*ends)))
        high += min(spare * float(peak), max(drawn, 0.0))
        laws.append(outward(low, high, 4 * RACE_SCALE * r * rounding_slack(target, draft), ceiling=1.0))
    return _falling(laws, [poisson_race_acceptance(target, draft, r + 1) for r in range(max_rank)])


def recursive_rank_pmf(target: TopLogProbs, draft: TopLogProbs, max_rank: int) -> tuple[Interval, ...]:
    r"""P(R = r), r = 1..max_rank, of recursive rejection with i.i.d. candidates (R3, §9; certified bound).

    It is :math:`\sum_x\min\big((p_x-s_rq_x)_+, G_{r-1}q_x\big)`, falling in s and rising in G, whose ranges
    :mod:`spectheory.truncated.candidates` gives. Tokens not known to both add at most G times their draft mass, and at
    most the share G/(s+G) of their target mass T: by convexity at most what they have left, t, and at most
    :math:`G(T-t)/s`. The law falls in r and is a difference of P(R <= r); the tightest of these ends is taken.
    """
    at_least_one("max_rank", max_rank)
    scale = 2 * remainder_scale(max_rank)
    if all_known(target, draft):
        law = RecursiveRejection().rank_pmf(*disjoint_tails(target, draft), max_rank)
        return tuple(settled(float(x), scale, target, draft) for x in law)
    parts, left = overlap(target, draft), remainders(target, draft, max_rank)
    p, q = parts.both_target, parts.both_draft
    spare, drawn = reachable(target, draft), max(0.0, 1 - math.fsum(q))
    laws = []
    for r in range(max_rank):
        low = float(np.minimum(np.maximum(p - left.s_high[r] * q, 0.0), left.left_low[r] * q).sum())
        high = float(np.minimum(np.maximum(p - left.s_low[r] * q, 0.0), left.left_high[r] * q).sum())
        s, most = float(left.s_low[r]), float(left.left_high[r])
        high += min(spare * most / (s + most) if most > 0 else 0.0, most * drawn)
        laws.append(outward(low, high, scale * rounding_slack(target, draft), ceiling=1.0))
    return _falling(laws, [recursive_ends(target, draft, left, r + 1) for r in range(max_rank)])


def poisson_rank_pmf_given(target: TopLogProbs, draft: TopLogProbs, token: int, max_rank: int) -> tuple[Interval, ...]:
    r"""P(R = r | x), r = 1..max_rank, of the Poisson race: geometric, :math:`a(1-a)^{r-1}` (R1, §9; certified bound).

    a is that of :func:`race_acceptance_given`; there is one peak, at a = 1/r, so the ends are tight where a's are.
    """
    at_least_one("max_rank", max_rank)
    one = race_acceptance_given(target, draft, token)
    laws = []
    for r in range(1, max_rank + 1):
        low, high, top = (a * (1 - a) ** (r - 1) for a in (one.low, one.high, min(max(1 / r, one.low), one.high)))
        widened = outward(min(low, high), top, rounding_slack(target, draft), ceiling=1.0)
        laws.append(Interval.exact(top) if one.kind == "exact" else widened)
    return tuple(laws)


def recursive_rank_pmf_given(
    target: TopLogProbs, draft: TopLogProbs, token: int, max_rank: int
) -> tuple[Interval, ...]:
    r"""P(R = r | x), r = 1..max_rank, of recursive rejection with i.i.d. candidates (R3, §9; certified bound).

    With a = min(1, q_x/p_x) it is :math:`\min\big((1-s_ra)_+, G_{r-1}a\big)`, with one peak in a, at 1/(s + G).
    """
    at_least_one("max_rank", max_rank)
    one, left = token_acceptance_given(target, draft, token), remainders(target, draft, max_rank)
    settles = all_known(target, draft) and one.kind == "exact"
    scale, laws = remainder_scale(max_rank), []
    for r in range(max_rank):
        nearest, farthest = (left.s_low[r], left.left_high[r]), (left.s_high[r], left.left_low[r])
        top = min(max(1 / sum(nearest), one.low), one.high)
        high = _share(top, *nearest)
        low = min(_share(one.low, *farthest), _share(one.high, *farthest))
        widened = outward(low, high, scale * rounding_slack(target, draft), ceiling=1.0)
        laws.append(Interval.exact(high) if settles else widened)
    return tuple(laws)


def recursive_acceptance_given(target: TopLogProbs, draft: TopLogProbs, token: int, k: int) -> Interval:
    r"""P(R <= k | x) of recursive rejection with i.i.d. candidates, :math:`\min(1, s_{k+1}q_x/p_x)` (R3, §9;
    certified).

    s is largest at the disjoint tails and least at the best completion.
    """
    at_least_one("k", k)
    one, left = token_acceptance_given(target, draft, token), remainders(target, draft, k)
    low, high = (min(1.0, a * float(s)) for a, s in ((one.low, left.s_low[k]), (one.high, left.s_high[k])))
    if all_known(target, draft) and one.kind == "exact":
        return Interval.exact(low)
    return outward(low, high, remainder_scale(k) * rounding_slack(target, draft), ceiling=1.0)


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
