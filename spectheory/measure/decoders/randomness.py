"""Where a decoder's randomness comes from: a chance that draws, and clocks that belong to prefixes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from spectheory.measure.decoders.drafted import ROOT, DraftTree, Floats
from spectheory.measure.noise import position_keys, uniforms

_CHILD, _REPEAT = 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B
"""Set the keys of longer prefixes and of later arrivals apart from the clocks themselves."""


class Chance(Protocol):
    """All that drafters and verifiers draw; a test that explores both outcomes of each draw gets the exact law."""

    def categorical(self, weights: Floats) -> int:
        """Draw a token with probability proportional to its weight; some weight is positive."""

    def coin(self, probability: float) -> bool:
        """True with this probability; above 1 counts as 1."""


class Drawn:
    """Chance from a generator.

    Parameters
    ----------
    rng : numpy Generator
        Source of all randomness.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def categorical(self, weights: Floats) -> int:
        """One token by inversion."""
        cumulative = weights.cumsum()
        # Below the total whatever the rounding, so that the token found has weight.
        height = min(self.rng.random() * cumulative[-1], np.nextafter(cumulative[-1], 0.0))
        return int(cumulative.searchsorted(height, side="right"))

    def coin(self, probability: float) -> bool:
        """One uniform number against the probability."""
        return bool(self.rng.random() < probability)


class Clocks:
    """Exp(1) clocks of every token after every prefix of a text, by a hash of seed, position and prefix.

    The same prefix has the same clocks in whatever call, tree or batch it turns up, on every device: this makes the
    output of a race independent of its drafts (kobus2025).

    Parameters
    ----------
    key : int
        From the seed and the text's number (:func:`spectheory.measure.noise.text_key`).
    vocabulary : int
        Tokens.
    """

    def __init__(self, key: int, vocabulary: int) -> None:
        self.vocabulary = vocabulary
        self._keys = {ROOT: key}
        self._clocks: dict[int, Floats] = {}
        self._behind: list[int] = []

    def follow(self, tokens: Iterable[int]) -> None:
        """Go on after these tokens of the text; what belonged to the last call's tree is forgotten."""
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
    """The key of a prefix and one more token."""
    return int(position_keys(key ^ _CHILD, token, 1)[0])


class Source:
    """The randomness of one text.

    Parameters
    ----------
    chance : Chance
        What is drawn.
    clocks : Clocks
        What races.
    """

    def __init__(self, chance: Chance, clocks: Clocks) -> None:
        self.chance, self.clocks = chance, clocks
