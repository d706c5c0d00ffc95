"""Best trees of random pmfs: the branching bounds B2, B2' and B3' (pankratov2026), and P = 1 exactly.

B1's leading term alone is no bound at P = 1 and predicts nothing here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from simulations.counts.quantities import Mean
from simulations.experiments.tasks import canonical
from simulations.simulators.random_trees import pmfs_of
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.limits import StepLaw, branching_bound, renewal_bound

STATED = (("B2, t = log P", "B2", "lorden"), ("B2, best t", "B2", "best_t"), ("B2'", "B2'", "sharp"))
"""Closed forms: what they are called, statement, form."""


class Moments(NamedTuple):
    """Mean entropy and mean second log-moment of a family of pmfs, nats and nats squared."""

    mu: float
    mu2: float


@predicts("random-trees")
def random_trees(parameters: dict[str, Any]) -> Iterator[Predicted]:
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


def renewal_bounds(parameters: dict[str, Any]) -> tuple[float, ...]:
    """B3' at each capacity of a task, numerically certain from above."""
    return _renewal_bounds(canonical(parameters))


@lru_cache(maxsize=32)
def _renewal_bounds(text: str) -> tuple[float, ...]:
    """Kept, as both the comparison and the drawing ask."""
    parameters = json.loads(text)
    law = StepLaw.from_pmfs(pmfs_of(parameters))
    return tuple(renewal_bound(law, capacity).high for capacity in parameters["capacities"])
