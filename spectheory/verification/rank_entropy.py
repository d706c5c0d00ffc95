"""The entropy of the rank R: what a draft tree can gain from it (T1), and what channel simulation says of it (§3)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from spectheory.checks import choice, real
from spectheory.distributions import Array, as_floats, as_numpy, sum_tolerance, validate_pair
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.intervals import Interval
from spectheory.verification.geometric_mixture import GeometricMixture, tolerance_in_nats


def rank_entropy(rank_pmf: Any) -> Array:
    r"""Entropy of a rank cut at max_rank, in nats: the ranks beyond are one letter "none" (§3, T1, exact).

    .. math:: H = -\sum_{r \le B} \pi_r \log \pi_r - \pi_\infty \log \pi_\infty, \qquad \pi_\infty = 1 - \sum_r \pi_r .

    This is the H(R) of T1 with an alphabet of A = max_rank + 1 letters. It never exceeds the entropy of the whole rank,
    and it may lie far below KL: it is no H(R) of channel simulation (:func:`poisson_rank_entropy`). `rank_pmf` ``[...,
    max_rank]`` may sum to less than 1.

    Examples
    --------
    >>> round(float(rank_entropy([0.5, 0.25])), 6)
    1.039721
    """
    law = as_floats(rank_pmf, "the rank pmf")
    xp = array_namespace(law)
    if law.ndim == 0 or law.shape[-1] == 0 or not bool(xp.all(law >= 0)):
        raise PmfError("rank pmf is empty, or an entry negative or NaN", limit="P(R = r) >= 0", remedy="use rank_pmf")
    total, slack = xp.sum(law, axis=-1, keepdims=True), sum_tolerance(law.dtype, xp)
    if bool(xp.any(total > 1 + slack)):
        raise PmfError(
            f"rank pmf sums to {float(xp.max(total)):.10g}",
            limit=f"at most 1 within {slack:.1e}",
            remedy="pass P(R = r) of one rule",
        )
    none = xp.where(total < 1, 1 - total, xp.zeros_like(total))
    letters = xp.concat([law, none], axis=-1)
    return -xp.sum(letters * xp.log(xp.where(letters > 0, letters, xp.ones_like(letters))), axis=-1) + 0.0


def poisson_rank_entropy(target: Any, draft: Any, *, tolerance: float = 1e-6) -> Interval:
    """H(R) of the whole, untruncated rank of the Poisson race, nats (R1, bound: certain up to rounding).

    Never below KL (``li2018``); the law is a mixture of geometric ones, summed in blocks of ranks. A draft that lacks a
    token of the target is refused, as R is then infinite: cut the rank and use :func:`rank_entropy`.

    Examples
    --------
    >>> print(poisson_rank_entropy([0.5, 0.5], [0.25, 0.75]))
    0.909
    """
    p, g = _odds(target, draft)
    if np.any(np.isinf(g)):
        raise SettingError(
            f"the draft lacks tokens of target probability {p[np.isinf(g)].sum():.3g}",
            limit="their rank is infinite, and H(R) needs a finite rank",
            remedy="use rank_entropy of the cut rank",
        )
    return GeometricMixture(p, g).mean_of("surprisal", tolerance)


def poisson_rank_entropy_given(target: Any, draft: Any) -> Array:
    r"""H(R|X) of the Poisson race, nats, ``[..., V]`` to ``[...]`` (R1, exact).

    .. math:: H(R|X) = \sum_x p_x\,[(1+g_x)\log(1+g_x) - g_x \log g_x]

    At least KL, at most H(R). Infinite where the draft lacks a token of the target.

    Examples
    --------
    >>> round(float(poisson_rank_entropy_given([0.5, 0.5], [0.25, 0.75])), 6)
    0.693147
    """
    p, q, xp = validate_pair(target, draft)
    g = hockey_stick_at_ratios(p, q, xp)
    one = xp.ones_like(g)
    # log(1+g) + g log(1 + 1/g), the second term 0 at g = 0 and 1 at infinity.
    inner = (g > 0) & (g < math.inf)
    safe = xp.where(inner, g, one)
    with np.errstate(over="ignore"):
        spread = safe * xp.log1p(1 / safe)
    # 1/g beyond the floats: g log(1/g) is below 1e-305.
    spread = xp.where(xp.isinf(spread) | (g == 0), 0 * one, spread)
    entropy = xp.log1p(g) + xp.where(g < math.inf, spread, one)
    return xp.sum(p * xp.where(p > 0, entropy, 0 * one), axis=-1)


def expected_log_rank(target: Any, draft: Any, *, tolerance: float = 1e-6) -> Interval:
    r"""E log R of the Poisson race, nats (R1, bound: certain up to rounding; ``li2018``).

    At most :func:`poisson_rank_log_bound`. Infinite where the draft lacks a token of the target.

    Examples
    --------
    >>> print(expected_log_rank([0.5, 0.5], [0.25, 0.75]))
    0.254
    """
    tolerance_in_nats(tolerance)
    p, g = _odds(target, draft)
    if np.any(np.isinf(g)):
        return Interval.exact(math.inf)
    return GeometricMixture(p, g).mean_of("log rank", tolerance)


def poisson_rank_log_bound(target: Any, draft: Any) -> Array:
    r"""Upper bound :math:`\sum_x p_x \log(1+p_x/q_x) \le KL + \log 2` on E log R, nats, ``[..., V]`` to ``[...]``.

    Assumes the Poisson race, or any selection that stops no later in the mean given the output: E[R|x] = 1 + g_x is at
    most 1 + p_x/q_x (R1, upper bound; ``li2018``). Infinite where the draft lacks a token of the target.

    Examples
    --------
    >>> round(float(poisson_rank_log_bound([0.5, 0.5], [0.25, 0.75])), 6)
    0.804719
    """
    p, q, xp = validate_pair(target, draft)
    p, q = p + 0 * q, q + 0 * p
    both = (p > 0) & (q > 0)
    small, large = xp.minimum(p, q), xp.maximum(p, q)
    one = xp.ones_like(p)
    # log(1 + p/q) without the quotient that may be beyond the floats: log1p(small/large) + log(large/q).
    log1p = xp.log1p(small / xp.where(both, large, one))
    beyond = xp.log(xp.where(both & (p > q), p, one)) - xp.log(xp.where(both & (p > q), q, one))
    terms = xp.where(both, p * (log1p + beyond), 0 * one)
    return xp.sum(xp.where((p > 0) & (q == 0), math.inf * one, terms), axis=-1)


def rank_entropy_bound(mean_log_rank: float, unit: Literal["nats", "bits"] = "nats") -> float:
    r"""Upper bound :math:`H(R) \le E + \log(E+1) + 1` on any rank's entropy from :math:`E = E\log R` (``li2018``).

    Printed in bits: both logarithms, E and H(R) to base 2. With everything in nats it holds too and is *another* bound,
    not the same one converted. Assumes nothing but R in 1, 2, ...

    Examples
    --------
    >>> round(rank_entropy_bound(1.0), 6), rank_entropy_bound(1.0, unit="bits")
    (2.693147, 3.0)
    """
    choice("unit", unit, ("nats", "bits"), remedy="name one: the two bounds differ")
    mean_log_rank = checked_mean_log_rank(mean_log_rank)
    return mean_log_rank + math.log1p(mean_log_rank) / (math.log(2) if unit == "bits" else 1.0) + 1.0


def checked_mean_log_rank(mean_log_rank: float) -> float:
    """E log R as a float >= 0, which may be infinite."""
    remedy = "ranks are counted from 1"
    return real("E log R", mean_log_rank, lambda mean: mean >= 0, limit="must be >= 0", remedy=remedy)


def one_pair(target: Array, draft: Array) -> None:
    """Refuse batches where the answer is one interval."""
    if target.ndim != 1 or draft.ndim != 1:
        raise ShapeError(
            f"target is {tuple(target.shape)} and draft {tuple(draft.shape)}",
            limit="one pair [V]",
            remedy="call it for each pair",
        )


def _odds(target: Any, draft: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The masses p and odds g of the tokens that a single target pmf can output."""
    p, q, xp = validate_pair(target, draft)
    one_pair(p, q)
    g, mass = as_numpy(hockey_stick_at_ratios(p, q, xp)), as_numpy(p)
    return mass[mass > 0], g[mass > 0]
