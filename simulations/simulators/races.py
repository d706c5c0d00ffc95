"""Races at one position: a trial is a race.

Parameters are ``target`` and ``draft``, pmfs ``[V]``, and ``max_rank``. Counted are ``rank``, ``[max_rank + 2]`` (no
rank, rank 1, 2, ..., higher), and ``output``, ``[V]``, up to :data:`simulations.models.positions.MOST_OUTPUTS` tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simulations.counts.tally import Tally
from simulations.draws.streams import Words
from simulations.experiments.registry import simulator
from simulations.kernels.dense_race import dense_race
from simulations.kernels.lazy_race import lazy_race
from simulations.kernels.poisson_race import poisson_race
from simulations.kernels.race_counts import Counts
from simulations.models.positions import MOST_OUTPUTS

Kernel = Callable[..., Counts]


@simulator("race", version="1")
def race(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A race over distinct tokens, target first (R2)."""
    return _raced(lazy_race, parameters, trials, state)


@simulator("race-dense", version="1")
def race_dense(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The same with a clock for every token (A2, R2)."""
    return _raced(dense_race, parameters, trials, state)


@simulator("poisson", version="1")
def poisson(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A Poisson race with replacement (R1)."""
    return _raced(poisson_race, parameters, trials, state)


def _raced(kernel: Kernel, parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    sorted_out = len(parameters["target"]) <= MOST_OUTPUTS
    counts = kernel(
        parameters["target"],
        parameters["draft"],
        trials=trials,
        state=state,
        max_rank=parameters["max_rank"],
        by_output=sorted_out,
    )
    if not sorted_out:
        return Tally.of(trials, counts={"rank": counts})
    return Tally.of(trials, counts={"rank": counts.sum(axis=0), "output": counts.sum(axis=1)})
