"""What drafters and verifiers are given: the tree of tokens that a call drafts, and the randomness of its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spectheory.measure.columns.noise import position_keys, uniforms

Floats = NDArray[np.float64]
ROOT = -1
"""Stands for the text so far, which is not a node."""


class DraftTree:
    """Drafted tokens, each below its parent (:data:`ROOT`: the text so far); `pmfs` are the draft's after nodes it has
    read, `confidence` what a head says there of the next draft.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.ranks: list[int] = []
        self.depths: list[int] = []
        self.pmfs: dict[int, Floats] = {}
        self.confidence: dict[int, float] = {}
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
    def copied(self) -> bool:
        """Whether it has nodes, and no draft model or head was read for them."""
        return bool(self.tokens) and ROOT not in self.pmfs

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


_CHILD, _REPEAT = 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B
"""Separate the keys of longer prefixes and of later arrivals from those of the clocks."""


class _Chance(Protocol):
    """All random draws of drafters and verifiers; a test that explores both outcomes of each gets the exact law."""

    def categorical(self, weights: Floats) -> int:
        """Draw a token with probability proportional to its weight; at least one weight is positive."""

    def coin(self, probability: float) -> bool:
        """True with this probability; values above 1 count as 1."""


class GeneratorChance:
    """Chance from a numpy generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def categorical(self, weights: Floats) -> int:
        """One token by inversion."""
        cumulative = weights.cumsum()
        # Strictly below the total despite rounding, so that the token found has weight.
        height = min(self.rng.random() * cumulative[-1], np.nextafter(cumulative[-1], 0.0))
        return int(cumulative.searchsorted(height, side="right"))

    def coin(self, probability: float) -> bool:
        """True if a uniform number is below the probability."""
        return bool(self.rng.random() < probability)


class Clocks:
    """Exp(1) clocks of every token after every prefix of a text, from a hash of seed, position and prefix.

    A prefix has the same clocks in every call, tree and batch and on every device: so the output of a race does not
    depend on its drafts (kobus2025). `key` is a :func:`~spectheory.measure.columns.noise.text_key`.
    """

    def __init__(self, key: int, vocabulary: int) -> None:
        self.vocabulary = vocabulary
        self._keys = {ROOT: key}
        self._clocks: dict[int, Floats] = {}
        self._behind: list[int] = []

    def follow(self, tokens: Iterable[int]) -> None:
        """Append these tokens to the text, and forget the keys and clocks of the last call's tree."""
        self._keys = {ROOT: self._keys[ROOT]}
        self._clocks = {}
        self._behind += tokens

    def at(self, tree: DraftTree, node: int) -> Floats:
        """The clocks ``[V]`` of the position after a node."""
        if node not in self._clocks:
            self._clocks[node] = self._exponentials(self._key(tree, node), self.vocabulary)
        return self._clocks[node]

    def later(self, tree: DraftTree, node: int, token: int, count: int) -> Floats:
        """Waiting times ``[count]`` between the arrivals of a token after its first one."""
        return self._exponentials(_longer(self._key(tree, node) ^ _REPEAT, token), count)

    def _key(self, tree: DraftTree, node: int) -> int:
        for token in self._behind:
            self._keys[ROOT] = _longer(self._keys[ROOT], token)
        self._behind = []
        if node not in self._keys:
            self._keys[node] = _longer(self._key(tree, tree.parents[node]), tree.tokens[node])
        return self._keys[node]

    @staticmethod
    def _exponentials(key: int, count: int) -> Floats:
        return -np.log1p(-uniforms(np.array([key], dtype=np.uint64), count)[0])


def _longer(key: int, token: int) -> int:
    """The key of a prefix extended by one token."""
    return int(position_keys(key ^ _CHILD, token, 1)[0])


@dataclass(frozen=True)
class Source:
    """The randomness of one text: chance for draws, clocks for races."""

    chance: _Chance
    clocks: Clocks
