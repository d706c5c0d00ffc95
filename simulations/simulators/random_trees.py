"""Best trees of a target whose pmfs are random: a trial is a tree.

Parameters are ``capacities``, ascending numbers P of prefixes, and the pmfs that every prefix draws from: a ``family``
of :mod:`simulations.models.families` with its numbers of ``pmfs`` and ``tokens``, or ``pmfs_given``, ``[n, V]``.
Samples are ``P=1`` and so on: total probability of the P heaviest prefixes, a call's tokens without the bonus token.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from simulations.counts.tally import Tally
from simulations.draws.streams import Words
from simulations.experiments.registry import simulator
from simulations.kernels.random_pmf_trees import random_pmf_trees
from simulations.models.families import Floats, population

_population = lru_cache(maxsize=8)(population)


@simulator("random-trees", version="1")
def random_trees(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The P heaviest prefixes of a random target (B1-B3')."""
    totals = random_pmf_trees(pmfs_of(parameters), parameters["capacities"], trials, state=state)
    names = [f"P={capacity}" for capacity in parameters["capacities"]]
    return Tally.of(trials, samples=dict(zip(names, totals.T, strict=True)))


def pmfs_of(parameters: Mapping[str, Any]) -> Floats:
    """The pmfs ``[n, V]`` that a task asks for."""
    if "pmfs_given" in parameters:
        return np.asarray(parameters["pmfs_given"], dtype=np.float64)
    return _population(parameters["family"], parameters["pmfs"], parameters["tokens"])
