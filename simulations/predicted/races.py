"""Races at one position: acceptance, the law of the rank, the output's law (A2, R1, R2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simulations.counts.quantities import Share
from simulations.models.positions import MOST_OUTPUTS
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.verification import PoissonRace, RaceVerification
from spectheory.verification.base import RankRule

MOST_WORK = 3 << 24
"""Largest positions V^2 (ranks + 4) that the race's law is worked out for: some 20 seconds."""


def race_ranks(tokens: int, max_rank: int, positions: int = 1) -> int:
    """How many ranks of the race's law are predicted, of `max_rank`: rank 1 is cheap, others are O(V^2) integrals.

    Examples
    --------
    >>> race_ranks(1000, 8), race_ranks(4000, 8), race_ranks(200_000, 8), race_ranks(100, 8, positions=1000)
    (8, 1, 1, 1)
    """
    return max(1, min(max_rank, MOST_WORK // (positions * tokens**2) - 4))


@predicts("race")
@predicts("race-dense")
@predicts("race-numpy")
def race(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The exponential race over distinct tokens: as many ranks as :func:`race_ranks` says."""
    acceptance = float(RaceVerification().acceptance(parameters["target"], parameters["draft"]))
    yield Predicted("acceptance rate", "A2", Share("rank", 1), acceptance)
    most = race_ranks(len(parameters["target"]), parameters["max_rank"])
    yield from ranks(RaceVerification(), "R2", {**parameters, "max_rank": most}, first=1)


@predicts("poisson")
def poisson(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The Poisson race with replacement."""
    yield from ranks(PoissonRace(), "R1", parameters, first=1)


def ranks(rule: RankRule, statement: str, parameters: dict[str, Any], *, first: int) -> Iterator[Predicted]:
    """P(R = r) and P(output = x); rank 1 is counted at index `first`."""
    law = np.asarray(rule.rank_pmf(parameters["target"], parameters["draft"], parameters["max_rank"]))
    for r, share in enumerate(law):
        yield Predicted(f"P(R = {r + 1})", statement, Share("rank", first + r), float(min(share, 1.0)))
    yield from outputs(parameters)


def outputs(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The output follows the target; nothing where outputs are not counted."""
    if len(parameters["target"]) > MOST_OUTPUTS:
        return
    for x, share in enumerate(parameters["target"]):
        yield Predicted(f"P(output = {x})", "lossless", Share("output", x), float(share))
