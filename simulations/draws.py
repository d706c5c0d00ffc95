"""Random numbers of the kernels and of the readable algorithms: xoshiro256++, seeded by numpy, and alias tables.

A stream is four 64-bit words, an array that a kernel advances in place; :class:`Stream` draws from one in Python. A
draw costs about a nanosecond, several times less than numpy's generators inside compiled code.

Column x of an alias table keeps x with probability ``keep[x]`` and else gives ``other[x]``; a column is drawn
uniformly. The table is built once, O(V).

Functions compiled into a kernel of another file are not renewed on disk when this file changes: delete the cache.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels.compiling import compiled

# Draws from a fixed pmf by one uniform and one row of a table (the alias method of Walker and Vose)


Floats = NDArray[np.float64]
Tokens = NDArray[np.int32]
Counts = NDArray[np.int64]


class Alias(NamedTuple):
    """Tables of pmfs ``[..., V]``: the probability that a column gives its own token, and the token it gives else."""

    keep: Floats
    other: Tokens


def alias(pmf: Floats) -> Alias:
    """The tables of pmfs ``[..., V]``; weights need not sum to one."""
    weights = np.ascontiguousarray(pmf, dtype=np.float64)
    keep, other = np.empty(weights.shape), np.empty(weights.shape, dtype=np.int32)
    for row in zip(*(each.reshape(-1, weights.shape[-1]) for each in (weights, keep, other)), strict=True):
        _build(*row)
    return Alias(keep, other)


@compiled
def _build(weights: Floats, keep: Floats, other: Tokens) -> None:
    """Fill one table: a column short of the mean is topped up by one that is above it."""
    tokens = weights.size
    mean = weights.sum() / tokens
    short, ample = np.empty(tokens, np.int32), np.empty(tokens, np.int32)
    n_short = n_ample = 0
    for x in range(tokens):
        keep[x] = weights[x] / mean
        other[x] = x
        if keep[x] < 1.0:
            short[n_short] = x
            n_short += 1
        else:
            ample[n_ample] = x
            n_ample += 1
    while n_short > 0 and n_ample > 0:
        n_short -= 1
        low, high = short[n_short], ample[n_ample - 1]
        other[low] = high
        keep[high] -= 1.0 - keep[low]
        if keep[high] < 1.0:
            n_ample -= 1
            short[n_short] = high
            n_short += 1
    for i in range(n_short):  # what rounding left over: these columns are full
        keep[short[i]] = 1.0
    for i in range(n_ample):
        keep[ample[i]] = 1.0


@compiled
def alias_draw(keep: Floats, other: Tokens, u: float) -> int:
    """The token that a uniform draws: its integer part picks the column, its fraction decides within."""
    scaled = u * keep.size
    column = int(scaled)
    return column if scaled - column < keep[column] else int(other[column])


# Streams


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
def token_of(table: Alias, state: Words) -> int:
    """A token of the pmf ``[V]`` of a table."""
    return alias_draw(table.keep, table.other, uniform(state))


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
        return int(alias_draw(*alias(weights), self.uniform()))

    def inverted(self, weights: Floats, order: Any = None) -> int:
        """One token by inversion of the cumulative weights, tokens in the given order."""
        cumulative = np.cumsum(weights if order is None else weights[order])
        place = int(np.searchsorted(cumulative, self.uniform() * cumulative[-1], side="right"))
        return place if order is None else int(order[place])

    def coin(self, chance: float) -> bool:
        """Whether a coin of that probability shows heads."""
        return bool(self.uniform() < chance)
