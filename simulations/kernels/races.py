"""Races at one position: with a clock for every token, target first, and with replacement (A2, R1, R2)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from simulations.draws import Alias, Counts, Floats, Words, alias, token_of, uniform
from simulations.models.pairs import checked_stream
from spectheory.distributions import validate_pair
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.kernels.compiling import compiled

# What a race takes and gives


class Race(NamedTuple):
    """Checked inputs of a race.

    - ``ratios``, ``[V]``: p/q, 0 where neither has mass and infinite outside the draft's support.
    - ``counts``, ``[1, max_rank + 2]`` or ``[V, max_rank + 2]``: zeros, to be filled: column 0 for outputs without a
      rank, r for rank r, the last for higher ranks.
    """

    target: Floats
    draft: Floats
    ratios: Floats
    counts: Counts


def enter_race(target: Any, draft: Any, *, trials: int, max_rank: int, state: Words, by_output: bool = False) -> Race:
    """Check what a race is given."""
    pmfs = validate_pair(target, draft)
    p, q = (np.require(pmf, dtype=np.float64, requirements=("C", "W")) for pmf in pmfs[:2])
    if p.shape != q.shape or p.ndim != 1:
        raise ShapeError(
            f"target is {p.shape} and draft {q.shape}", limit="a race is at one position", remedy="pass two arrays [V]"
        )
    for name, value in (("trials", trials), ("max_rank", max_rank)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise SettingError(f"{name} is {value!r}", limit="must be a whole number >= 1", remedy="ask for at least 1")
    checked_stream(state)
    with np.errstate(over="ignore"):
        ratios = np.divide(p, q, out=np.where(p > 0, np.inf, 0.0), where=q > 0)
    beyond = np.flatnonzero((q > 0) & np.isinf(ratios))
    if beyond.size:
        x = int(beyond[0])
        raise PmfError(
            f"target/draft at token {x} is {p[x]:g}/{q[x]:g}",
            limit="p/q must be a finite float where q > 0",
            remedy="set the draft to 0 there",
        )
    counts = np.zeros((p.size if by_output else 1, int(max_rank) + 2), dtype=np.int64)
    return Race(p, q, ratios, counts)


# A clock for every token (kobus2025)

WIDE = 1 + 2.0**-48
"""Covers the rounding of a clock and of a product: an exponential is never below its uniform, so a token whose uniform
is this far from winning needs no logarithm."""


def dense_race(
    target: Any, draft: Any, *, trials: int, state: Words, max_rank: int = 1, by_output: bool = False
) -> Counts:
    r"""Run exponential races at one position, with a clock for every token (A2, R2; ``kobus2025``).

    Every token has a clock :math:`E_y \sim \mathrm{Exp}(1)`; the output is :math:`\arg\min E_y/p_y`, the draft list is
    the order of :math:`E_y/q_y`, the lowest index first where two are equal. The rank of the output in that list is
    counted; with ``max_rank=1`` whether the first draft is accepted, which the two winners decide.

    Returns array ``[max_rank + 2]``, or ``[V, max_rank + 2]`` by output: trials without a rank (the draft cannot draw
    the output) at 0, of rank r at r, of higher ranks at the end.

    Examples
    --------
    >>> from simulations.draws import words
    >>> dense_race([0.5, 0.5], [1.0, 0.0], trials=1000, state=words(1), max_rank=2).tolist()
    [504, 496, 0, 0]
    """
    race = enter_race(target, draft, trials=trials, max_rank=max_rank, state=state, by_output=by_output)
    _dense_races(race.target, race.draft, trials, state, race.counts)
    return race.counts if by_output else race.counts[0]


@compiled
def _dense_races(p: Floats, q: Floats, trials: int, state: Words, counts: Counts) -> None:
    uniforms = np.empty(p.size)
    most = counts.shape[1] - 2
    for _ in range(trials):
        output, drafted = _winners(p, q, state, uniforms)
        if output == drafted:
            rank = 1
        elif q[output] == 0.0:
            rank = 0
        elif most == 1:
            rank = 2
        else:
            rank = _rank(q, uniforms, output, most)
        counts[output if counts.shape[0] > 1 else 0, rank] += 1


@compiled
def _winners(p: Floats, q: Floats, state: Words, uniforms: Floats) -> tuple[int, int]:
    """Draw the clocks' uniforms; return who wins the target's race and the draft's."""
    output = drafted = 0
    first_p = first_q = reach_p = reach_q = np.inf
    for y in range(p.size):  # a loop of its own keeps the state in registers
        uniforms[y] = uniform(state)
    for y in range(p.size):
        u = uniforms[y]
        if (u < reach_p * p[y]) | (u < reach_q * q[y]):
            clock = -math.log1p(-u)
            if p[y] > 0.0 and clock / p[y] < first_p:
                output, first_p = y, clock / p[y]
                reach_p = first_p * WIDE
            if q[y] > 0.0 and clock / q[y] < first_q:
                drafted, first_q = y, clock / q[y]
                reach_q = first_q * WIDE
    return output, drafted


