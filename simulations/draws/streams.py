"""Random numbers that a compiled kernel and its readable twin draw alike: xoshiro256++, seeded by numpy.

A stream is four 64-bit words, an array that a kernel advances in place; :class:`Stream` is the same generator in plain
Python. A draw costs about a nanosecond, several times less than numpy's generators inside compiled code.

Functions compiled into a kernel of another file are not renewed on disk when this file changes: a test holds every
kernel equal to its twin, so a stale one is seen.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels.compiling import compiled

Words = NDArray[np.uint64]

UNIT = 2.0**-53
"""Spacing of the uniforms: 53 random bits."""

_MASK = (1 << 64) - 1


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
    """The same stream in plain Python.

    Examples
    --------
    >>> state = words(1)
    >>> stream = Stream(state)
    >>> [stream.uniform() for _ in range(3)] == [uniform(state) for _ in range(3)]
    True
    """

    def __init__(self, state: Words) -> None:
        self.state = [int(word) for word in state]

    def next_word(self) -> int:
        """64 random bits."""
        a, b, c, d = self.state
        result = (_rotated((a + d) & _MASK, 23) + a) & _MASK
        c ^= a
        d ^= b
        self.state = [a ^ d, b ^ c, c ^ ((b << 17) & _MASK), _rotated(d, 45)]
        return result

    def uniform(self) -> float:
        """A multiple of 2^-53 in [0, 1)."""
        return (self.next_word() >> 11) * UNIT

    def exponential(self) -> float:
        """An Exp(1) time."""
        return -math.log1p(-self.uniform())


def _rotated(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & _MASK
