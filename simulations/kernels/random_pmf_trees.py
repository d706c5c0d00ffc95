"""The P heaviest prefixes of a target whose pmfs are random, compiled: best-first search (§5).

A prefix waits in the heap once its parent and its next heavier sibling have left it. Which of equal weights leaves
first changes no total: what waits afterwards is the same, whatever is drawn.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.draws import Floats, Words, uniform
from simulations.models.pairs import checked_stream, pmf_rows, whole_number
from spectheory.errors import SettingError
from spectheory.kernels.compiling import compiled

Keys = NDArray[np.int64]


def random_pmf_trees(pmfs: Any, capacities: Sequence[int], trees: int, *, state: Words) -> Floats:
    """Probability of the P heaviest prefixes of random trees: predicted tokens of a call, bonus token left out (§5).

    Every prefix draws one of n pmfs, independently of all others, when it is taken. The best trees are nested, so one
    run serves every capacity P.

    - ``pmfs``, ``[V]`` or ``[n, V]``: the family; its rows are equally likely.
    - ``capacities``: the numbers P of prefixes, root excluded, ascending.
    - ``trees``: independent random trees, at least 1.

    Returns array ``[trees, capacities]``: total probability of the P heaviest prefixes of each tree.

    Examples
    --------
    >>> from simulations.draws import words
    >>> random_pmf_trees([0.75, 0.25], [1, 3], 1, state=words(1))
    array([[0.75    , 1.734375]])
    """
    sizes, runs = _ascending(capacities), whole_number("trees", trees)
    rows = np.ascontiguousarray(np.sort(pmf_rows(pmfs), axis=-1)[:, ::-1])
    totals = np.empty((runs, sizes.size))
    _grow(rows, sizes, totals, checked_stream(state))
    return totals


def _ascending(capacities: Sequence[int]) -> Keys:
    sizes = [whole_number("a capacity", capacity) for capacity in capacities]
    if not sizes or any(one >= other for one, other in pairwise(sizes)):
        raise SettingError(f"capacities are {sizes}", limit="must ascend, at least one", remedy="sort them, each once")
    return np.array(sizes, dtype=np.int64)


@compiled
def _grow(rows: Floats, capacities: Keys, totals: Floats, state: Words) -> None:
    most = capacities[-1]
    taken_weight, taken_row = np.empty(most), np.empty(most, np.int64)  # of the parents, the root first
    for tree in range(totals.shape[0]):
        taken_weight[0], taken_row[0] = 1.0, int(uniform(state) * rows.shape[0])
        waiting = [(-rows[taken_row[0], 0], 0, 0)]  # weight, number of the parent, place among its siblings
        total, column = 0.0, 0
        for number in range(1, most + 1):
            negative, parent, place = waiting[0]
            total -= negative
            if number == capacities[column]:
                totals[tree, column] = total
                column += 1
            if number == most:
                break
            row = int(uniform(state) * rows.shape[0])
            taken_weight[number], taken_row[number] = -negative, row
            heapq.heapreplace(waiting, (negative * rows[row, 0], number, 0))
            if place + 1 < rows.shape[1]:
                share = rows[taken_row[parent], place + 1]
                if share > 0.0:
                    heapq.heappush(waiting, (-taken_weight[parent] * share, parent, place + 1))
