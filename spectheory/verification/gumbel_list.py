"""R6: Gumbel list sampling (rowan2025): k races at once, one winner of the draft in each, one output."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spectheory.distributions import Array, ratio, validate_pair
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.verification.base import Accepted, Floats, Rule, at_least_one, least_mean, too_long
from spectheory.verification.kseq import RANK_DEPENDS_ON_K

_STEP = 0.125
_LOG_TIMES = (-20.0, 5.0)
"""Trapezoid rule in v = log w(1 + a). The integrand is analytic, and with dv it is below 4e-18 of what is added to at
the lower end (it falls as the square) and below k exp(-148) at the upper one, so these give the last digits."""
_LARGEST_RATE = 1e18
_BLOCK = 1 << 18
"""Entries of one array at a time."""


@dataclass(frozen=True)
class GumbelList(Rule):
    r"""k races with clocks :math:`E^{(j)}_y` draft a winner each; the output wins them all as one (R6; ``rowan2025``).

    Candidates :math:`X^{(j)} = \arg\min_y E^{(j)}_y/q_y`, i.i.d. from the draft; output :math:`Y = \arg\min_y \min_j
    E^{(j)}_y/p_y`, accepted if it is among them. The output does not depend on the draft. Given the output x the
    winning time is w/k with w ~ Exp(1), the race it comes from drafts x with probability :math:`e^{-w g_x/k}`,
    :math:`g_x = g(p_x/q_x)`, and each other race with probability :math:`h_x(w)`:

    .. math:: P(\text{miss} \mid x) = \int_0^\infty e^{-w}\,(1 - e^{-w g_x/k})\,(1 - h_x(w))^{k-1}\,dw .

    In another race x rings at a time :math:`s \ge t = w p_x/k` and wins if no y rings before :math:`s q_y/q_x`. Over
    the tokens in ascending order of p/q, :math:`Q` the draft's mass of ratio p/q below,

    .. math:: h_x(w) = q_x \sum_{i \ge x} \big(e^{-w g_i/k} - e^{-w g_{i+1}/k}\big)/Q_i, \qquad g_{V+1} = \infty,

    so one sort and one pass serve all x at each w. The integral is computed by quadrature; that it is the law of the
    rule is checked numerically and not proved in steps. The law of a rank would depend on k: this is no
    :class:`RankRule`.

    Examples
    --------
    >>> rule = GumbelList()
    >>> round(float(rule.acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], k=2)), 6)
    0.773999
    >>> round(float(rule.acceptance_bound([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], k=2)), 6)
    0.746584
    """

    name: ClassVar[str] = "gumbel-list"
    statement: ClassVar[str] = "R6"
    title: ClassVar[str] = "Gumbel list"
    colour: ClassVar[str] = "black"
    several: ClassVar[bool] = True

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Acceptance, ``[..., V]`` to ``[...]`` (R6, exact to 1e-12): O(V) at each of some 200 or more times w.

        For k = 1 the race's (A2). The number of times grows with the logarithm of the largest finite g, to 540; pmfs of
        30,000 tokens take a second or two.
        """
        k = at_least_one("k", k)
        p, q, xp = validate_pair(target, draft)
        return xp.sum(p * _given(p + 0 * q, q + 0 * p, k, xp), axis=-1)

    def acceptance_given(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Acceptance given the output, 1 - miss(x), ``[..., V]`` (R6, exact to 1e-12); cost and errors as above.

        1 by convention where the target has no mass and the draft has: an output that does not occur.
        """
        k = at_least_one("k", k)
        p, q, xp = validate_pair(target, draft)
        given = _given(p + 0 * q, q + 0 * p, k, xp)
        return xp.where(q > 0, given, xp.zeros_like(given))

    def acceptance_bound(self, target: Any, draft: Any, k: int = 1) -> Array:
        r"""The paper's lower bound of the acceptance, ``[..., V]`` to ``[...]`` (R6; ``rowan2025``): O(V log V).

        .. math:: \sum_x \frac{k}{\sum_y [\max(p_y/p_x, q_y/q_x) + (k-1)p_y/p_x]} = \sum_x \frac{p_x}{1 + g_x/k},

        exactly the probability that the output is the candidate of the race it comes from.
        """
        k = at_least_one("k", k)
        p, q, xp = validate_pair(target, draft)
        return xp.sum(p / (1 + hockey_stick_at_ratios(p, q, xp) / k), axis=-1)

    def mean_acceptance(
        self, target: Floats, draft: Floats, k: int, rng: np.random.Generator | None = None
    ) -> Accepted:
        """Mean acceptance; the printed lower bound where the quadrature would take minutes (R8)."""
        if not too_long(32 * target.size):
            return super().mean_acceptance(target, draft, k)
        pairs, tokens = target.shape
        note = f"200 passes over {pairs} x {tokens} tokens left out; the bound is the printed one"
        return Accepted(least_mean(self.acceptance_bound(target, draft, k)), "lower bound", note)

    def mean_rank_entropy(self, target: Floats, draft: Floats) -> tuple[None, str]:
        """None: another k has another law."""
        return None, RANK_DEPENDS_ON_K


def _given(p: Array, q: Array, k: int, xp: Any) -> Array:
    """1 - miss(x), ``[..., V]``: the bound's 1/(1 + g_x/k), and what the other k - 1 races add."""
    rates, below, order = _sorted_race(p, q, k, xp)
    hit = 1 / (1 + rates)
    if k > 1 and math.prod(hit.shape) > 0:
        hit = hit + _others(rates, below, xp.take_along_axis(q, order, axis=-1), k, xp)
    return xp.take_along_axis(hit, xp.argsort(order, axis=-1), axis=-1)


def _sorted_race(p: Array, q: Array, k: int, xp: Any) -> tuple[Array, Array, Array]:
    """Rates g/k (summed from positive steps) and draft masses Q in ascending order of p/q, and that order, ``[...,
    V]``.
    """
    order = xp.argsort(ratio(p, q, xp), axis=-1)
    p, q = (xp.take_along_axis(pmf, order, axis=-1) for pmf in (p, q))
    ratios, below = ratio(p, q, xp), xp.cumulative_sum(q, axis=-1)
    infinite = ratios == math.inf
    finite = xp.where(infinite, xp.zeros_like(ratios), ratios)
    steps = (finite[..., 1:] - finite[..., :-1]) * below[..., :-1]
    steps = xp.where(infinite[..., 1:], xp.zeros_like(steps), steps)
    g = xp.cumulative_sum(xp.concat([xp.zeros_like(finite[..., :1]), steps], axis=-1), axis=-1)
    return xp.where(infinite, ratios, g) / k, below, order


def _others(rates: Array, below: Array, q: Array, k: int, xp: Any) -> Array:
    """The integral of e^{-w} (1 - e^{-w a_x}) (1 - (1 - h_x(w))^{k-1}) over w, a = g/k, in the order of p/q.

    It lives where w (1 + a_x) is of order one. As h_x <= 1/g_x, it is below the last digit where a is above 1e18.
    """
    finite = xp.where(rates == math.inf, xp.zeros_like(rates), rates)
    first = _LOG_TIMES[0] - math.log1p(min(float(xp.max(finite)), _LARGEST_RATE))
    endless = xp.full_like(rates[..., :1], math.inf)
    steps = xp.where(rates[..., 1:] == math.inf, endless, finite[..., 1:] - finite[..., :-1])
    steps = xp.concat([steps, endless], axis=-1)
    share = 1 / xp.where(below > 0, below, xp.ones_like(below))
    total, nodes = xp.zeros_like(rates), math.ceil((_LOG_TIMES[1] - first) / _STEP) + 1
    rates, steps, slopes = rates[..., None, :], steps[..., None, :], share[..., None, :]
    block = max(1, _BLOCK // math.prod(rates.shape))
    for node in range(0, nodes, block):
        at = range(node, min(node + block, nodes))
        w = xp.asarray([math.exp(first + i * _STEP) for i in at], dtype=q.dtype, device=q.device)[:, None]
        with np.errstate(over="ignore"):  # exponents beyond the floats are infinite
            ends, passed = xp.expm1(-w * rates), xp.exp(-w * rates) * -xp.expm1(-w * steps)
        pieces = passed * slopes
        hit = q[..., None, :] * xp.flip(xp.cumulative_sum(xp.flip(pieces, axis=-1), axis=-1), axis=-1)
        certain = hit >= 1
        some = -xp.expm1((k - 1) * xp.log1p(-xp.where(certain, xp.zeros_like(hit), hit)))
        some = xp.where(certain, xp.ones_like(hit), some)
        total = total + xp.sum(w * xp.exp(-w) * _STEP * -ends * some, axis=-2)
    return total
