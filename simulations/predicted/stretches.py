"""Best trees on text with long certain stretches (B9), by counting the prefixes of each weight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.counts.quantities import Mean
from simulations.verdicts.predictions import Predicted, predicts

Floats = NDArray[np.float64]


@predicts("stretch-trees")
def stretch_trees(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """E[X] of the best trees at a random start, exactly."""
    values = best_values(parameters["r"], parameters["capacities"])
    for capacity, value in zip(parameters["capacities"], values, strict=True):
        yield Predicted(f"E[X], P = {capacity}", "B9", Mean(f"P={capacity}", 0.0, float(capacity)), value)


def mean_block(r: float) -> float:
    """Mean tokens of a block."""
    return 1 / (1 - r) + 2 * (1 - r) / (1 - 2 * r)


def entropy_rate(r: float) -> float:
    """Nats per token: one coin for each token of a code."""
    return float(-(r * np.log(r) + (1 - r) * np.log1p(-r)) / (1 - r) / mean_block(r))


def best_values(r: float, capacities: list[int]) -> list[float]:
    """E[X] of the best trees of P prefixes: the certain tokens left, then the best tree after them."""
    after = _after_block(r, capacities[-1])
    m = np.arange(1, capacities[-1])
    levels = np.maximum(np.ceil(np.log2(m)), 1)
    shares = r ** (levels - 1) / mean_block(r)
    code = 1 / (1 - r) / mean_block(r)
    values = []
    for capacity in capacities:
        certain = shares[: capacity - 1]
        inside = float(certain @ (m[: capacity - 1] + after[capacity - m[: capacity - 1]]))
        values.append(code * float(after[capacity]) + inside + (1 - code - float(certain.sum())) * capacity)
    return values


@lru_cache(maxsize=8)
def _after_block(r: float, capacity: int) -> Floats:
    """E[X] of the best trees of 0 to P prefixes from a new block: numbers of prefixes by weight, the heaviest first.

    A weight is r^a (1-r)^b. Blocks end in R(a, b) = sum_j R(a - j + 1, b - 1) prefixes of it; so many more prefixes of
    that weight end in the z or one of the 2^j s of a block of level j, or in a u of a code.
    """
    size = 4 + int(np.ceil(np.log(capacity + 1) / -np.log1p(-r)))
    blocks = np.zeros((size, size))
    nodes = np.zeros((size, size))
    blocks[0, 0] = 1
    for b in range(size):
        for a in range(size):
            if b:
                blocks[a, b] += sum(blocks[a - j + 1, b - 1] for j in range(1, a + 2))
                nodes[a, b] += sum(blocks[a - j + 1, b - 1] * (1 + 2.0**j) for j in range(1, a + 2))
            nodes[a, b] += sum(blocks[a - i, b] for i in range(1, a + 1))
    powers = np.arange(size)
    weights = np.outer(r**powers, (1 - r) ** powers).ravel()
    order = np.argsort(-weights, kind="stable")
    filled = np.minimum(np.cumsum(nodes.ravel()[order]), capacity)
    taken = np.diff(filled, prepend=0.0).astype(np.int64)
    return np.concatenate([[0.0], np.cumsum(np.repeat(weights[order], taken))])
