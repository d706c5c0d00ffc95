"""Acceptance given the output token, from truncated pmfs, as certified intervals: the factors of the path theorem."""

from __future__ import annotations

import math

import spectheory.divergences as exact
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.truncated.candidates import RACE_SCALE
from spectheory.truncated.completions import all_known, best_completion, disjoint_tails, overlap
from spectheory.truncated.outward import outward, rounding_slack, settled
from spectheory.truncated.top import TopLogProbs
from spectheory.verification.base import at_least_one


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
