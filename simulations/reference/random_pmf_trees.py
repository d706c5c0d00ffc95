"""The P heaviest prefixes of a random target, by a plain heap of everything that could come next."""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import NDArray

from simulations.draws.streams import Stream

Floats = NDArray[np.float64]


def heaviest_prefixes(pmfs: Floats, capacity: int, stream: Stream) -> list[float]:
    """Weights of the heaviest prefixes of one random tree, as found; each draws its pmf when it is found."""
    found: list[float] = []
    waiting: list[float] = []
    weight = 1.0
    while len(found) < capacity:
        pmf = pmfs[math.floor(stream.uniform() * len(pmfs))]
        for share in pmf.tolist():
            heapq.heappush(waiting, -weight * share)
        weight = -heapq.heappop(waiting)
        found.append(weight)
    return found
