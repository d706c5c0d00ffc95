"""The exponential race at one position, with a clock for every token (A2, R2; ``kobus2025``)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simulations.draws.streams import Words, uniform
from simulations.kernels.race_counts import Counts, Floats, enter_race
from spectheory.kernels.compiling import compiled

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

    Draws: the clocks of tokens 0..V-1, one exponential each, trial by trial; impossible tokens too. A logarithm is
    taken only of a uniform that may win or come before the winner.

    Returns array ``[max_rank + 2]``, or ``[V, max_rank + 2]`` by output: trials without a rank (the draft cannot draw
    the output) at 0, of rank r at r, of higher ranks at the end.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> dense_race([0.5, 0.5], [1.0, 0.0], trials=1000, state=words(1), max_rank=2).tolist()
    [504, 496, 0, 0]
    """
    race = enter_race(target, draft, trials=trials, max_rank=max_rank, state=state, by_output=by_output)
    _races(race.target, race.draft, trials, state, race.counts)
    return race.counts if by_output else race.counts[0]


@compiled
def _races(p: Floats, q: Floats, trials: int, state: Words, counts: Counts) -> None:
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
