"""Laws of the rank from two truncated pmfs, as certified intervals: R1 and R3, alone and given the output."""

from __future__ import annotations

import math

import numpy as np

import spectheory.divergences as exact
from spectheory.intervals import Interval
from spectheory.truncated.candidates import RACE_SCALE, poisson_race_acceptance, reachable, recursive_ends
from spectheory.truncated.completions import all_known, best_completion, disjoint_tails, overlap
from spectheory.truncated.given import race_acceptance_given, token_acceptance_given
from spectheory.truncated.masses import Floats
from spectheory.truncated.outward import outward, rounding_slack, settled
from spectheory.truncated.remainder import remainder_scale, remainders
from spectheory.truncated.top import TopLogProbs
from spectheory.verification.base import at_least_one
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.recursive import RecursiveRejection


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
    :mod:`spectheory.truncated.remainder` gives. Tokens not known to both add at most G times their draft mass, and at
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
