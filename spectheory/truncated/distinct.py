r"""The race over distinct tokens (R2) when only the largest probabilities are known.

Given the winner i and its time u, R - 1 counts independent events of probability :math:`1-e^{-u\lambda_y}`,
:math:`\lambda_y = (cq_y-p_y)_+`, c = p_i/q_i. For a winner known to both, the rates of the tokens known to both are
known; of the others only ranges, and the sum. With a given sum the count is the larger the more evenly it is spread:
between two tokens, P(neither) stays and P(both) = (1-e^{-ua})(1-e^{-ub}) grows as a and b approach each other. So

- *latest* R: a token with draft probability q has at most the rate c q, and the unseen mass t on N tokens at most N
  equal rates c t/N;
- *earliest* R: the sum is at least that of the best completion, and is heaped on as few tokens as their largest rates
  allow, c q_y or c b; any of them taken together count less still.

Hence **P(R2 <= k) is not monotone in the order of channels** for k > 1: tokens split in proportion are more tokens to
be passed, and it falls towards the Poisson race's P(R1 <= k), a lower bound; the best completion is no upper one.
"""

from __future__ import annotations

import math

import numpy as np

from spectheory.intervals import Interval
from spectheory.truncated.candidates import poisson_race_acceptance, reachable
from spectheory.truncated.completions import all_known, best_completion, overlap
from spectheory.truncated.masses import Floats
from spectheory.truncated.outward import outward, rounding_slack, settled
from spectheory.truncated.top import TopLogProbs
from spectheory.verification.base import at_least_one

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
    high = float(p @ _passed_by_fewer(earliest, k)) + min(
        reachable(target, draft), _leaves_known(parts.both_draft, math.fsum([spare, *parts.draft_only]), k)
    )
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


def _leaves_known(q: Floats, other: float, k: int) -> float:
    """P(the first k distinct candidates are not all among the tokens of draft masses q): the others race as one."""
    return float(_passed_by_fewer(q[None, :] / other, k)[0]) if other > 0 else 0.0


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
