"""Texts in blocks: what is read and computed at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 15
"""Positions of a block: 16 numbers for each are 4 MB. A longer text is a block of its own."""


def whole_texts(lengths: NDArray[np.int64], positions: int) -> Iterator[slice]:
    """Runs of texts of at most so many positions, each of one text at least.

    Examples
    --------
    >>> [(run.start, run.stop) for run in whole_texts(np.array([3, 3, 9, 1]), 6)]
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        before = int(ends[first] - lengths[first])
        last = max(int(np.searchsorted(ends, before + positions, side="right")), first + 1)
        yield slice(first, last)
        first = last


def rows_of(
    columns: Mapping[str, NDArray[Any]], names: Collection[str], sizes: Iterable[int]
) -> Iterator[dict[str, NDArray[Any]]]:
    """The columns of these names in runs of so many rows, from the first on."""
    first = 0
    for size in sizes:
        yield {name: columns[name][first : first + size] for name in columns if name in names}
        first += size
