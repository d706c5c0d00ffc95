"""The heaviest nodes of the tree of all rank sequences, in order of weight."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory import kernels

_LOADING = 1_500_000
"""Steps of the plain loop that take as long as loading the compiled one, 0.3 s: 80,000 nodes of 8 ranks."""
_PER_NODE = 10
"""What a node takes beside its step for each rank, in such steps."""
_taken = 0
"""Steps asked for so far."""


def heaviest_nodes(
    law: NDArray[np.float64], budget: int, max_depth: int, max_width: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Parents and places in `law` ``[A]`` (descending) of the heaviest nodes, in descending weight.

    The loop is plain until this process has asked for as many steps as loading the compiled one takes.
    """
    global _taken
    _taken += budget * (len(law) + _PER_NODE)
    grow = _compiled() if _taken >= _LOADING and kernels.installed() else _grow
    return grow(law, budget, max_depth, max_width)


@cache
def _compiled() -> Any:
    from spectheory.kernels.compiling import compiled

    return compiled(_grow)


def _grow(law, budget, max_depth, max_width):  # type: ignore[no-untyped-def]
    """One queue per rank, of the children of that rank in descending weight; the heaviest head is the next node."""
    weights = np.empty(budget + 1)  # the root comes first, as node 0
    depths = np.zeros(budget + 1, np.int32)
    parents = np.empty(budget, np.int32)
    places = np.empty(budget, np.int32)
    widths = np.zeros(max_depth + 1, np.int32)
    heads = np.zeros(len(law), np.int64)
    waiting = law.copy()  # weight of the next child of each rank; 0 if there is none
    weights[0] = 1.0
    count, in_use = 0, min(2, len(law))
    while count < budget:
        best, heaviest = 0, waiting[0]
        for rank in range(1, in_use):
            weight = waiting[rank]
            if weight > heaviest or (weight == heaviest and depths[heads[rank]] < depths[heads[best]]):
                best, heaviest = rank, weight
        if heaviest == 0.0:
            break
        # The next queue starts at a lower weight, so it is not needed earlier.
        if best == in_use - 1 and in_use < len(law):
            in_use += 1
        head = heads[best]
        depth = depths[head] + 1
        if widths[depth] < max_width:
            widths[depth] += 1
            parents[count], places[count] = head - 1, best
            count += 1
            weights[count], depths[count] = heaviest, depth
            if depth < max_depth:
                for rank in range(in_use):
                    if waiting[rank] == 0.0:  # its queue was empty
                        heads[rank], waiting[rank] = count, heaviest * law[rank]
        head += 1
        while head <= count and depths[head] == max_depth:
            head += 1
        heads[best] = head
        waiting[best] = weights[head] * law[best] if head <= count else 0.0
    return parents[:count], places[:count]
