"""Several candidates at one position: recursive rejection (R3) and Gumbel lists (R6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulations.counts.quantities import Share
from simulations.predicted.races import outputs, ranks
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.verification import GumbelList, RecursiveRejection
from spectheory.verification.distinct import most_ranks


@predicts("recursive")
def recursive(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Recursive rejection of i.i.d. candidates."""
    yield from ranks(RecursiveRejection(replacement=True), "R3", parameters, first=0)


@predicts("recursive-distinct")
def recursive_distinct(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Recursive rejection of distinct candidates, as many ranks as can be enumerated."""
    most = most_ranks(len(parameters["target"]), parameters["max_rank"])
    yield from ranks(RecursiveRejection(replacement=False), "R3", {**parameters, "max_rank": most}, first=0)


@predicts("gumbel-list")
@predicts("gumbel-list-dense")
def gumbel_list(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Gumbel lists: the exact probability of a miss, the printed bound for hits of the output's own race."""
    given = (parameters["target"], parameters["draft"], parameters["k"])
    yield Predicted("P(not in the list)", "R6", Share("hits", 0), 1.0 - float(GumbelList().acceptance(*given)))
    yield Predicted(
        "P(draft of the output's race)", "R6", Share("hits", 2), float(GumbelList().acceptance_bound(*given))
    )
    yield from outputs(parameters)
