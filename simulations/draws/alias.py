"""Draws from a fixed pmf by one uniform and one row of a table (the alias method of Walker and Vose).

Column x of the table keeps x with probability ``keep[x]`` and else gives ``other[x]``; a column is drawn uniformly. The
table is built once, O(V); that it stands for the pmf is checked by adding up its columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels.compiling import compiled

Floats = NDArray[np.float64]
Tokens = NDArray[np.int32]


class Alias(NamedTuple):
    """Tables of pmfs ``[..., V]``: the probability that a column gives its own token, and the token it gives else."""

    keep: Floats
    other: Tokens

    def pmf(self) -> Floats:
        """The pmf that the table stands for, from its columns."""
        tokens = self.keep.shape[-1]
        law = np.array(self.keep)
        for row, (keep, other) in zip(law.reshape(-1, tokens), _rows(self), strict=True):
            np.add.at(row, other, 1 - keep)
        return law / tokens


def alias(pmf: Floats) -> Alias:
    """The tables of pmfs ``[..., V]``; weights need not sum to one."""
    weights = np.ascontiguousarray(pmf, dtype=np.float64)
    keep, other = np.empty(weights.shape), np.empty(weights.shape, dtype=np.int32)
    tables = Alias(keep, other)
    for row, (row_keep, row_other) in zip(weights.reshape(-1, weights.shape[-1]), _rows(tables), strict=True):
        _build(row, row_keep, row_other)
    return tables


def _rows(tables: Alias) -> zip[tuple[Floats, Tokens]]:
    tokens = tables.keep.shape[-1]
    return zip(tables.keep.reshape(-1, tokens), tables.other.reshape(-1, tokens), strict=True)


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
def drawn(keep: Floats, other: Tokens, u: float) -> int:
    """The token that a uniform draws: its integer part picks the column, its fraction decides within."""
    scaled = u * keep.size
    column = int(scaled)
    return column if scaled - column < keep[column] else int(other[column])