@compiled
def _rank(q: Floats, uniforms: Floats, output: int, most: int) -> int:
    """Rank of the output in the draft's order of arrival, most + 1 if it is higher."""
    arrival = -math.log1p(-uniforms[output]) / q[output]
    reach, rank = arrival * WIDE, 1
    for y in range(q.size):
        if uniforms[y] < reach * q[y]:
            other = -math.log1p(-uniforms[y]) / q[y]
            if other < arrival or (other == arrival and y < output):
                rank += 1
                if rank > most:
                    break
    return rank


# Target first: only the drafts that come before the winner are drawn

AHEAD = 256
"""Tokens drawn at a time."""


def lazy_race(
    target: Any, draft: Any, *, trials: int, state: Words, max_rank: int = 1, by_output: bool = False
) -> Counts:
    r"""Run exponential races at one position, target first, exactly at any p/q (R2; ``kobus2025``).

    The winner i ~ p and its time u ~ Exp(1) are independent; in the draft's race it arrives at time u r_i, r = p/q.
    Before it come the first arrivals of tokens that lose the target's race: of the draft's Poisson arrivals up to that
    time, tokens ~ q, one is kept with probability :math:`(1 - r_y/r_i)_+`, and R - 1 is the number of distinct tokens
    kept. On average these are 1 + chi-square(p, q) arrivals, where the dense race has V clocks.

    A race ends when its rank is beyond `max_rank`. A winner that arrives later than V/8 is waited for that long, and
    then one coin per token decides the time s that is left, :math:`1 - e^{-s(q_y - p_y/r_i)_+}`; with `max_rank` of V/8
    or more the coins decide all of it.

    Returns array ``[max_rank + 2]``, or ``[V, max_rank + 2]`` by output: trials without a rank (the draft cannot draw
    the output) at 0, of rank r at r, of higher ranks at the end.

    Examples
    --------
    >>> from simulations.draws import words
    >>> lazy_race([0.5, 0.5], [1.0, 0.0], trials=1000, state=words(1), max_rank=2).tolist()
    [483, 517, 0, 0]
    """
    race = enter_race(target, draft, trials=trials, max_rank=max_rank, state=state, by_output=by_output)
    targets, drafts = (_table(pmf, race.ratios) for pmf in (race.target, race.draft))
    _lazy_races(race.target, race.draft, targets, drafts, trials, state, race.counts)
    return race.counts if by_output else race.counts[0]


def _table(pmf: Floats, ratios: Floats) -> Floats:
    """The alias table ``[V, 4]``, a line of memory each: probability to keep, own p/q, the other token, its p/q."""
    table = alias(pmf)
    return np.stack([table.keep, ratios, table.other.astype(np.float64), ratios[table.other]], axis=1)


@compiled
def _draw(table: Floats, state: Words, tokens: Counts, ratios: Floats) -> None:
    """Draw tokens with their p/q ahead of their use, so that the waits for the table overlap."""
    for i in range(tokens.size):
        scaled = uniform(state) * table.shape[0]
        column = int(scaled)
        keep = scaled - column < table[column, 0]
        tokens[i] = column if keep else int(table[column, 2])
        ratios[i] = table[column, 1 if keep else 3]


@compiled
def _lazy_races(
    p: Floats, q: Floats, targets: Floats, drafts: Floats, trials: int, state: Words, counts: Counts
) -> None:
    most, enough = counts.shape[1] - 2, p.size / 8
    kept_in = np.full(p.size, -1, np.int64)  # the last trial that kept a token
    winners, winners_ratio = np.empty(AHEAD, np.int64), np.empty(AHEAD)
    tokens, tokens_ratio = np.empty(AHEAD, np.int64), np.empty(AHEAD)
    used = AHEAD
    for trial in range(trials):
        if trial % AHEAD == 0:
            _draw(targets, state, winners, winners_ratio)
        ratio, rank = winners_ratio[trial % AHEAD], 0
        if ratio < np.inf:
            # 1 - u is exact, and its log takes a third of the time of log1p.
            reach, rank = -np.log(1.0 - uniform(state)) * ratio, 1
            thinned = reach if reach <= enough else (enough if most < enough else 0.0)
            left = thinned
            while rank <= most:
                u = uniform(state)
                if 2.0 * u > left * (2.0 - u):  # -log(1 - u) >= 2u/(2 - u)
                    break
                left += np.log(1.0 - u)
                if left < 0.0:
                    break
                if used == AHEAD:
                    _draw(drafts, state, tokens, tokens_ratio)
                    used = 0
                y, other = tokens[used], tokens_ratio[used]
                used += 1
                if other < ratio and uniform(state) * ratio < ratio - other and kept_in[y] != trial:
                    kept_in[y] = trial
                    rank += 1
            if thinned < reach and rank <= most:
                rank = _decided(p, q, ratio, reach - thinned, rank, most, kept_in, trial, state)
        counts[winners[trial % AHEAD] if counts.shape[0] > 1 else 0, rank] += 1


