"""The tree of tokens that one call drafts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROOT = -1
"""Stands for the text so far, which is not a node."""


class DraftTree:
    """Drafted tokens, each below its parent (:data:`ROOT`: the text so far); `pmfs` are the draft's after nodes it has
    read.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.ranks: list[int] = []
        self.depths: list[int] = []
        self.pmfs: dict[int, Floats] = {}
        self.is_chain = True
        self._children: dict[int, list[int]] = {}
        self._chosen: list[int] | None = None

    def add(self, parent: int, rank: int, token: int) -> int:
        """Add a node after its siblings of lower rank; return its number."""
        node = len(self.tokens)
        self.is_chain &= parent == node - 1
        self.tokens.append(token)
        self.parents.append(parent)
        self.ranks.append(rank)
        self.depths.append(1 + (self.depths[parent] if parent != ROOT else 0))
        self._children.setdefault(parent, []).append(node)
        return node

    def choose(self, nodes: list[int]) -> None:
        """Draft only these nodes, in ascending order; the others were explored."""
        kept = set(nodes)
        self._chosen = nodes
        self._children = {
            parent: [node for node in children if node in kept] for parent, children in self._children.items()
        }

    @property
    def nodes(self) -> list[int]:
        """The drafted nodes, parents first."""
        return list(range(len(self.tokens))) if self._chosen is None else self._chosen

    @property
    def depth(self) -> int:
        """The largest number of drafts that can be accepted."""
        return max((self.depths[node] for node in self.nodes), default=0)

    def children(self, node: int) -> list[int]:
        """The drafted children of a node by rank."""
        return self._children.get(node, [])

    def child(self, node: int, token: int) -> int | None:
        """The first drafted child with this token, or None."""
        return next((child for child in self.children(node) if self.tokens[child] == token), None)

    def path(self, node: int) -> list[int]:
        """The nodes from below the root down to `node`."""
        path = []
        while node != ROOT:
            path.append(node)
            node = self.parents[node]
        return path[::-1]
