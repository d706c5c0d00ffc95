"""The Poisson race with replacement at one position, as a functional representation is written (R1; ``li2018``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulations.draws.alias import Tokens, alias, drawn
from simulations.draws.streams import Words, uniform
from simulations.kernels.race_counts import Counts, Floats, enter_race
from spectheory.errors import SettingError
from spectheory.kernels.compiling import compiled

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

    Draws of a trial: if there are such tokens, the time of their first (an exponential) and which it is (alias table,
    one uniform); then for each arrival the gap before it (an exponential; also for the one that comes too late) and
    its token (alias table, one uniform).

    Returns array ``[max_rank + 2]``, or ``[V, max_rank + 2]`` by output: trials without a rank (the draft cannot draw
    the output) at 0, of rank r at r, of higher ranks at the end.

    Examples
    --------
    >>> from simulations.draws.streams import words
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
    _races(race.ratios, *candidates, mass, *unseen, largest, trials, state, race.counts)
    return race.counts if by_output else race.counts[0]


@compiled
def _races(
    ratios: Floats,
    keep: Floats,
    other: Tokens,
    mass: float,
    unseen_keep: Floats,
    unseen_other: Tokens,
    largest: float,
    trials: int,
    state: Words,
    counts: Counts,
) -> None:
    beyond = counts.shape[1] - 1
    for _ in range(trials):
        least, time = np.inf, 0.0
        output = rank = arrivals = 0
        if mass > 0.0:
            least = -np.log(1.0 - uniform(state)) / mass
            output = drawn(unseen_keep, unseen_other, uniform(state))
        while True:
            time -= np.log(1.0 - uniform(state))
            if time > least * largest:
                break
            arrivals += 1
            x = drawn(keep, other, uniform(state))
            if ratios[x] > 0.0 and time / ratios[x] < least:
                output, least, rank = x, time / ratios[x], arrivals
        counts[output if counts.shape[0] > 1 else 0, min(rank, beyond)] += 1
