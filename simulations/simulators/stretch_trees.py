"""Text with long certain stretches, and the depth to which it lies in the best draft tree (B9): a trial is a start.

A block is u^(j-1) z s^(2^j): at its start and after each u, u comes with probability ``r`` and z with 1 - r; the z
fixes 2^j certain tokens s. A start lies uniformly in endless text, and the drafter knows the text before it: in a
stretch with m tokens left the best tree of P prefixes is these, up to P, and below them the P - m heaviest prefixes of
a new block. In a code it is that of the code's level, 1 + the u before the start; from the level with 2^level >= P on
no stretch ends in the tree, and levels are alike.

Parameters are ``r`` < 1/2 and ``capacities``, ascending numbers P. Samples ``P=1`` are the predicted tokens.

Draws of a trial, in order: a uniform for the place of the start among a block's expected tokens, one for the place in
its stretch, and one for each coin.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from simulations.counts import Mean, Tally
from simulations.draws import Floats, Words, uniform
from simulations.experiments.tasks import simulator
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.errors import SettingError

Children = list[dict[int, int]]
"""Of each node, the root first: its children by their tokens 0 (u), 1 (z) and 2 (s)."""

U, Z, S = 0, 1, 2


@simulator("stretch-trees", version="2")
def stretch_trees(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A start in text of codes and certain stretches, predicted by the best trees (B9)."""
    r, capacities = parameters["r"], parameters["capacities"]
    if not 0 < r < 0.5 or sorted(set(capacities)) != list(capacities) or capacities[0] < 1:
        raise SettingError(
            f"r is {r} and capacities are {capacities}",
            limit="needs 0 < r < 1/2 and ascending capacities from 1",
            remedy="at r = 1/2 blocks have no mean length",
        )
    values = np.array([_predicted(r, capacities, state) for _ in range(trials)], dtype=np.float64)
    return Tally.of(trials, samples={f"P={capacity}": values[:, at] for at, capacity in enumerate(capacities)})


@lru_cache(maxsize=64)
def tree_in_block(r: float, capacity: int, start: int = 1) -> Children:
    """The heaviest prefixes in a code at level `start`, numbered from 1 as they are taken, the heaviest first."""
    children: Children = [{}]
    waiting = [(-share, parent, token, start, 0) for parent, token, share in ((0, U, r), (0, Z, 1 - r))]
    heapq.heapify(waiting)
    while len(children) <= capacity:
        weight, parent, token, level, left = heapq.heappop(waiting)
        node = len(children)
        children[parent][token] = node
        children.append({})
        if token == S:
            left -= 1
        else:
            level, left = (level + 1, 0) if token == U else (level, 1 << level)
        if left:
            heapq.heappush(waiting, (weight, node, S, level, left))
        else:
            level = 1 if token == S else level
            heapq.heappush(waiting, (weight * r, node, U, level, 0))
            heapq.heappush(waiting, (weight * (1 - r), node, Z, level, 0))
    return children


def _predicted(r: float, capacities: Sequence[int], state: Words) -> list[int]:
    """Tokens that each capacity predicts at one start."""
    left, level = _start(r, state)
    level = min(level, max((capacities[-1] - 1).bit_length(), 1))
    ranks = _ranks(r, tree_in_block(r, capacities[-1], level), level, state) if left < capacities[-1] else []
    return [min(left, capacity) + sum(rank <= capacity - left for rank in ranks) for capacity in capacities]


def _start(r: float, state: Words) -> tuple[int, int]:
    """Certain tokens before a random start, and the level of the code in which the text goes on after them."""
    share, inside = uniform(state), uniform(state)
    place, level = share * (1 / (1 - r) + 2 * (1 - r) / (1 - 2 * r)), 1
    while (in_codes := r ** (level - 1)) > 1e-300:
        if place < in_codes:
            return 0, level
        place, tokens = place - in_codes, (1 - r) * r ** (level - 1) * 2.0**level
        if place < tokens:
            return 1 + int(inside * (1 << level)), 1
        place, level = place - tokens, level + 1
    return 0, level


def _ranks(r: float, children: Children, level: int, state: Words) -> list[int]:
    """The numbers of the nodes that a text in a code at a level runs through, until it leaves the tree."""
    node, left, ranks = 0, 0, list[int]()
    while True:
        token = S if left else (U if uniform(state) < r else Z)
        if token not in children[node]:
            return ranks
        node = children[node][token]
        ranks.append(node)
        if token == S:
            left -= 1
            level = level if left else 1
        elif token == U:
            level += 1
        else:
            left = 1 << level


# What theory says


@predicts("stretch-trees")
def stretch_trees_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
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
