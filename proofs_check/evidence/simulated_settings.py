"""Where kernels are simulated as evidence: pairs of pmfs, draft trees, families of random pmfs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs_check.evidence.simulated import Parameters, Setting
from simulations.models.families import FAMILIES

TURNED: Parameters = {"target": [0.4, 0.3, 0.2, 0.1], "draft": [0.1, 0.2, 0.3, 0.4]}
LACKING: Parameters = {"target": [0.4, 0.3, 0.2, 0.1], "draft": [0.25, 0.0, 0.6, 0.15]}
NEAR: Parameters = {"target": [0.35, 0.3, 0.2, 0.15], "draft": [0.3, 0.4, 0.1, 0.2]}
RARE: Parameters = {"target": [0.4, 0.35, 0.25], "draft": [4e-11, 0.6, 0.4 - 4e-11]}
"""Pairs: of opposite orders, with a token that the draft lacks, near each other, with a p/q of 1e10."""

OVER_ACCEPTING: tuple[Parameters, ...] = (
    {**TURNED, "accept": [1.0, 1.0, 0.8, 0.5]},
    {**LACKING, "accept": [1.0, 1.0, 0.5, 0.8]},
)
"""Pairs with rules that accept more than min(1, p/q)."""

FOREST: list[Setting] = [
    ("random-trees", {"family": family, "pmfs": 256, "tokens": 32, "capacities": [1, 8, 64]}) for family in FAMILIES
]
TREES = (10_000, 200_000)
"""Best trees of random pmfs, and how many."""

RANKED: list[Setting] = [
    ("tree", {"paths": paths, "rank_pmf": law})
    for paths in ([[1], [2], [1, 1], [1, 2], [1, 1, 1]], [[1], [2], [3]])
    for law in ([0.55, 0.25, 0.15, 0.05], [0.2, 0.5, 0.2, 0.1])
]
RACED: list[Setting] = [("raced-tree", {"paths": [[1], [2], [1, 1], [2, 1]], **TURNED, "max_rank": 2})]
"""Draft trees whose ranks are drawn from a law, and whose ranks are those of races."""


def at(kinds: Sequence[str], pairs: Sequence[Parameters], **more: Any) -> list[Setting]:
    """Every simulator at every pair, with the parameters that all share."""
    return [(kind, {**pair, **more}) for pair in pairs for kind in kinds]


STOPPED: list[Setting] = [
    (
        "stopped",
        {
            "target": [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]],
            "draft": [[0.4, 0.3, 0.3], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]],
            "initial": [0.4, 0.3, 0.3],
            "length": 6,
            "k": 3,
            "stop": stop,
        },
    )
    for stop in ("token<0.25", "top<0.5", "entropy>1")
]
"""Chains of token verification that each stopping rule ends."""
