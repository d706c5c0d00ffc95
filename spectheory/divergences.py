"""D1-D3: divergences of two pmfs ``[..., V]``, in nats, over the last axis, in the arrays' own precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from spectheory import kernels
from spectheory.checks import BEYOND, real
from spectheory.distributions import (
    Array,
    as_floats,
    first_true,
    fit_together,
    like,
    ratio,
    validate_pair,
    validate_pmf,
    widened,
)
from spectheory.errors import SettingError

__all__ = [
    "chi_square",
    "entropy",
    "harmonic_mean_distance",
    "harmonic_mean_similarity",
    "hockey_stick",
    "kl_divergence",
    "renyi_divergence",
    "second_log_moment",
    "total_variation",
]

_SERIES_TERMS = 22
"""Terms of the series of (1+u)log(1+u) - u on |u| <= 1/5; the first one left out is below 1e-17 of the sum."""

_SMALL_STEP, _POWER_TERMS = 0.2, 26
"""Range of the binomial series of the Rényi sum, and its terms; the first one left out is below 1e-16."""


def total_variation(target: Any, draft: Any) -> Array:
    r"""Total variation distance, :math:`\tfrac12\sum_x |p_x - q_x|`, in [0, 1] (D1, exact).

    One minus this is the acceptance rate of token verification (A1, ``leviathan2023``).

    Examples
    --------
    >>> float(total_variation([0.5, 0.5], [1.0, 0.0]))
    0.5
    """
    p, q, xp = validate_pair(target, draft)
    return xp.sum(xp.abs(p - q), axis=-1) / 2


def kl_divergence(target: Any, draft: Any) -> Array:
    r"""Kullback-Leibler divergence :math:`\sum_x p_x \log(p_x/q_x)` in nats (D1, exact).

    Infinite where the draft lacks a token of the target. Summed as :math:`p\log(p/q) - p + q`, whose terms are never
    negative, so nearly equal pmfs lose no digits.

    Examples
    --------
    >>> round(float(kl_divergence([0.5, 0.5], [0.25, 0.75])), 6)
    0.143841
    """
    p, q, xp = validate_pair(target, draft)
    both = (p > 0) & (q > 0)
    one = xp.ones_like(p * q)
    safe_p, safe_q = xp.where(both, p, one), xp.where(both, q, one)
    with np.errstate(over="ignore"):  # far from 1 the ratio is not used
        u = (safe_p - safe_q) / safe_q
    near = xp.abs(u) <= 0.2
    u_near = xp.where(near, u, 0 * one)
    series = 0 * one
    for n in range(_SERIES_TERMS, 1, -1):
        series = (-1) ** n / (n * (n - 1)) + u_near * series
    far = safe_p * (xp.log(safe_p) - xp.log(safe_q)) - safe_p + safe_q
    terms = xp.where(near, safe_q * u_near * u_near * series, far)
    # Where one of the two is zero the term is q (p = 0) or infinite (q = 0 < p).
    alone = xp.where(p > 0, math.inf * one, q + 0 * one)
    return xp.sum(xp.where(both, terms, alone), axis=-1)


def entropy(pmf: Any) -> Array:
    r"""Shannon entropy :math:`-\sum_x p_x \log p_x` in nats, in [0, log V] (D1, exact).

    Examples
    --------
    >>> round(float(entropy([0.5, 0.5])), 6)
    0.693147
    """
    p = validate_pmf(pmf)
    xp = array_namespace(p)
    return -xp.sum(p * _log(p, xp), axis=-1) + 0.0


def second_log_moment(pmf: Any) -> Array:
    r"""Second moment of the surprisal, :math:`M_2 = \sum_x p_x \log^2 p_x` in nats squared (D1, exact).

    At least the square of the entropy. Both enter the branching bounds of §5 (``pankratov2026``).

    Examples
    --------
    >>> round(float(second_log_moment([0.5, 0.5])), 6)
    0.480453
    """
    p = validate_pmf(pmf)
    xp = array_namespace(p)
    return xp.sum(p * _log(p, xp) ** 2, axis=-1)


def _log(values: Array, xp: Any) -> Array:
    """Entrywise logarithm with log 0 = 0, for factors that are 0 there."""
    return xp.log(xp.where(values > 0, values, xp.ones_like(values)))


def renyi_divergence(target: Any, draft: Any, order: float) -> Array:
    r"""Rényi divergence :math:`\frac{1}{a-1}\log\sum_x p_x^a q_x^{1-a}` of `order` a in (0, inf], in nats (D1, exact).

    Order 1 is the Kullback-Leibler divergence, order inf is :math:`\log\max_x p_x/q_x`. Nondecreasing in the order.

    Examples
    --------
    >>> round(float(renyi_divergence([0.5, 0.5], [0.25, 0.75], 2)), 6)
    0.287682
    """
    order = checked_order(order)
    if order == 1:
        return kl_divergence(target, draft)
    p, q, xp = validate_pair(target, draft)
    log_ratio = xp.where((p > 0) & (q > 0), _log(p, xp) - _log(q, xp), 0 * (p + q))
    missing = xp.any((p > 0) & (q == 0), axis=-1)
    if order == math.inf:
        value = xp.max(xp.where((p > 0) & (q > 0), log_ratio, xp.full_like(log_ratio, -math.inf)), axis=-1)
        value = xp.where(value > 0, value, xp.zeros_like(value))
    else:
        exponent = _log(p, xp) + (order - 1) * log_ratio
        exponent = xp.where((p > 0) & (q > 0), exponent, xp.full_like(log_ratio, -math.inf))
        top = xp.max(exponent, axis=-1, keepdims=True)
        shift = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
        total = xp.sum(xp.exp(exponent - shift), axis=-1)
        log_total = xp.where(total > 0, _log(total, xp) + shift[..., 0], xp.full_like(total, -math.inf))
        # Near one the sum loses digits, so its distance from one is summed instead, from terms of one sign.
        excess = xp.sum(_power_excess(p, q, log_ratio, order, xp), axis=-1)
        near = xp.abs(log_total) < math.log(2)
        value = xp.where(near, xp.log1p(xp.where(near, excess, xp.zeros_like(excess))), log_total) / (order - 1)
    return xp.where(missing, xp.full_like(value, math.inf), value) if order > 1 else value


def checked_order(order: float) -> float:
    """The order of a Rényi divergence as a float."""
    limit = f"must be > 0, and inf or below {BEYOND:g}"
    return real("order", order, lambda a: 0 < a < BEYOND or a == math.inf, limit=limit, remedy="1 is the KL divergence")


def _power_excess(p: Array, q: Array, log_ratio: Array, order: float, xp: Any) -> Array:
    """Terms :math:`p^a q^{1-a} - a p - (1-a) q` of the Rényi sum less one: of the sign of a (a - 1), 0 at p = q.

    With p = (1 + u) q a term is :math:`q((1+u)^a - 1 - au)`: for small u the binomial series from its second term, else
    a form whose parts do not cancel.
    """
    step = order - 1
    with np.errstate(over="ignore", invalid="ignore"):
        if order < 0.5:
            direct = q * xp.expm1(order * log_ratio) - order * (p - q)
        else:
            direct = p * xp.expm1(step * log_ratio) - step * (p - q)
    direct = xp.where((p > 0) & (q > 0), direct, -order * p - (1 - order) * q)
    u = (p - q) / xp.where(q > 0, q, xp.ones_like(q))
    small = (q > 0) & (xp.abs(u) * max(order, 1.0) <= _SMALL_STEP)
    u = xp.where(small, u, xp.zeros_like(u))
    series, coefficient, power = xp.zeros_like(u), order * step / 2, u * u
    with np.errstate(invalid="ignore"):  # coefficients of a huge order are infinite; a term of u = 0 counts as 0
        for j in range(2, _POWER_TERMS):
            series = series + coefficient * power
            power, coefficient = power * u, coefficient * (order - j) / (j + 1)
    terms = xp.where(small, q * series, direct)
    # A term of the wrong sign is rounding error.
    kept = terms > 0 if order > 1 else terms < 0
    return xp.where(kept, terms, xp.zeros_like(terms))


def chi_square(target: Any, draft: Any) -> Array:
    r"""Chi-square divergence :math:`\sum_x (p_x-q_x)^2/q_x = \sum_x p_x^2/q_x - 1` (D1, exact).

    Infinite where the draft lacks a token of the target.

    Examples
    --------
    >>> round(float(chi_square([0.5, 0.5], [0.25, 0.75])), 6)
    0.333333
    """
    p, q, xp = validate_pair(target, draft)
    safe = xp.where(q > 0, q, xp.ones_like(q))
    infinite = xp.where(p > 0, math.inf * xp.ones_like(p), xp.zeros_like(p))
    with np.errstate(over="ignore"):  # an overflow is infinite
        return xp.sum(xp.where(q > 0, (p - q) * ((p - q) / safe), infinite), axis=-1)


def harmonic_mean_similarity(target: Any, draft: Any) -> Array:
    r"""Sum of the harmonic means, :math:`S_{HM} = \sum_x \frac{2 p_x q_x}{p_x+q_x}`, in [0, 1] (D2, exact).

    It brackets the race's acceptance: :math:`\tfrac12 S_{HM} \le \alpha_{race} \le 1-TV \le S_{HM}` (A3, ``kobus2025``
    Lemma 3.1).

    Examples
    --------
    >>> round(float(harmonic_mean_similarity([0.5, 0.5], [0.25, 0.75])), 6)
    0.933333
    """
    p, q, xp = validate_pair(target, draft)
    total = p + q
    return xp.sum(2 * p * (q / xp.where(total > 0, total, xp.ones_like(total))), axis=-1)


def harmonic_mean_distance(target: Any, draft: Any) -> Array:
    r"""Harmonic-mean distance :math:`1 - S_{HM} = \tfrac12\sum_x \frac{(p_x-q_x)^2}{p_x+q_x}`, in [0, 1] (D2, exact).

    Half the triangular discrimination. ``kobus2025`` names a harmonic mean distance; which normalisation it prints
    could not be confirmed, so the package has this and the similarity.

    Examples
    --------
    >>> round(float(harmonic_mean_distance([0.5, 0.5], [0.25, 0.75])), 6)
    0.066667
    """
    p, q, xp = validate_pair(target, draft)
    total = p + q
    return xp.sum((p - q) * ((p - q) / xp.where(total > 0, total, xp.ones_like(total))), axis=-1) / 2


def hockey_stick(target: Any, draft: Any, c: Any) -> Array:
    r"""Hockey-stick divergence in the race's form, :math:`g(c) = \sum_y (c\,q_y - p_y)_+`, in [0, c] (D3, exact).

    The weight c of the draft is a number or an array ``[...]``, finite and >= 0. Convex and nondecreasing in c, with
    g(1) = TV.

    Examples
    --------
    >>> float(hockey_stick([0.5, 0.5], [1.0, 0.0], 2.0))
    1.5
    """
    p, q, xp = validate_pair(target, draft)
    weight = like(as_floats(c, "c", SettingError), p, xp)
    wrong = ~((weight >= 0) & xp.isfinite(weight))
    if bool(xp.any(wrong)):
        value = float(weight[first_true(wrong, xp)])
        raise SettingError(f"c is {value:g}", limit="must be finite and >= 0", remedy="pass a finite weight")
    fit_together("c and the pmfs", weight, p[..., 0], q[..., 0])
    excess = weight[..., None] * q - p
    return xp.sum(xp.where(excess > 0, excess, xp.zeros_like(excess)), axis=-1)


def hockey_stick_at_ratios(target: Array, draft: Array, xp: Any) -> Array:
    """All values :math:`g(p_x/q_x)`, ``[..., V]``, inf where the draft is 0; one sort and prefix sums (D3, exact)."""
    p, q = widened(target, xp), widened(draft, xp)
    if kernels.usable(p, q):
        from spectheory.kernels.race import hockey_stick_at_ratios as compiled

        return compiled(p, q) if p is target else xp.astype(compiled(p, q), target.dtype)
    ratios = ratio(p, q, xp)
    order = xp.argsort(ratios, axis=-1)
    below_p = xp.cumulative_sum(xp.take_along_axis(p + 0 * q, order, axis=-1), axis=-1)
    below_q = xp.cumulative_sum(xp.take_along_axis(q + 0 * p, order, axis=-1), axis=-1)
    # At its own ratio a token contributes r q - p = 0, so inclusive sums are right, with ties in any order.
    r = xp.take_along_axis(ratios, order, axis=-1)
    infinite = r == math.inf
    g = xp.where(infinite, r, xp.where(infinite, xp.zeros_like(r), r) * below_q - below_p)
    g = xp.where(g > 0, g, xp.zeros_like(g))
    return xp.astype(xp.take_along_axis(g, xp.argsort(order, axis=-1), axis=-1), target.dtype)
