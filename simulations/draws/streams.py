"""Random numbers of the kernels and of the readable algorithms: xoshiro256++, seeded by numpy.

A stream is four 64-bit words, an array that a kernel advances in place; :class:`Stream` draws from one in Python. A
draw costs about a nanosecond, several times less than numpy's generators inside compiled code.

Functions compiled into a kernel of another file are not renewed on disk when this file changes: delete the cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.draws.alias import Floats, alias, drawn
from spectheory.kernels.compiling import compiled

Words = NDArray[np.uint64]


def words(seed: int, *child: int) -> Words:
    """The words of a fresh stream; streams of different seeds, or of different children of a seed, are independent."""
    sequence = np.random.SeedSequence(seed, spawn_key=child)
    return np.asarray(sequence.generate_state(4, np.uint64), dtype=np.uint64)


@compiled
def next_word(state: Words) -> np.uint64:
    """64 random bits."""
    total = state[0] + state[3]
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return result


@compiled
def uniform(state: Words) -> float:
    """A multiple of 2^-53 in [0, 1)."""
    return float(next_word(state) >> np.uint64(11)) * 2.0**-53


@compiled
def exponential(state: Words) -> float:
    """An Exp(1) time; 0 with probability 2^-53."""
    return -math.log1p(-uniform(state))


class Stream:
    """The same stream for algorithms in Python; it copies the words.

    Examples
    --------
    >>> state = words(1)
    >>> stream = Stream(state)
    >>> [stream.uniform() for _ in range(3)] == [uniform(state) for _ in range(3)]
    True
    """

    def __init__(self, state: Words) -> None:
        self.state = np.array(state)

    def uniform(self) -> float:
        """A multiple of 2^-53 in [0, 1)."""
        return uniform(self.state)

    def exponential(self) -> float:
        """An Exp(1) time."""
        return exponential(self.state)

    def token(self, weights: Floats) -> int:
        """One token by the alias table of weights ``[V]``, which need not sum to one."""
        return int(drawn(*alias(weights), self.uniform()))

    def inverted(self, weights: Floats, order: Any = None) -> int:
        """One token by inversion of the cumulative weights, tokens in the given order."""
        cumulative = np.cumsum(weights if order is None else weights[order])
        place = int(np.searchsorted(cumulative, self.uniform() * cumulative[-1], side="right"))
        return place if order is None else int(order[place])

    def coin(self, chance: float) -> bool:
        """Whether a coin of that probability shows heads."""
        return bool(self.uniform() < chance)
