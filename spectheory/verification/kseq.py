"""R5: k-SEQ (sun2023spectr): k i.i.d. candidates in a row, each judged against a target scaled down by rho."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spectheory.distributions import Array, validate_pair
from spectheory.verification.base import Floats, Rule, at_least_one

RANK_DEPENDS_ON_K = "no H(R): the law of R depends on k"
"""Why a rule that needs to know k has no rank entropy."""
_HALVINGS = 64
"""Bisection steps: more than the bits of a float64, so that the bracket ends at two neighbouring numbers."""


@dataclass(frozen=True)
class KSeq(Rule):
    r"""Accept each of k i.i.d. candidates with probability :math:`\min(1, p_x/(\rho q_x))` until one is (R5).

    With :math:`\beta(\rho) = \sum_x \min(q_x, p_x/\rho)` the acceptance is :math:`1-(1-\beta)^k`. It falls with
    :math:`\rho`, and is largest, among those for which a recovery law exists, at the root in [1, k] of

    .. math:: 1 - (1-\beta(\rho))^k = \rho\,\beta(\rho).

    At least 1 - (1-1/k)^k, and so 1 - 1/e, of the largest acceptance R4 (``sun2023spectr`` states 1 - 1/e). The law of
    the rank depends on k, the number of candidates meant to be judged: it cannot serve as the one law of a draft tree,
    and this is no :class:`RankRule`.

    Examples
    --------
    >>> round(float(KSeq().acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], k=2)), 6)
    0.791355
    """

    name: ClassVar[str] = "kseq"
    statement: ClassVar[str] = "R5"
    title: ClassVar[str] = "k-SEQ"
    colour: ClassVar[str] = "wine"
    several: ClassVar[bool] = True

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        r"""Acceptance :math:`1-(1-\beta)^k`, ``[..., V]`` to ``[...]`` (R5, exact; ``sun2023spectr``): O(V) a step."""
        k = at_least_one("k", k)
        p, q, xp = validate_pair(target, draft)
        return _any_of(*_one(p, q, _root(p, q, k, xp), xp), k, xp)

    def rho(self, target: Any, draft: Any, k: int) -> Array:
        """The factor rho ``[...]`` in [1, k], rounded up so that a recovery law exists; 1 if p, q are disjoint."""
        k = at_least_one("k", k)
        p, q, xp = validate_pair(target, draft)
        return _root(p, q, k, xp)

    def acceptance_given(self, target: Any, draft: Any, k: int = 1) -> Array:
        r"""Acceptance given the output, ``[..., V]`` (R5, exact).

        .. math:: a(x) = \min(p_x/\rho, q_x)\,\frac{1-(1-\beta)^k}{\beta\,p_x} = \min(1, \rho q_x/p_x)

        1 by convention where the target has no mass and the draft has: an output that does not occur.
        """
        k = at_least_one("k", k)
        p, q, xp = validate_pair(target, draft)
        scaled = _root(p, q, k, xp)[..., None] * q
        inside = p > scaled
        with np.errstate(over="ignore"):  # beyond the floats is above 1, and cut
            return xp.where(inside, scaled / xp.where(inside, p, xp.ones_like(p)), xp.astype(q > 0, q.dtype))

    def rank_pmf(self, target: Any, draft: Any, k: int) -> Array:
        r"""P(R = r) :math:`= \beta(1-\beta)^{r-1}`, r = 1..k, ``[..., k]``, when k candidates are judged (R5, exact).

        Another k has another law, not a longer one: it has no place in draft trees and rank entropies.
        """
        k = at_least_one("k", k)
        p, q, xp = validate_pair(target, draft)
        beta, missed = _one(p, q, _root(p, q, k, xp), xp)
        return xp.stack([beta * missed**r for r in range(k)], axis=-1)

    def mean_rank_entropy(self, target: Floats, draft: Floats) -> tuple[None, str]:
        """None: another k has another law."""
        return None, RANK_DEPENDS_ON_K


def _one(p: Array, q: Array, rho: Array, xp: Any) -> tuple[Array, Array]:
    """Acceptance beta of one candidate, the sum of min(q, p/rho), and 1 - beta, the sum of (q - p/rho)+."""
    scaled = p / rho[..., None]
    return xp.sum(xp.minimum(q, scaled), axis=-1), _excess(q, scaled, xp)


def _excess(a: Array, b: Array, xp: Any) -> Array:
    return xp.sum(xp.maximum(a - b, xp.zeros_like(a[..., :1])), axis=-1)


def _any_of(beta: Array, missed: Array, k: int, xp: Any) -> Array:
    """1 - (1 - beta)^k, from whichever of the two is the smaller one."""
    small = beta < 0.5
    return xp.where(small, -xp.expm1(k * xp.log1p(-xp.where(small, beta, xp.zeros_like(beta)))), 1 - missed**k)


def _root(p: Array, q: Array, k: int, xp: Any) -> Array:
    """The root of 1 - (1-beta)^k = rho beta by bisection; near p = q by what the sides lack to one."""
    low = xp.ones_like((p * q)[..., 0])

    def short(rho: Array) -> Array:
        beta, missed = _one(p, q, rho, xp)
        excess = _excess(p, rho[..., None] * q, xp)
        return xp.where(beta < 0.5, _any_of(beta, missed, k, xp) > rho * beta, missed**k < excess)

    high = xp.where(short(low), k * low, low)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        up = short(middle)
        low, high = xp.where(up, middle, low), xp.where(up, high, middle)
    return high
