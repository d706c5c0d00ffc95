"""A2 and R2: the exponential race of kobus2025, with one draft and with a list of distinct ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory import kernels
from spectheory.distributions import Array, ratio, validate_pair
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.intervals import Interval
from spectheory.verification.base import (
    Accepted,
    Columns,
    Drafts,
    Floats,
    RankRule,
    at_least_one,
    at_token,
    exact_mean,
    least_mean,
    recorded_ranks,
    too_long,
)
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.rank_entropy import rank_entropy

_LOG_TIMES = (-40.0, 5.0)
"""Trapezoid rule in log u: the integrand is analytic and dies off at both ends."""
_NODES, _UP_TO_RANK = 361, 50
"""These give the last digits up to this rank; the r-th arrival has a width of 1/sqrt(r) in log u, so higher ranks take
nodes as much closer."""
_BLOCK = 1 << 20
"""Entries of the largest array at a time: 8 MB in double precision, a handful of such at once."""


@dataclass(frozen=True)
class RaceVerification(RankRule):
    r"""Draft and output are winners of one race: :math:`\arg\min E_y/q_y` and :math:`\arg\min E_y/p_y` (A2, R2).

    The output does not depend on the draft (drafter invariance). Acceptance of one draft is

    .. math:: \alpha = \sum_x \Big(\sum_y \max(p_y/p_x, q_y/q_x)\Big)^{-1} = \sum_x \frac{p_x}{1 + g(p_x/q_x)},

    exact, by one sort: O(V log V) (``kobus2025``). The rank of the output among the draft race's arrivals, distinct
    tokens in order of :math:`E_y/q_y`, is R (R2): the winner i ~ p and its time u ~ Exp(1) are independent, and given
    both, R - 1 counts independent events, one for each other token y, of probability

    .. math:: 1 - e^{-u\lambda_y}, \qquad \lambda_y = (q_y p_i/q_i - p_y)_+ .

    Tokens the draft cannot draw have no rank. Candidates are distinct, so this is no i.i.d. rule: it may accept more
    than R4, and H(R) may fall below KL.

    Examples
    --------
    >>> round(float(RaceVerification().acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])), 6)
    0.630769
    >>> RaceVerification().rank_pmf([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 3).round(6)
    array([0.630769, 0.257961, 0.11127 ])
    """

    name: ClassVar[str] = "race"
    statement: ClassVar[str] = "R2"
    colour: ClassVar[str] = "green"
    drafts: ClassVar[Drafts] = "distinct"
    by_arrival: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("race_g",)
    recorded_in: ClassVar[str] = "race_rank"

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """P(R <= k), ``[..., V]`` to ``[...]``; for k = 1 the race's acceptance rate (A2, R2, exact; ``kobus2025``).

        One draft costs a sort, a list of them O(V^2) integrals.
        """
        k = at_least_one("k", k)
        if k != 1:
            return super().acceptance(target, draft, k)
        p, q, xp = validate_pair(target, draft)
        if kernels.usable(p, q):
            from spectheory.kernels.race import race_acceptance

            return race_acceptance(p, q)
        return xp.sum(p / (1 + hockey_stick_at_ratios(p, q, xp)), axis=-1)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance of one draft given the output, a(x) = 1/(1 + g(p_x/q_x)), ``[..., V]`` (A2, exact)."""
        return PoissonRace().acceptance_given(target, draft)

    def rank_pmf(self, target: Any, draft: Any, max_rank: int) -> Array:
        """P(R = r), r = 1..max_rank, ``[..., max_rank]`` (R2, exact to rounding; ``kobus2025``): O(V^2) integrals.

        The first rank alone is the acceptance rate, O(V log V) (A2). Memory is O(V max_rank).
        """
        max_rank = at_least_one("max_rank", max_rank)
        if max_rank == 1:
            return self.acceptance(target, draft)[..., None]
        p, q, xp = validate_pair(target, draft)
        p, q = p + 0 * q, q + 0 * p
        given = _rank_law(p[..., None, :], q[..., None, :], p, q, max_rank, xp)
        return xp.sum(p[..., None] * given, axis=-2)

    def rank_pmf_given(self, target: Any, draft: Any, token: Any, max_rank: int) -> Array:
        """P(R = r | output `token`), r = 1..max_rank, ``[..., max_rank]`` (R2, exact to rounding): O(V) integrals."""
        max_rank = at_least_one("max_rank", max_rank)
        p, q, xp = validate_pair(target, draft)
        p, q = p + 0 * q, q + 0 * p
        return _rank_law(p, q, at_token(p, token, xp), at_token(q, token, xp), max_rank, xp)

    def expected_rank(self, target: Any, draft: Any) -> Array:
        r"""E[R] :math:`= 1 + \sum_i p_i \sum_y \lambda_y/(1+\lambda_y)`, ``[...]`` (R2, exact).

        Infinite where the draft lacks a token of the target.
        """
        p, q, xp = validate_pair(target, draft)
        p, q = p + 0 * q, q + 0 * p
        blocks = _rate_blocks(p[..., None, :], q[..., None, :], p, q, max(1, _BLOCK // p.shape[-1]), xp)
        none = xp.zeros((0,), dtype=p.dtype, device=p.device)
        # lambda/(1 + lambda), 1 at infinity.
        parts = [xp.sum(1 - 1 / (1 + rates), axis=-1) for rates in blocks]
        passed = xp.reshape(xp.concat([none, *parts], axis=0), p.shape)
        passed = xp.where(q > 0, passed, xp.full_like(passed, math.inf))
        return 1 + xp.sum(p * xp.where(p > 0, passed, xp.zeros_like(p)), axis=-1)

    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """1/(1 + g) at each position; the same law whether the noise is fresh per call or kept across calls."""
        return np.where(columns["race_g"] == math.inf, 0.0, 1 / (1 + columns["race_g"]))

    def rank_law(self, columns: Columns, max_rank: int) -> NDArray[np.float64]:
        """P(R = r | text), ``[N, max_rank]``, as recorded; one rank needs ``race_g`` alone (R2, exact)."""
        if max_rank == 1:
            return self.accepted_at(columns)[:, None]
        return recorded_ranks(columns, "race_rank", max_rank)

    def mean_acceptance(
        self, target: Floats, draft: Floats, k: int, rng: np.random.Generator | None = None
    ) -> Accepted:
        """Mean acceptance; that of the Poisson race, a lower bound, where the integrals would take minutes (R8)."""
        pairs, tokens = target.shape
        if k == 1 or not too_long(2 * pairs * tokens**2 * k):
            return super().mean_acceptance(target, draft, k)
        note = f"O(V^2 k) at {pairs} x {tokens} tokens left out; the bound is the Poisson race"
        return Accepted(least_mean(PoissonRace().acceptance(target, draft, k)), "lower bound", note)

    def mean_rank_entropy(self, target: Floats, draft: Floats) -> tuple[Interval | None, str]:
        """Mean H(R) over all V ranks, nats, at few tokens."""
        pairs, tokens = target.shape
        if too_long(64 * pairs * tokens**3):
            return None, ""
        return exact_mean(rank_entropy(self.rank_pmf(target, draft, tokens))), ""


def _rate_blocks(p: Array, q: Array, own_p: Array, own_q: Array, rows: int, xp: Any) -> Iterator[Array]:
    """The rates ``[rows, V]`` of the winners `own_p`, `own_q` ``[...]``, so many at a time, in order."""
    size, leading = p.shape[-1], tuple(p.shape[:-1])
    places = xp.reshape(xp.arange(math.prod(leading), device=p.device), leading)
    places = xp.reshape(xp.broadcast_to(places, tuple(own_p.shape)), (-1,))
    p, q = xp.reshape(p, (-1, size)), xp.reshape(q, (-1, size))
    own_p, own_q = xp.reshape(own_p, (-1,)), xp.reshape(own_q, (-1,))
    for start in range(0, places.shape[0], rows):
        at = slice(start, min(start + rows, places.shape[0]))
        of_p, of_q = (xp.take(pmf, places[at], axis=0) for pmf in (p, q))
        yield _rates(of_p, of_q, own_p[at], own_q[at], xp)


def _rates(p: Array, q: Array, own_p: Array, own_q: Array, xp: Any) -> Array:
    """The rates lambda_y ``[..., V]`` of the tokens that may come before a winner of masses `own_p`, `own_q`."""
    c = ratio(own_p, own_q, xp)[..., None]
    beyond = xp.isinf(c)
    winner_mass = own_q[..., None]
    with np.errstate(over="ignore"):
        scaled = xp.where(beyond, 0 * q, c) * q
        # p/q of the winner is beyond the floats: relative to its q the other tokens' are not.
        relative = q / xp.where(beyond & (winner_mass > 0), winner_mass, xp.ones_like(winner_mass))
        rates = xp.where(beyond, own_p[..., None] * relative, scaled) - p
    rates = xp.where((q > 0) & (winner_mass > 0), rates, xp.zeros_like(rates))
    return xp.where(rates > 0, rates, xp.zeros_like(rates))


def _rank_law(p: Array, q: Array, own_p: Array, own_q: Array, max_rank: int, xp: Any) -> Array:
    """P(R = r | winner), ``[..., max_rank]``: the law of the count, integrated over the winner's time."""
    nodes = _nodes(max_rank)
    rows = max(1, _BLOCK // max(p.shape[-1], nodes * max_rank))
    parts = [xp.zeros((0, max_rank), dtype=p.dtype, device=p.device)]
    for rates in _rate_blocks(p, q, own_p, own_q, rows, xp):
        first = _first(rates, xp)[:, None]
        parts.append(first if max_rank == 1 else xp.concat([first, _counted(rates, max_rank, nodes, xp)], axis=-1))
    law = xp.reshape(xp.concat(parts, axis=0), (*own_p.shape, max_rank))
    possible = (own_q > 0)[..., None] & (law == law)
    return xp.where(possible, law, xp.zeros_like(law))


def _first(rates: Array, xp: Any) -> Array:
    """P(R = 1 | winner) = 1/(1 + the sum of the rates): the integral in closed form."""
    with np.errstate(over="ignore"):  # a sum beyond the floats is infinite
        return 1 / (1 + xp.sum(rates, axis=-1))


def _nodes(max_rank: int) -> int:
    """Nodes of the trapezoid rule for ranks up to `max_rank`."""
    return 1 + math.ceil((_NODES - 1) * math.sqrt(max(1.0, max_rank / _UP_TO_RANK)))


def _counted(rates: Array, max_rank: int, nodes: int, xp: Any) -> Array:
    """Law of the number of tokens before the winner, 1..max_rank - 1, ``[rows, V]`` to ``[rows, max_rank - 1]``."""
    log_u = xp.linspace(*_LOG_TIMES, nodes, dtype=rates.dtype, device=rates.device)
    u = xp.exp(log_u)
    weight = u * xp.exp(-u) * ((_LOG_TIMES[1] - _LOG_TIMES[0]) / (nodes - 1))
    counts = [xp.ones_like(rates[:, :1] * u)] + [xp.zeros_like(rates[:, :1] * u) for _ in range(max_rank - 1)]
    for y in range(rates.shape[1]):
        with np.errstate(over="ignore"):
            exponent = -rates[:, y, None] * u
        came, stayed = -xp.expm1(exponent), xp.exp(exponent)
        for j in range(max_rank - 1, 0, -1):
            counts[j] = counts[j] * stayed + counts[j - 1] * came
        counts[0] = counts[0] * stayed
    return xp.stack([xp.sum(weight * count, axis=-1) for count in counts[1:]], axis=-1)