@compiled
def _decided(
    p: Floats, q: Floats, ratio: float, left: float, rank: int, most: int, kept_in: Counts, trial: int, state: Words
) -> int:
    """The rank after a coin for every token that is not kept yet."""
    for y in range(p.size):
        u = uniform(state)
        mean = left * (q[y] - p[y] / ratio)
        if 2.0 * u < mean * (2.0 - u) and kept_in[y] != trial:
            # A coin shows 1 if -log(1 - u), which is in [2u/(2 - u), u/(1 - u)], is below the mean.
            rank += u < mean * (1.0 - u) or -np.log(1.0 - u) < mean
    return min(rank, most + 1)


# With replacement, as a functional representation is written (li2018)

MOST_ARRIVALS = 1e10
"""Expected arrivals, of some 15 ns each, that one call may take: a few minutes."""


def poisson_race(
    target: Any, draft: Any, *, trials: int, state: Words, max_rank: int = 1, by_output: bool = False
) -> Counts:
    r"""Run Poisson races with replacement at one position, arrival by arrival (R1; ``li2018``).

    Candidates :math:`X_k \sim q` come i.i.d. at the times :math:`T_k` of a Poisson process of rate 1; the output is the
    candidate of least :math:`T_k/\rho(X_k)`, :math:`\rho = p/q`, and its index k, duplicates counted, is its rank. No
    arrival later than :math:`\max\rho` times the least so far can win, so max p/q arrivals are expected (over the
    draft's support; some 15 ns each): for large ratios there is the closed form alone. Tokens that the draft cannot
    draw arrive in the target's race by themselves, at a rate of their mass; they have no rank.

    Returns array ``[max_rank + 2]``, or ``[V, max_rank + 2]`` by output: trials without a rank (the draft cannot draw
    the output) at 0, of rank r at r, of higher ranks at the end.

    Examples
    --------
    >>> from simulations.draws import words
    >>> poisson_race([0.5, 0.5], [1.0, 0.0], trials=1000, state=words(1), max_rank=2).tolist()
    [502, 498, 0, 0]
    """
    race = enter_race(target, draft, trials=trials, max_rank=max_rank, state=state, by_output=by_output)
    largest = float(race.ratios[race.draft > 0].max())
    if trials * largest > MOST_ARRIVALS:
        raise SettingError(
            f"{trials} trials at a largest p/q of {largest:.3g} take {trials * largest:.1g} arrivals",
            limit=f"at most {MOST_ARRIVALS:.0g}",
            remedy="ask for fewer trials, or a pair with smaller ratios",
        )
    beyond = np.where(race.draft > 0, 0.0, race.target)
    mass = float(beyond.sum())
    candidates, unseen = alias(race.draft), alias(beyond if mass > 0 else race.target)
    _poisson_races(race.ratios, candidates, mass, unseen, largest, trials, state, race.counts)
    return race.counts if by_output else race.counts[0]


@compiled
def _poisson_races(
    ratios: Floats, drafts: Alias, mass: float, unseen: Alias, largest: float, trials: int, state: Words, counts: Counts
) -> None:
    beyond = counts.shape[1] - 1
    for _ in range(trials):
        least, time = np.inf, 0.0
        output = rank = arrivals = 0
        if mass > 0.0:
            least = -np.log(1.0 - uniform(state)) / mass
            output = token_of(unseen, state)
        while True:
            time -= np.log(1.0 - uniform(state))
            if time > least * largest:
                break
            arrivals += 1
            x = token_of(drafts, state)
            if ratios[x] > 0.0 and time / ratios[x] < least:
                output, least, rank = x, time / ratios[x], arrivals
        counts[output if counts.shape[0] > 1 else 0, min(rank, beyond)] += 1
