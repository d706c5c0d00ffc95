"""Best trees of a target whose pmfs are random: a trial is a tree.

Parameters are ``capacities``, ascending numbers P of prefixes, and the pmfs that every prefix draws from: a ``family``
of :mod:`simulations.models.families` with its numbers of ``pmfs`` and ``tokens``, or ``pmfs_given``, ``[n, V]``.
Samples are ``P=1`` and so on: total probability of the P heaviest prefixes, a call's tokens without the bonus token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from simulations.counts import Mean, Tally
from simulations.draws import Words
from simulations.experiments.tasks import cache_by_text, simulator
from simulations.kernels.random_pmf_trees import random_pmf_trees
from simulations.models.families import Floats, population
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.limits import StepLaw, branching_bound, renewal_bound


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
    return population(parameters["family"], parameters["pmfs"], parameters["tokens"])


# What theory says

STATED = (("B2, t = log P", "B2", "lorden"), ("B2, best t", "B2", "best_t"), ("B2'", "B2'", "sharp"))
"""Closed forms: what they are called, statement, form."""


class Moments(NamedTuple):
    """Mean entropy and mean second log-moment of a family of pmfs, nats and nats squared."""

    mu: float
    mu2: float


@predicts("random-trees")
def random_trees_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Every form at every capacity; samples have no range narrow enough to use, so Student's approximation judges."""
    mu, mu2 = moments(parameters)
    for capacity, numeric in zip(parameters["capacities"], renewal_bounds(parameters), strict=True):
        tokens = Mean(f"P={capacity}")
        if capacity == 1:
            best = float(pmfs_of(parameters).max(axis=-1).mean())
            yield Predicted("E[X], P = 1", "best tree", Mean("P=1", 0.0, 1.0), best)
        for name, statement, form in STATED:
            bound = branching_bound(mu, mu2, capacity, form)  # type: ignore[arg-type]
            yield Predicted(
                f"E[X], P = {capacity}" + name.removeprefix(statement), statement, tokens, bound, "upper bound"
            )
        yield Predicted(f"E[X], P = {capacity}", "B3'", tokens, numeric, "upper bound")


def moments(parameters: dict[str, Any]) -> Moments:
    """The exact moments of the step of a task's family."""
    law = StepLaw.from_pmfs(pmfs_of(parameters))
    return Moments(law.mean, max(law.second_moment, law.mean**2))


@cache_by_text(32)
def renewal_bounds(parameters: Mapping[str, Any]) -> tuple[float, ...]:
    """B3' at each capacity of a task, numerically certain from above; both the comparison and the drawing ask."""
    law = StepLaw.from_pmfs(pmfs_of(parameters))
    return tuple(renewal_bound(law, capacity).high for capacity in parameters["capacities"])
