"""R4: the most that any rule can accept from k candidates drawn i.i.d. from the draft (khisti2025, hu2025)."""

from __future__ import annotations

from typing import Any

from spectheory import kernels
from spectheory.distributions import Array, ratio, validate_pair, widened
from spectheory.verification.base import at_least_one

_RARE = 1e-3
"""Acceptance below which one minus the rejection has lost digits worth a second look."""


def optimal_acceptance(target: Any, draft: Any, k: int) -> Array:
    r"""Largest acceptance of a lossless rule with k i.i.d. candidates, ``[..., V]`` to ``[...]`` (R4, exact).

    .. math:: \alpha^*_k = 1 + \min_H \big[p(H) - q(H)^k\big]

    over sets H of tokens. Equals the optimal-transport linear programme (``khisti2025``, ``hu2025``). Rules whose
    candidates are not i.i.d. (distinct tokens, races without replacement) may exceed it.

    Examples
    --------
    >>> round(float(optimal_acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 2)), 6)
    0.86
    """
    return optimal_acceptances(target, draft, k)[..., -1]


def optimal_acceptances(target: Any, draft: Any, max_k: int) -> Array:
    """All of :func:`optimal_acceptance` for k = 1..max_k, ``[..., V]`` to ``[..., max_k]``, from one sort (R4, exact).

    Examples
    --------
    >>> optimal_acceptances([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 3).round(6)
    array([0.7  , 0.86 , 0.988])
    """
    max_k = at_least_one("k", max_k)
    accepted = 1 - optimal_rejections(target, draft, max_k)
    p, q, xp = validate_pair(target, draft)
    rare = accepted < _RARE
    return xp.where(rare, _rare_acceptances(p, q, max_k, xp), accepted) if bool(xp.any(rare)) else accepted


def optimal_rejections(target: Any, draft: Any, max_k: int) -> Array:
    r"""What even the best rule rejects, :math:`1-\alpha^*_k = \max_H [q(H)^k - p(H)]`, ``[..., max_k]`` (R4, exact).

    The maximum is on a prefix in ascending order of p/q, q = 0 last, so one sort serves every k; there can be several
    local maxima, so every prefix is looked at. Each is evaluated on the smaller of its two sides, so small rejections
    keep their digits. Falls in k; the first is the total variation distance.

    Examples
    --------
    >>> optimal_rejections([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 3).round(6)
    array([0.3  , 0.14 , 0.012])
    """
    max_k = at_least_one("k", max_k)
    p, q, xp = validate_pair(target, draft)
    wide = widened(p, xp), widened(q, xp)
    if kernels.usable(*wide):
        from spectheory.kernels.optimal import largest_gaps

        return xp.astype(largest_gaps(*wide, max_k), p.dtype)
    gaps = [_distance(*wide, xp), *_prefix_gaps(*wide, max_k, xp)[1:]]
    return xp.astype(xp.stack(gaps, axis=-1), p.dtype)


def _distance(target: Array, draft: Array, xp: Any) -> Array:
    """TV (k = 1) over the tokens with p > q or p < q: the lighter side, or the larger of two light ones."""
    sides = []
    for excess in (target - draft, draft - target):
        zero = xp.zeros_like(excess)
        weight = xp.sum(xp.where(excess > 0, target + draft, zero), axis=-1)
        sides.append(xp.where(weight < 1.5, xp.sum(xp.where(excess > 0, excess, zero), axis=-1), xp.zeros_like(weight)))
    return xp.maximum(*sides)


def _prefix_gaps(target: Array, draft: Array, max_k: int, xp: Any) -> list[Array]:
    """The largest gap of any prefix for each k."""
    below_p, below_q, above_p, above_q = _prefixes(target, draft, xp)
    power, missed, gaps = xp.ones_like(below_q), xp.zeros_like(below_q), []
    for _ in range(max_k):
        power = power * below_q
        missed = missed + above_q * (1 - missed)  # 1 - (1 - q(rest))^k, by sums of non-negative terms
        gap = xp.where(power + below_p <= 1, power - below_p, above_p - missed)
        largest = xp.max(gap, axis=-1)
        gaps.append(xp.where(largest > 0, largest, xp.zeros_like(largest)))
    return gaps


def _rare_acceptances(target: Array, draft: Array, max_k: int, xp: Any) -> Array:
    """Acceptances as sums of non-negative terms, p(H) + 1 - q(H)^k, which keep the digits of small ones."""
    below_p, _, _, above_q = _prefixes(target, draft, xp)
    missed, acceptances = xp.zeros_like(above_q), []
    for _ in range(max_k):
        missed = missed + above_q * (1 - missed)
        acceptances.append(xp.min(below_p + missed, axis=-1))
    return xp.stack(acceptances, axis=-1)


def _prefixes(target: Array, draft: Array, xp: Any) -> tuple[Array, Array, Array, Array]:
    """Masses p and q of every prefix in ascending order of p/q, then of what is left."""
    order = xp.argsort(ratio(target, draft, xp), axis=-1)
    p, q = (xp.take_along_axis(x, order, axis=-1) for x in (target + 0 * draft, draft + 0 * target))
    return xp.cumulative_sum(p, axis=-1), xp.cumulative_sum(q, axis=-1), _sums_above(p, xp), _sums_above(q, xp)


def _sums_above(values: Array, xp: Any) -> Array:
    """Sum of the entries after each, added from the far end."""
    from_end = xp.cumulative_sum(xp.flip(values, axis=-1), axis=-1)
    return xp.flip(xp.concat([xp.zeros_like(from_end[..., :1]), from_end[..., :-1]], axis=-1), axis=-1)
