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
    """E[X] of the best trees of P prefixes: in a stretch its certain tokens, then the best tree after them.

    In a code, level - 1 u after the block's start, it is the best tree from that level. Levels of 2^level >= P are
    alike: no stretch ends in the tree.
    """
    deepest = deepest_level(capacities[-1])
    trees = [_in_block(r, capacities[-1], level) for level in range(1, deepest + 1)]
    after = trees[0]
    m = np.arange(1, capacities[-1])
    levels = np.maximum(np.ceil(np.log2(m)), 1)
    shares = r ** (levels - 1) / mean_block(r)
    code = 1 / (1 - r) / mean_block(r)
    of_level = r ** np.arange(deepest) / mean_block(r)
    of_level[-1] /= 1 - r
    values = []
    for capacity in capacities:
        certain = shares[: capacity - 1]
        inside = float(certain @ (m[: capacity - 1] + after[capacity - m[: capacity - 1]]))
        inside += float(of_level @ [tree[capacity] for tree in trees])
        values.append(inside + (1 - code - float(certain.sum())) * capacity)
    return values


def deepest_level(capacity: int) -> int:
    """The least level whose stretch has as many tokens as the tree has prefixes."""
    return max((capacity - 1).bit_length(), 1)


@lru_cache(maxsize=64)
def _in_block(r: float, capacity: int, level: int) -> Floats:
    """E[X] of the best trees of 0 to P prefixes that start in a code at a level: prefixes by weight, heaviest first.

    The first block gives a prefix u^a for each a, then a z and 2^(level + a) s, each of weight r^a (1-r); what follows
    begins with a new block.
    """
    nodes = _after_block(r, capacity)
    size = len(nodes)
    first = np.zeros((size, size))
    first[1:, 0] = 1
    first[:, 1:] = np.cumsum(nodes, axis=0)[:, :-1]
    first[:, 1] += 1 + 2.0 ** (level + np.arange(size))
    powers = np.arange(size)
    weights = np.outer(r**powers, (1 - r) ** powers).ravel()
    order = np.argsort(-weights, kind="stable")
    filled = np.minimum(np.cumsum(first.ravel()[order]), capacity)
    taken = np.diff(filled, prepend=0.0).astype(np.int64)
    return np.concatenate([[0.0], np.cumsum(np.repeat(weights[order], taken))])


@lru_cache(maxsize=8)
def _after_block(r: float, capacity: int) -> Floats:
    """Numbers of prefixes that begin with a new block, by a and b: their weight is r^a (1-r)^b.

    Blocks end in R(a, b) = sum_j R(a - j + 1, b - 1) prefixes of it; so many more prefixes of that weight end in the z
    or one of the 2^j s of a block of level j, or in a u of a code.
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
    return nodes
