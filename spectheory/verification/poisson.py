"""R1: the Poisson race with replacement (li2018): candidates are i.i.d., and the rank of the output is geometric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array, validate_pair
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.intervals import Interval
from spectheory.verification.base import Columns, Floats, RankRule, at_least_one, at_token, endless_entropy
from spectheory.verification.rank_entropy import poisson_rank_entropy

_TOLERANCE = 1e-5
"""Width of a mean H(R), nats: four digits are shown."""


@dataclass(frozen=True)
class PoissonRace(RankRule):
    r"""Candidates are the draft's arrivals in order, the output is the target's first arrival (R1; ``li2018``).

    Every token y has one Poisson stream of rate 1. Its arrivals, divided by :math:`q_y`, are the candidates: i.i.d.
    draws from the draft. The output is the token whose first arrival, divided by :math:`p_y`, is earliest. Given the
    output x, the rank R of that arrival among the candidates is geometric,

    .. math:: P(R = r \mid x) = \frac{g_x^{r-1}}{(1+g_x)^r}, \qquad g_x = \sum_y (q_y p_x/q_x - p_y)_+ .

    R counts duplicates: a draft tree whose equal siblings are merged accepts at least P(R <= k). Tokens the draft
    cannot draw have no rank. The candidates are i.i.d., so R4 limits the acceptance and KL <= H(R).

    Examples
    --------
    >>> round(float(PoissonRace().acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], k=2)), 6)
    0.804024
    >>> PoissonRace().rank_pmf([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 3).round(6)
    array([0.630769, 0.173254, 0.084289])
    """

    name: ClassVar[str] = "poisson"
    statement: ClassVar[str] = "R1"
    title: ClassVar[str] = "Poisson"
    colour: ClassVar[str] = "pink"
    by_arrival: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("race_g",)
    recorded_in: ClassVar[str] = "race_g"

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        r"""P(R <= k) :math:`= \sum_x p_x [1 - (g_x/(1+g_x))^k]`, ``[..., V]`` to ``[...]`` (R1, exact): O(V log V).

        Summed as the accepted part, so that small acceptances keep their digits. Merged duplicates: a lower bound.
        """
        k = at_least_one("k", k)
        p, q, xp = validate_pair(target, draft)
        g = hockey_stick_at_ratios(p, q, xp)
        # 1 - (g/(1+g))^k = -expm1(-k log1p(1/g)), and 1 at g = 0; beyond the floats 1/g is infinite, and so it is 1.
        one = xp.ones_like(g)
        with np.errstate(over="ignore"):
            missed = -k * xp.log1p(1 / xp.where(g > 0, g, one))
        return xp.sum(p * xp.where(g > 0, -xp.expm1(missed), one), axis=-1)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance of one draft given the output, a(x) = 1/(1 + g(p_x/q_x)), ``[..., V]``: the race's (A2, exact).

        1 by convention where the target has no mass and the draft has: an output that does not occur.
        """
        p, q, xp = validate_pair(target, draft)
        given = 1 / (1 + hockey_stick_at_ratios(p, q, xp))
        return xp.where(q > 0, given, xp.zeros_like(given))

    def rank_pmf(self, target: Any, draft: Any, max_rank: int) -> Array:
        r"""P(R = r) :math:`= \sum_x p_x g_x^{r-1}/(1+g_x)^r`, r = 1..max_rank, ``[..., max_rank]`` (R1, exact)."""
        max_rank = at_least_one("max_rank", max_rank)
        p, q, xp = validate_pair(target, draft)
        g = hockey_stick_at_ratios(p, q, xp)
        weight, missed, law = p / (1 + g), _missed(g, xp), []
        for _ in range(max_rank):
            law.append(xp.sum(weight, axis=-1))
            weight = weight * missed
        return xp.stack(law, axis=-1)

    def rank_pmf_given(self, target: Any, draft: Any, token: Any, max_rank: int) -> Array:
        """P(R = r | output `token`), r = 1..max_rank: geometric, ``[..., max_rank]`` (R1, exact)."""
        max_rank = at_least_one("max_rank", max_rank)
        p, q, xp = validate_pair(target, draft)
        g = at_token(hockey_stick_at_ratios(p, q, xp), token, xp)
        hit, missed = 1 / (1 + g), _missed(g, xp)
        return xp.stack([hit * missed**r for r in range(max_rank)], axis=-1)

    def expected_rank(self, target: Any, draft: Any) -> Array:
        r"""E[R] :math:`= \sum_x p_x(1+g_x)`, ``[...]`` (R1, exact); infinite where the draft lacks a target token."""
        p, q, xp = validate_pair(target, draft)
        g = hockey_stick_at_ratios(p, q, xp)
        return xp.sum(p * (1 + xp.where(p > 0, g, xp.zeros_like(g))), axis=-1)

    def rank_law(self, columns: Columns, max_rank: int) -> NDArray[np.float64]:
        """P(R = r | text), ``[N, max_rank]``, from g at each position (R1, exact)."""
        max_rank = at_least_one("max_rank", max_rank)
        g = columns["race_g"][:, None]
        return 1 / (1 + g) * _missed(g, np) ** np.arange(max_rank)

    def mean_rank_entropy(self, target: Floats, draft: Floats) -> tuple[Interval | None, str]:
        """Mean H(R) of endless candidates, nats, or why there is none."""
        return endless_entropy(partial(poisson_rank_entropy, tolerance=_TOLERANCE), target, draft)


def _missed(g: Array, xp: Any) -> Array:
    """g/(1+g), 1 at infinity."""
    infinite = g == math.inf
    finite = xp.where(infinite, xp.zeros_like(g), g)
    return xp.where(infinite, xp.ones_like(g), finite / (1 + finite))
