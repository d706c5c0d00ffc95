"""Draft trees: the optimal tree of a million nodes, and a tree for the laws along a text of 100,000 positions.

(a) ``optimal_tree`` against the usual heap, which pushes a node's first child and next sibling when it is taken; equal
expected tokens first. The floor is writing what the search must: 16 bytes per node (weight, parent, rank).
(b) ``text_tree`` against the same greedy in plain numpy, which works a node's weight out anew from its path and
multiplies rank by rank; equal calls of the first tree are asserted. The peer is one growth of the search's several.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from _rows import Row, median_seconds, publish
from numpy.typing import NDArray

from spectheory.drafting import Tree, expected_tokens, optimal_tree
from spectheory.prediction.best_tree import text_tree
from spectheory.prediction.paths import calls_of_tree, tree_survival

Floats = NDArray[np.float64]

NODES, REPEATS = 1_000_000, 5
GEOMETRIC, CURVE = "geometric, 8 ranks", "optimal tree"
EQUAL = 1e-9
"""Relative: a million weights added in two orders, and calls in two."""
POSITIONS, TEXTS, BUDGET, RANKS = 100_000, 100, 1024, 8


def heap_tree(law: Floats, budget: int) -> tuple[list[int], list[int], float]:
    """Parents, ranks and expected tokens of the heaviest nodes, from a heap of one child or sibling each."""
    order = sorted(range(len(law)), key=lambda r: -law[r])
    shares = [float(law[r]) for r in order]
    waiting = [(-shares[0], 0, -1, 1.0)]  # weight, place in the order, parent, parent's weight
    parents, ranks, total = [], [], 1.0
    while waiting and len(parents) < budget:
        weight, place, parent, above = heapq.heappop(waiting)
        node = len(parents)
        parents.append(parent)
        ranks.append(order[place] + 1)
        total -= weight
        if place + 1 < len(shares):
            heapq.heappush(waiting, (-above * shares[place + 1], place + 1, parent, above))
        heapq.heappush(waiting, (weight * shares[0], 0, node, -weight))
    return parents, ranks, total


def write_nodes() -> None:
    """The floor: 16 bytes for each node."""
    np.empty(NODES, np.float64).fill(1.0)
    np.empty(NODES, np.int32).fill(1)
    np.empty(NODES, np.int32).fill(1)


def rank_laws() -> dict[str, Floats]:
    """Laws of one position."""
    geometric = 0.3 * 0.7 ** np.arange(RANKS)
    laws = {"acceptance .8, 4 ranks": np.array([0.8, 0.12, 0.05, 0.03]), GEOMETRIC: geometric}
    for ranks in (2, 16, 64, 1000):
        zipf = 1 / np.arange(1, ranks + 1)
        laws[f"1/r, {ranks} ranks"] = zipf / zipf.sum()
    return laws


def optimal() -> Iterator[Row]:
    """Part (a); the peer is timed for the most nodes alone."""
    optimal_tree([0.5, 0.5], NODES)  # compiles, or reads what was compiled before
    floor = 1e3 * median_seconds(write_nodes, REPEATS)
    laws = rank_laws()
    few = [(GEOMETRIC, laws[GEOMETRIC], NODES // part) for part in (1000, 100, 10)]
    for name, law, nodes in [*((name, law, NODES) for name, law in laws.items()), *few]:
        began = time.thread_time()
        *_, tokens = heap_tree(law, nodes)
        peer = 1e3 * (time.thread_time() - began)
        assert abs(float(expected_tokens(optimal_tree(law, nodes), law)) - tokens) <= EQUAL * tokens
        ours = 1e3 * median_seconds(partial(optimal_tree, law, nodes), REPEATS)
        others = (peer, "heapq", floor, "writing the nodes", 40) if nodes == NODES else (None, "", None, "", None)
        work, curve = f"optimal_tree, {nodes:,} nodes, {name}", CURVE if name == GEOMETRIC else ""
        yield Row(work, "ms", ours, "expected tokens", *others, {"nodes": nodes}, curve)


def text_laws() -> dict[str, Floats]:
    """Laws along a text: easy and hard positions mixed, runs of both, and nearly certain ones (deep trees)."""
    rng = np.random.default_rng(0)
    others = 0.5 ** np.arange(1, RANKS)

    def laws(first: Floats) -> Floats:
        return np.concatenate([first[:, None], (1 - first)[:, None] * others], axis=1)

    runs = np.where(np.repeat(rng.random(POSITIONS // 20) < 0.5, 20), 0.95, 0.3)
    return {
        "mixed": laws(rng.beta(2, 1, POSITIONS)),
        "runs": laws(runs),
        "nearly certain": laws(rng.beta(40, 1, POSITIONS)),
    }


def numpy_greedy(law: Floats, left: NDArray[np.int64], budget: int) -> Tree:
    """The tree of the heaviest average weights, each candidate's worked out from its whole path."""

    def gain(path: tuple[int, ...]) -> float:
        whole = len(law) - len(path) + 1
        weight = np.where(left[:whole] >= len(path), 1.0, 0.0)
        for depth, rank in enumerate(path):
            weight = weight * law[depth : depth + whole, rank - 1]
        return float(weight.sum())

    waiting = [(-gain((r,)), (r,)) for r in range(1, RANKS + 1)]
    heapq.heapify(waiting)
    paths = []
    while len(paths) < budget:
        _, path = heapq.heappop(waiting)
        paths.append(path)
        for r in range(1, RANKS + 1):
            heapq.heappush(waiting, (-gain((*path, r)), (*path, r)))
    return Tree.from_paths(paths)


def along_text() -> Iterator[Row]:
    """Part (b)."""
    lengths = np.full(TEXTS, POSITIONS // TEXTS)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(POSITIONS)
    for name, law in text_laws().items():
        best = text_tree(law, lengths, BUDGET)
        ours = 1e3 * median_seconds(partial(text_tree, law, lengths, BUDGET), 3)
        began = time.thread_time()
        greedy = numpy_greedy(law, left, BUDGET)
        peer = 1e3 * (time.thread_time() - began), "numpy, one growth of several"
        calls = float(calls_of_tree(*tree_survival(law, greedy), lengths).expected.sum())
        assert abs(calls - best.greedy_calls) <= EQUAL * calls
        work = f"text_tree, {POSITIONS:,} positions, {BUDGET:,} nodes, {name} laws, depth {best.tree.depth}"
        yield Row(work, "ms", ours, "calls of the first tree", *peer, wanted=10_000)


if __name__ == "__main__":
    publish(__file__, "Draft trees", [*optimal(), *along_text()])
