"""S2 where the candidates of a position must be tried in order: children have ranks 1..m (``chen2024sequoia``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting.tree import Tree

Floats = NDArray[np.float64]
Path = tuple[int, ...]
MOST_CONSECUTIVE = 4096
"""Nodes of a tree by dynamic programme, whose time and memory grow with their square."""


def best_consecutive_tree(law: Floats, budget: int, max_depth: int) -> Tree:
    r"""The tree with the most expected tokens among those whose siblings have ranks 1..m (S2, exact).

    Dynamic programme: with V_d(n) the most weight of n nodes below and including a root of weight 1 that may be d
    deep, and W_d(r, n) the most of n nodes below it whose ranks start at r,

    .. math:: V_d(n) = 1 + W_d(1, n - 1), \qquad
        W_d(r, n) = \max_{1\le j\le n} \pi_r V_{d-1}(j) + W_d(r + 1, n - j), \qquad W_d(r, 0) = 0.

    Examples
    --------
    >>> best_consecutive_tree(np.array([0.1, 0.8]), 3, 3).paths
    [(1,), (2,), (2, 1)]
    """
    law = law[:budget]
    unlimited = max_depth >= budget
    tables = [_table(law, budget, None)] if unlimited else []
    above = np.ones(1)
    for _ in range(0 if unlimited else max_depth):
        tables.append(_table(law, budget, above))
        most = tables[-1][0][0]
        above = 1 + most[np.isfinite(most)]
    paths: list[Path] = []
    waiting: list[tuple[Path, int]] = [((), int(np.flatnonzero(np.isfinite(tables[-1][0][0]))[-1]))]
    while waiting:
        path, below = waiting.pop()
        sizes = _sizes(tables[0 if unlimited else max_depth - 1 - len(path)][1], below)
        while sizes and not law[len(sizes) - 1]:  # a rank that never occurs is drafted for the sake of later ones only
            sizes.pop()
        children = [(*path, rank) for rank in range(1, len(sizes) + 1)]
        paths += children
        waiting += [
            (child, size - 1)
            for child, size in zip(children, sizes, strict=True)
            if size > 1 and law[child[-1] - 1] > 0
        ]
    return Tree.from_paths(paths or [(1,)])


def _sizes(first: NDArray[np.int64], below: int) -> list[int]:
    """Nodes of the subtree of each child, of a node with so many below it."""
    sizes: list[int] = []
    while below:
        sizes.append(int(first[len(sizes), below]))
        below -= sizes[-1]
    return sizes


def _table(law: Floats, budget: int, above: Floats | None) -> tuple[Floats, NDArray[np.int64]]:
    """W_d(r, n) ``[A + 1, budget + 1]`` and the size of the first subtree there, from `above` = V_{d-1} (None: no
    limit).
    """
    values = np.zeros((len(law) + 1, budget + 1))
    values[:, 1:] = -np.inf
    first = np.zeros((len(law), budget + 1), dtype=np.int64)
    for n in range(1, budget + 1):
        subtree = (1 + values[0, :n]) if above is None else above[:n]
        for r in range(len(law) - 1, -1, -1):
            options = law[r] * subtree + values[r + 1, n - 1 :: -1][: len(subtree)]
            j = int(np.argmax(options))
            values[r, n], first[r, n] = options[j], j + 1
    return values, first
