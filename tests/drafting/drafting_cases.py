"""Trees and laws that the tests of drafts share."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Path = tuple[int, ...]

Paths = frozenset[Path]

ROUNDING = 1e-12
"""Sums of up to some thousand products near one, each within 1e-16."""


# S2: the optimal tree against all trees


@cache
def rank_trees(alphabet: int, nodes: int) -> list[Paths]:
    """Every tree of that many nodes with ranks up to `alphabet`."""
    trees: set[Paths] = {frozenset()}
    for _ in range(nodes):
        trees = {
            tree | {(*node, rank)}
            for tree in trees
            for node in [(), *tree]
            for rank in range(1, alphabet + 1)
            if (*node, rank) not in tree
        }
    return list(trees)


def in_order(paths: Paths) -> bool:
    """Whether siblings have ranks 1..m."""
    return all(path[-1] == 1 or (*path[:-1], path[-1] - 1) in paths for path in paths)


def width(paths: Paths) -> int:
    depths = [len(path) for path in paths]
    return max(map(depths.count, depths))


class AllTrees:
    """All trees of one size, and what they give, all at once."""

    def __init__(self, alphabet: int, nodes: int) -> None:
        trees = rank_trees(alphabet, nodes)
        depths = range(1, nodes + 1)
        self.paths = [path for d in depths for path in product(range(1, alphabet + 1), repeat=d)]
        number = {path: i for i, path in enumerate(self.paths)}
        self.members = np.array([[number[path] for path in tree] for tree in trees])
        self.depth = np.array([max(map(len, tree)) for tree in trees])
        self.width = np.array([width(tree) for tree in trees])
        self.in_order = np.array([in_order(tree) for tree in trees])

    def best(self, law: tuple[float, ...], depth: int, most_wide: int, consecutive: bool) -> float:
        """The most expected tokens within the limits, -inf if there is no such tree."""
        weights = np.array([math.prod(law[rank - 1] for rank in path) for path in self.paths])
        allowed = (self.depth <= depth) & (self.width <= most_wide) & (self.in_order | (not consecutive))
        return float(1 + weights[self.members[allowed]].sum(axis=1).max(initial=-np.inf))


@cache
def all_trees(alphabet: int, nodes: int) -> AllTrees:
    return AllTrees(alphabet, nodes)


def larger_laws() -> dict[str, Floats]:
    rng = np.random.default_rng(5)
    zipf = 1 / np.arange(1.0, 31)
    return {
        "geometric": 0.5 ** np.arange(1, 12),
        "zipf": zipf / zipf.sum(),
        "random": rng.dirichlet(np.ones(5)),
        "random, a part missing": rng.dirichlet(np.ones(8))[:7],
        "peaked": np.array([0.02, 0.95, 0.02]),
        "lattice": np.array([0.5, 0.5]),
        "flat": np.full(40, 1 / 40),
    }
