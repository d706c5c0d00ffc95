"""ERSD over draft trees, simulated: against the walk as it is written and S3.

A cell is refuted wrongly with probability 1e-11 at most and there are fewer than 2,000, so this file fails wrongly with
probability below 2e-8, of the suite's 1e-6. With `CALLS` calls a probability of 0.1 is known to 0.0039, one of 0.5 to
0.0065.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from simulations.draws import Stream, words
from simulations.kernels.ranked_trees import TreeCounts, raced_tree, ranked_tree
from simulations.reference.decoding import walk
from simulations.reference.drawing import exact_law
from simulations.reference.positions import race
from spectheory.drafting import Batch, Chain, KAry, Shape, Tree, exit_law
from tests.made_up import each
from tests.simulations.laws import ROUNDED, Counts, Floats, apart, straying

CALLS = 250_000

SHAPES: dict[str, Shape] = {
    "simple": Chain(1),
    "sequence": Chain(4),
    "batch": Batch(3),
    "k-ary": KAry((1, 2, 1)),
    "tree": Tree.from_paths([(1,), (2,), (1, 1), (2, 1), (1, 3), (1, 1, 2), (1, 3, 1)]),
    "ranks are skipped": Tree.from_paths([(3,), (3, 2)]),
}

LAWS: dict[str, list[float]] = {
    "whole": [0.6, 0.25, 0.15],
    "part": [0.3, 0.05, 0.25],
    "second rank likeliest": [0.001, 0.999, 0.0],
    "one-hot": [1.0, 0.0, 0.0],
    "tiny": [1e-300, 0.5, 0.25],
}

ROWS = np.random.default_rng(8).dirichlet(np.full(5, 0.8), size=(2, 3))
PAIRS: dict[str, tuple[Any, Any]] = {
    "one pair": ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "draft lacks a token": ([0.3, 0.1, 0.2, 0.4], [0.2, 0.5, 0.3, 0.0]),
    "three pairs": (ROWS[0], ROWS[1]),
}


@cache
def walked(shape: str, law: str) -> TreeCounts:
    return ranked_tree(SHAPES[shape], LAWS[law], CALLS, state=words(21))


@cache
def raced(shape: str, pair: str) -> TreeCounts:
    return raced_tree(SHAPES[shape], *PAIRS[pair], CALLS, state=words(22), max_rank=3)


# The walk as it is written


def exits(shape: Shape, law: list[float]) -> Floats:
    """The law of node and rank at which ERSD leaves a tree, i.i.d. ranks, in the cells of the kernel's counts."""
    paths, ranks = [(), *shape.tree().paths], np.append(law, max(1 - sum(law), 0))
    table = np.zeros((len(paths), len(ranks)))
    for left, chance in exact_law(lambda draws: walk(paths[1:], lambda: 1 + draws.token(ranks))).items():
        table[paths.index(left.node), left.rank - 1] += chance
    return table


@each("law", LAWS)
@each("shape", SHAPES)
def test_the_walk_has_the_law_of_s3(shape: str, law: str) -> None:
    """Exactly; the kernel draws from it. Negative control: ranks in reverse."""
    written = exits(SHAPES[shape], LAWS[law])
    np.testing.assert_allclose(written.ravel(), exit_law(SHAPES[shape], LAWS[law]), rtol=0, atol=ROUNDED)
    assert straying(walked(shape, law).exits, written) == []
    assert straying(walked(shape, "whole").exits, exits(SHAPES[shape], LAWS["whole"][::-1])) != []


@each("pair", PAIRS)
def test_raced_walks_are_samples_like_the_walk(pair: str) -> None:
    """A race at every position; negative control: target and draft swapped."""
    target, draft = np.broadcast_arrays(*(np.atleast_2d(pmf) for pmf in PAIRS[pair]))

    def run(p: Floats, q: Floats) -> Counts:
        stream, paths = Stream(words(9)), [(), *SHAPES["tree"].tree().paths]
        counts = np.zeros((len(paths), 4), dtype=np.int64)

        def rank() -> int:
            row = int(stream.uniform() * len(p))
            return min(race(p[row], q[row], 0, stream).rank or 4, 4)

        for _ in range(2000):
            left = walk(paths[1:], rank)
            counts[paths.index(left.node), left.rank - 1] += 1
        return counts

    assert apart(raced("tree", pair).exits, run(target, draft)) == []
    assert apart(raced("tree", pair).exits, run(draft, target)) != [] or pair == "one pair", "symmetric"
