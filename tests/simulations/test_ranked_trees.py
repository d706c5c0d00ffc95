"""ERSD over draft trees, simulated: kernel against twin draw for draw, then against S1, S3 and R2.

A count is checked by the exact binomial tail on either side and fails wrongly with probability `ALARM` at most; there
are fewer than 1,000, so this file fails wrongly with probability below 1e-7, of the suite's 1e-6. With `CALLS` calls a
probability of 0.1 is known to 0.0039, one of 0.5 to 0.0065.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from proofs_check.library.strategies import Floats, extreme_pairs
from simulations.draws.streams import Stream, words
from simulations.kernels.ranked_trees import TreeCounts, raced_tree, ranked_tree
from simulations.reference import ranked_trees as twin
from spectheory.drafting import Batch, Chain, KAry, Shape, Tree, exit_law, expected_tokens, survival
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.verification import PoissonRace, RaceVerification
from tests.made_up import each

ALARM = 1e-10
CALLS = 250_000

Counts = NDArray[np.int64]

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


def strays(count: int, trials: int, chance: float) -> bool:
    """Whether a count is in a tail of probability below ALARM/2; chances are rounded by 1e-12 at most."""
    low, high = max(chance - 1e-12, 0.0), min(chance + 1e-12, 1.0)
    return bool(binom.cdf(count, trials, low) < ALARM / 2 or binom.sf(count - 1, trials, high) < ALARM / 2)


def straying(counts: Counts, law: Floats) -> int:
    return sum(strays(int(n), CALLS, float(c)) for n, c in zip(counts.ravel(), np.ravel(law), strict=True))


def disagreements(counts: TreeCounts, shape: Shape, law: Any) -> int:
    """Cells of the exit law and of the survivals of depth that stray."""
    reached = counts.accepted[::-1].cumsum()[::-1][1:]
    return straying(counts.exits, exit_law(shape, law)) + straying(reached, survival(shape, law))


def mean_tokens_stray(counts: TreeCounts, shape: Shape, law: Any) -> bool:
    """Tokens per call by Bernstein, with the variance that the survivals give; at most depth + 1 tokens."""
    reached = survival(shape, law)
    mean = float(expected_tokens(shape, law))
    variance = float(np.sum((2 * np.arange(1, shape.depth + 1) - 1) * reached) - (mean - 1) ** 2)
    log, depth = np.log(2 / ALARM), shape.depth
    reach = depth * log / 3 + np.sqrt((depth * log / 3) ** 2 + 2 * CALLS * variance * log)
    tokens = float(np.sum(counts.accepted * np.arange(1, depth + 2)))
    return abs(tokens - CALLS * mean) > reach


@cache
def walked(shape: str, law: str) -> TreeCounts:
    return ranked_tree(SHAPES[shape], LAWS[law], CALLS, state=words(21))


@cache
def raced(shape: str, pair: str) -> TreeCounts:
    return raced_tree(SHAPES[shape], *PAIRS[pair], CALLS, state=words(22), max_rank=3)


def mixed_ranks(pair: str) -> Floats:
    """The law of the rank at a position that draws one of the pairs."""
    p, q = np.atleast_2d(*PAIRS[pair])
    return np.asarray(RaceVerification().rank_pmf(p, q, 3)).mean(axis=0)


# Draw for draw


def leaves(shape: Shape, counts: TreeCounts) -> dict[tuple[tuple[int, ...], int], int]:
    """Counts by the path of the node that was left and the rank."""
    paths = [(), *shape.tree().paths]
    return {(paths[node], letter + 1): int(counts.exits[node, letter]) for node, letter in np.argwhere(counts.exits)}


def tallied(shape: Shape, read_rank: Any, calls: int) -> dict[tuple[tuple[int, ...], int], int]:
    found: dict[tuple[tuple[int, ...], int], int] = {}
    for _ in range(calls):
        left = twin.walk(shape.tree().paths, read_rank)
        found[tuple(left)] = found.get(tuple(left), 0) + 1  # type: ignore[index, arg-type]
    return found


@each("law", LAWS)
@each("shape", SHAPES)
def test_ranked_walks_are_their_twin(shape: str, law: str) -> None:
    for calls in (1, 1, 60):
        state = words(9, calls)
        stream = Stream(state)
        counts = ranked_tree(SHAPES[shape], LAWS[law], calls, state=state)
        found = tallied(SHAPES[shape], partial(twin.rank_from_law, np.array(LAWS[law]), stream), calls)
        assert leaves(SHAPES[shape], counts) == found
        assert state.tolist() == stream.state, "as many draws"


EXTREMES: dict[str, tuple[Floats, Floats]] = {
    **{name: (p[None], q[None]) for name, (p, q) in extreme_pairs().items() if name != "large"},
    "ratios beyond 1e300": (np.array([[0.5, 0.25, 0.25]]), np.array([[1e-305, 1e-302, 1.0]])),
    "three pairs": (ROWS[0], ROWS[1]),
}


@each("name", EXTREMES)
def test_raced_walks_are_their_twin(name: str) -> None:
    target, draft = EXTREMES[name]
    for run, shape in enumerate(SHAPES.values()):
        state = words(10, run)
        stream = Stream(state)
        counts = raced_tree(shape, target, draft, 12, state=state, max_rank=4)
        found = tallied(shape, partial(twin.rank_from_race, target, draft, 4, stream), 12)
        assert leaves(shape, counts) == found
        assert state.tolist() == stream.state


# Against S1, S3, R2


@each("law", LAWS)
@each("shape", SHAPES)
def test_exits_and_depths_have_their_law(shape: str, law: str) -> None:
    counts = walked(shape, law)
    assert disagreements(counts, SHAPES[shape], LAWS[law]) == 0
    assert not mean_tokens_stray(counts, SHAPES[shape], LAWS[law])
    assert counts.accepted.sum() == counts.exits.sum() == CALLS


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("shape", ["simple", "sequence", "batch", "tree"])
def test_raced_ranks_give_the_same_laws(shape: str, pair: str) -> None:
    """Pairs are fresh at every position, so the mixture's law of the rank serves."""
    counts = raced(shape, pair)
    assert disagreements(counts, SHAPES[shape], mixed_ranks(pair)) == 0
    assert not mean_tokens_stray(counts, SHAPES[shape], mixed_ranks(pair))


