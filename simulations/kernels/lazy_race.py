"""The exponential race at one position, target first: only the drafts that come before the winner are drawn (R2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulations.draws.alias import alias
from simulations.draws.streams import Words, uniform
from simulations.kernels.race_counts import Counts, Floats, enter_race
from spectheory.kernels.compiling import compiled

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

    Draws: winners from their alias table, 256 ahead, one uniform each; then for each race the winner's time, if it
    has a rank; for every arrival the gap before it (an exponential; also for the one that comes too late), its token
    (alias table, 256 ahead, one uniform each) and, if r_y < r_i, a uniform to keep it; for coins a uniform for each of
    the tokens 0..V-1. What was drawn ahead is dropped at the end.

    Returns array ``[max_rank + 2]``, or ``[V, max_rank + 2]`` by output: trials without a rank (the draft cannot draw
    the output) at 0, of rank r at r, of higher ranks at the end.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> lazy_race([0.5, 0.5], [1.0, 0.0], trials=1000, state=words(1), max_rank=2).tolist()
    [483, 517, 0, 0]
    """
    race = enter_race(target, draft, trials=trials, max_rank=max_rank, state=state, by_output=by_output)
    targets, drafts = (_table(pmf, race.ratios) for pmf in (race.target, race.draft))
    _races(race.target, race.draft, targets, drafts, trials, state, race.counts)
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
        own = scaled - column < table[column, 0]
        tokens[i] = column if own else int(table[column, 2])
        ratios[i] = table[column, 1 if own else 3]


@compiled
def _races(p: Floats, q: Floats, targets: Floats, drafts: Floats, trials: int, state: Words, counts: Counts) -> None:
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
