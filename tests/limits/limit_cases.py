"""What the tests of T1 and B share."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np

from proofs_check.library.strategies import Floats

ROUNDING = 1e-12
"""Sums of a few hundred terms of order one."""

Model = Callable[[tuple[int, ...]], Floats]

Node = tuple[int, ...]


def entropy(pmf: Floats) -> float:
    return float(-np.sum(pmf[pmf > 0] * np.log(pmf[pmf > 0])))


def best_tree(model: Model, capacity: int) -> float:
    """Expected correct tokens of the `capacity` heaviest prefixes, grown best-first: the optimum for any drafter."""
    heap = [(-float(weight), (token,)) for token, weight in enumerate(model(())) if weight > 0]
    heapq.heapify(heap)
    total = 0.0
    for _ in range(capacity):
        if not heap:
            break
        weight, prefix = heapq.heappop(heap)
        total -= weight
        for token, share in enumerate(model(prefix)):
            if share > 0:
                heapq.heappush(heap, (weight * share, (*prefix, token)))
    return total


def weight(law: Floats, node: Node) -> float:
    return math.prod(float(law[rank]) for rank in node)