def test_wrong_laws_are_caught() -> None:
    """Negative controls: ranks in reverse, the Poisson race's law of the rank, one pair instead of the mixture."""
    for shape in ("sequence", "batch", "tree"):
        assert disagreements(walked(shape, "whole"), SHAPES[shape], LAWS["whole"][::-1]) > 0
        assert mean_tokens_stray(walked(shape, "whole"), SHAPES[shape], [0.59, 0.25, 0.15])
    first = RaceVerification().rank_pmf(ROWS[0, 0], ROWS[1, 0], 3)
    assert disagreements(raced("batch", "three pairs"), SHAPES["batch"], first) > 0
    duplicates = PoissonRace().rank_pmf(*PAIRS["one pair"], 3)
    assert disagreements(raced("batch", "one pair"), SHAPES["batch"], duplicates) > 0


def test_another_shapes_survival_is_caught() -> None:
    """Negative control: the k-ary expansion against the chain of its depth."""
    counts = walked("k-ary", "whole")
    reached = counts.accepted[::-1].cumsum()[::-1][1:]
    assert straying(reached, survival(Chain(3), LAWS["whole"])) > 0


# The door


def test_bad_input_is_one_clear_line() -> None:
    shape = SHAPES["tree"]
    for calls in (0, -1, 1.5):
        with pytest.raises(SettingError, match="calls is"):
            ranked_tree(shape, [0.5, 0.25, 0.25], calls, state=words(1))  # type: ignore[arg-type]
        with pytest.raises(SettingError, match="calls is"):
            raced_tree(shape, *PAIRS["three pairs"], calls, state=words(1))  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="the shape has rank 3"):
        ranked_tree(shape, [0.5, 0.25], 10, state=words(1))
    with pytest.raises(SettingError, match="the shape has rank 3"):
        raced_tree(shape, *PAIRS["three pairs"], 10, state=words(1), max_rank=2)
    with pytest.raises(PmfError, match="at most 1"):
        ranked_tree(shape, [0.5, 0.25, 0.5], 10, state=words(1))
    with pytest.raises(ShapeError, match="needs \\[A\\]"):
        ranked_tree(shape, [[0.5, 0.25, 0.25]], 10, state=words(1))
    with pytest.raises(PmfError, match="sums to"):
        raced_tree(shape, [0.5, 0.4], [0.5, 0.5], 10, state=words(1))
    with pytest.raises(ShapeError, match="one pmf a row"):
        raced_tree(shape, np.ones((2, 2, 1)), np.ones((2, 2, 1)), 10, state=words(1))
