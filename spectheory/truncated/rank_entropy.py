"""The entropy of the Poisson race's rank from two truncated pmfs, as a certified interval (R1, §3)."""

from __future__ import annotations

import math

import numpy as np

import spectheory.divergences as exact
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.truncated.completions import all_known, best_completion, disjoint_tails, farthest_ratios, overlap
from spectheory.truncated.divergences import kl_divergence
from spectheory.truncated.top import Floats, TopLogProbs, outward, rounding_slack
from spectheory.verification.rank_entropy import checked_mean_log_rank, tolerance_in_nats
from spectheory.verification.rank_entropy import poisson_rank_entropy as entropy_of_pmfs

_EXPONENTS = (1 + 1e-9, 1100.0)
"""Zeta laws r^-s that are tried: of huge ranks and, with less beyond rank 1 than a float can hold, of none."""

_LARGE_EXPONENT = 100.0
"""Beyond it scipy's zeta(s) - 1 runs out."""

_UNITS = 16
"""Units in the last place by which sE + log zeta(s) is rounded up; zeta(s) - 1 is good to 4."""


def poisson_rank_entropy(target: TopLogProbs, draft: TopLogProbs, *, tolerance: float = 1e-6) -> Interval:
    r"""H(R) of the whole rank of the Poisson race over all completions, nats (R1, §9; certified bound; ``li2018``).

    Completions in which the draft lacks a token of the target are left out: R is infinite there. Low end: the larger of
    KL at the best completion and of :math:`H(R|X) = \sum_x p_x[(1+g_x)\log(1+g_x)-g_x\log g_x]` over the tokens the
    target knows, with the least g at the least ratio (it rises in g); KL <= H(R|X) <= H(R). High end, infinite as a
    rule and rightly so: an output with q near 0 has any rank. It is finite if the draft's unseen mass leaves none of
    its tokens out; then :math:`E\log R \le \sum_x p_x\log(1+g_x)` (Jensen), with g_x at most p_x/q_x, and
    H(R) is at most the largest entropy that goes with it (:func:`largest_rank_entropy`).

    Examples
    --------
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(poisson_rank_entropy(p, q))
    0.693 [0.693, inf]
    """
    tolerance_in_nats(tolerance)
    kl = kl_divergence(target, draft)
    if kl.low == math.inf:
        raise SettingError(
            "the draft lacks a token of the target in every completion",
            limit="its rank is infinite, and H(R) needs a finite rank",
            remedy="use the law of the cut rank, spectheory.truncated.rank_pmf",
        )
    if all_known(target, draft) and target.complete and not (target.error or draft.error):
        return entropy_of_pmfs(*disjoint_tails(target, draft), tolerance=tolerance)
    low = max(kl.low, _least_conditional(target, draft))
    masses, ratios = farthest_ratios(target, draft)
    if np.any(ratios == math.inf):
        return Interval(low, low, math.inf, "bound")
    slack = rounding_slack(target, draft)
    g = np.asarray(exact.hockey_stick(*disjoint_tails(target, draft), ratios)) + (1 + ratios) * slack
    mean = float(masses @ np.log1p(np.minimum(g, ratios))) + slack * (1 + float(np.log1p(ratios.max())))
    return outward(low, max(low, largest_rank_entropy(mean)), slack, relative=True)


def _least_conditional(target: TopLogProbs, draft: TopLogProbs) -> float:
    """A lower bound on H(R|X), nats: over the tokens the target knows, with rounding taken off."""
    parts, slack = overlap(target, draft), rounding_slack(target, draft)
    largest = min(draft.cap, draft.unseen_range[1])
    p = np.concatenate([parts.both_target, parts.target_only])
    q = np.concatenate([parts.both_draft, np.full(len(parts.target_only), largest)])
    can = (p > 0) & (q > 0)
    p, c = p[can], p[can] / q[can]
    g = np.asarray(exact.hockey_stick(*best_completion(target, draft), c)) - 2 * (1 + c) * slack
    return float((p * (1 - slack)) @ _geometric_entropy(np.maximum(g, 0.0)))


def _geometric_entropy(g: Floats) -> Floats:
    """(1+g) log(1+g) - g log g, the entropy of a geometric rank with odds g of going on."""
    safe = np.where(g > 0, g, 1.0)
    return np.log1p(g) + np.where(g > 0, g * np.log1p(1 / safe), 0.0)


def largest_rank_entropy(mean_log_rank: float) -> float:
    r"""Upper bound :math:`\min_{s>1} sE+\log\zeta(s)` on H(R), nats, of any rank with :math:`E\log R \le E` nats (§3).

    For any s the entropy is at most the mean of :math:`-\log(R^{-s}/\zeta(s))`. No law allows less, since
    one with :math:`P(R=r)` in proportion to :math:`r^{-s}` attains it. It is below both forms of ``li2018``: they
    are s = 1 + 1/E, in nats and in bits, with :math:`\zeta(s) \le s/(s-1)`.

    Examples
    --------
    >>> round(largest_rank_entropy(1.0), 6)
    2.419549
    """
    from scipy.optimize import minimize_scalar

    mean_log_rank = checked_mean_log_rank(mean_log_rank)
    if mean_log_rank in (0, math.inf):
        return float(mean_log_rank)

    def entropy(log_excess: float) -> float:
        s = 1 + math.exp(log_excess)
        return s * mean_log_rank + math.log1p(_zeta_minus_one(s))

    bounds = tuple(math.log(s - 1) for s in _EXPONENTS)
    least = float(minimize_scalar(entropy, bounds=bounds, method="bounded").fun)
    return least + _UNITS * math.ulp(least)


def _zeta_minus_one(s: float) -> float:
    """zeta(s) - 1 or, for large s, 2^-s + 3^-s and the integral of x^-s beyond 3, which is more."""
    from scipy.special import zetac

    return float(zetac(s)) if s <= _LARGE_EXPONENT else 2.0**-s + 3.0**-s * (s + 2) / (s - 1)
