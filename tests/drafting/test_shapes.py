"""S1: draft shapes and what they give; a draft is a tree, a schedule and a stopping rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

from spectheory.cost import ConstantRatio, iid_tokens_per_call
from spectheory.drafting import (
    Batch,
    Chain,
    Copied,
    Grown,
    KAry,
    Parallel,
    Schedule,
    Sequential,
    Shape,
    Tree,
    exit_law,
    expected_tokens,
    node_weights,
    optimal_tree,
    read_stop,
    survival,
)
from spectheory.errors import PmfError, SettingError, ShapeError
from tests.drafting.drafting_cases import ROUNDING, Path
from tests.made_up import Refusal, all_refused

FLOAT32 = 1e-6
"""The same in single precision, a dozen operations."""


# Shapes


SHAPES: dict[str, tuple[Shape, list[Path], tuple[int, ...]]] = {
    "chain k=3": (Chain(3), [(1,), (1, 1), (1, 1, 1)], (1, 1, 1)),
    "chain k=1": (Chain(1), [(1,)], (1,)),
    "batch k=3": (Batch(3), [(1,), (2,), (3,)], (1,)),
    "k-ary 2x1": (KAry((2, 1)), [(1,), (2,), (1, 1), (2, 1)], (1, 2)),
    "k-ary 1x2x2": (
        KAry((1, 2, 2)),
        [(1,), (1, 1), (1, 2), (1, 1, 1), (1, 1, 2), (1, 2, 1), (1, 2, 2)],
        (1, 1, 2),
    ),
    "tree 2 2-1 2-3": (Tree.from_paths([(2,), (2, 1), (2, 3)]), [(2,), (2, 1), (2, 3)], (1, 1)),
    "tree 1 2 1-1": (Tree([-1, -1, 0], [1, 2, 1]), [(1,), (2,), (1, 1)], (1, 1)),
}


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_shapes(name: str) -> None:
    shape, paths, passes = SHAPES[name]
    assert str(shape) == name
    assert shape.nodes == len(paths)
    assert shape.depth == max(map(len, paths)) == len(passes)
    assert shape.passes == passes
    assert shape.max_rank == max(rank for path in paths for rank in path)
    tree = shape.tree()
    assert tree.paths == paths
    assert (tree.nodes, tree.depth, tree.passes, tree.max_rank) == (
        shape.nodes,
        shape.depth,
        shape.passes,
        shape.max_rank,
    )
    assert Tree(tree.parents, tree.ranks) == tree, "its arrays pass the door"


def test_the_expansion_of_specinfer() -> None:
    """The example <1,1,3,1> of theory S1."""
    shape = KAry((1, 1, 3, 1))
    assert (shape.nodes, shape.depth, shape.passes, shape.widths) == (8, 4, (1, 1, 1, 3), (1, 1, 3, 3))
    assert KAry((1,) * 5).tree() == Chain(5).tree()
    assert KAry((5,)).tree() == Batch(5).tree()
    assert KAry(np.array([2, 2])) == KAry((2, 2))
    assert hash(KAry([2, 2])) == hash(KAry((2, 2)))


def random_tree(rng: np.random.Generator, nodes: int, alphabet: int, *, deep: float = 0.0) -> Tree:
    """A tree grown at random places; with `deep` of 1 below the last node."""
    paths: list[Path] = [()]
    while len(paths) <= nodes:
        parent = paths[-1] if rng.random() < deep else paths[rng.integers(len(paths))]
        path = (*parent, int(rng.integers(1, alphabet + 1)))
        if path not in paths:
            paths.append(path)
    numbers = {path: number for number, path in enumerate(paths, start=-1)}
    return Tree(
        np.array([numbers[path[:-1]] for path in paths[1:]], dtype=np.int32),
        np.array([path[-1] for path in paths[1:]], dtype=np.int32),
    )


@pytest.mark.parametrize("seed", range(8))
def test_random_trees(seed: int) -> None:
    """Depths, draft passes, levels and paths against plain loops over the paths."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 60, 1 + seed % 4, deep=(0.0, 0.9)[seed % 2]) if seed % 4 else Chain(60).tree()
    paths = tree.paths
    assert tree.depths.tolist() == [len(path) for path in paths]
    inner = {path[:-1] for path in paths}
    assert tree.passes == tuple(sum(len(node) == d for node in inner) for d in range(tree.depth))
    for depth, (nodes, parents) in enumerate(tree.levels, start=1):
        assert nodes.tolist() == [v for v, path in enumerate(paths) if len(path) == depth]
        if depth > 1:
            above = tree.levels[depth - 2][0]
            assert [paths[above[place]] for place in parents] == [paths[v][:-1] for v in nodes]
    shuffled = Tree.from_paths([paths[i] for i in rng.permutation(len(paths))])
    assert shuffled == tree
    assert hash(shuffled) == hash(tree)
    assert shuffled != Tree.from_paths(paths[:-1])
    assert tree != paths
    assert str(tree) == f"tree of 60 nodes, depth {tree.depth}"


BAD_SHAPES: dict[str, Refusal] = {
    "chain": (lambda: Chain(0), SettingError, "k is 0: must be >= 1"),
    "chain fraction": (lambda: Chain(2.5), SettingError, "k is 2.5: must be a whole number >= 1"),
    "chain nan": (lambda: Chain(math.nan), SettingError, "k is nan: must be a whole number"),
    "batch": (lambda: Batch(-1), SettingError, "k is -1: must be >= 1"),
    "batch fraction": (lambda: Batch(1.5), SettingError, "k is 1.5"),
    "k-ary": (lambda: KAry((2, 0)), SettingError, "branching is 0"),
    "k-ary empty": (lambda: KAry(()), SettingError, "branching is empty"),
    "k-ary fraction": (lambda: KAry((1.5,)), SettingError, "branching is 1.5"),
    "k-ary large": (
        lambda: KAry((10**5, 10**5)),
        SettingError,
        "has 10000100000 nodes down to depth 2: at most 16777216",
    ),
    "k-ary beyond int64": (lambda: KAry(np.array([10**6] * 4)), SettingError, "at most 16777216"),
    "no node": (lambda: Tree.from_paths([]), ShapeError, "at least one node"),
    "root": (lambda: Tree.from_paths([()]), ShapeError, "path () comes twice or is empty"),
    "twice": (lambda: Tree.from_paths([(1,), (1,)]), ShapeError, "path 1 comes twice"),
    "orphan": (lambda: Tree.from_paths([(1,), (2, 1)]), ShapeError, "path 2-1 has no parent"),
    "rank 0": (lambda: Tree.from_paths([(0,)]), ShapeError, "a rank is 0"),
    "rank fraction": (lambda: Tree.from_paths([(1.5,)]), ShapeError, "the paths are no list of paths"),
    "lengths": (lambda: Tree([-1, 0], [1]), ShapeError, "parents (2,) and ranks (1,)"),
    "flat": (lambda: Tree([[-1]], [[1]]), ShapeError, "parents (1, 1)"),
    "late parent": (lambda: Tree([-1, 1], [1, 1]), ShapeError, "the parent of node 1 is 1"),
    "no parent": (lambda: Tree([-2], [1]), ShapeError, "the parent of node 0 is -2"),
    "siblings": (lambda: Tree([-1, 0, 0], [1, 2, 2]), ShapeError, "node 0 has two children of rank 2"),
    "first siblings": (lambda: Tree([-1, -1], [3, 3]), ShapeError, "node -1 has two children of rank 3"),
    "parent fraction": (lambda: Tree([-1.0, 0.5], [1, 1]), ShapeError, "parents are not all integers"),
    "nan": (lambda: Tree([-1.0], [math.nan]), ShapeError, "ranks are not all integers"),
    "words": (lambda: Tree(["a"], ["b"]), ShapeError, "parents holds <U1"),
    "beyond int32": (lambda: Tree([-1], [2**32 + 1]), ShapeError, "ranks reach beyond"),
}

test_bad_shapes_are_named_in_one_line = all_refused(BAD_SHAPES)


# S1: every rank sequence, letter by letter


def walked(paths: list[Path], law: list[Fraction], letters: int) -> dict[tuple[Path, int], Fraction]:
    """Law of (node where a call leaves the tree, rank that leads out), over all sequences of so many ranks.

    A rank beyond the law's is the letter len(law) + 1.
    """
    full = [*law, 1 - sum(law)]
    inside = set(paths)
    exits: dict[tuple[Path, int], Fraction] = {}
    for ranks in product(range(1, len(full) + 1), repeat=letters):
        node: Path = ()
        for rank in ranks:
            if (*node, rank) not in inside:
                exits[node, rank] = exits.get((node, rank), Fraction(0)) + math.prod(full[r - 1] for r in ranks)
                break
            node = (*node, rank)
        else:
            raise AssertionError("too few letters")
    return exits


FRACTION_LAWS = [
    [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)],
    [Fraction(1, 7), Fraction(3, 7), Fraction(2, 7)],
    [Fraction(0), Fraction(1), Fraction(0)],
    [Fraction(1, 3), Fraction(0), Fraction(1, 3)],
]

WALKED: list[Shape] = [
    Chain(3),
    Batch(3),
    KAry((3, 2)),
    Tree.from_paths([(2,), (1,), (2, 1), (2, 3), (2, 3, 3)]),
    random_tree(np.random.default_rng(3), 9, 3),
]


@pytest.mark.parametrize("law", FRACTION_LAWS, ids=str)
@pytest.mark.parametrize("shape", WALKED[2:], ids=str)
def test_weights_tokens_survival_and_exits(shape: Shape, law: list[Fraction]) -> None:
    """S1: what comes out of walking every rank sequence, in fractions, of trees larger than the ledger's."""
    paths = shape.tree().paths
    exits = walked(paths, law, shape.depth + 1)
    assert sum(exits.values()) == 1
    floats = [float(share) for share in law]
    tokens = sum((share * (len(node) + 1) for (node, _), share in exits.items()), Fraction(0))
    assert expected_tokens(shape, floats) == pytest.approx(float(tokens), abs=ROUNDING)
    alive = [
        sum((share for (node, _), share in exits.items() if len(node) >= i), Fraction(0))
        for i in range(1, shape.depth + 1)
    ]
    assert survival(shape, floats) == pytest.approx([float(share) for share in alive], abs=ROUNDING)
    below = [
        sum((share for (node, _), share in exits.items() if node[: len(path)] == path), Fraction(0)) for path in paths
    ]
    assert node_weights(shape, floats) == pytest.approx([float(share) for share in below], abs=ROUNDING)
    letters = len(law) + 1
    expected = np.zeros((shape.nodes + 1) * letters)
    for (node, rank), share in exits.items():
        expected[(paths.index(node) + 1 if node else 0) * letters + rank - 1] = float(share)
    assert exit_law(shape, floats) == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_a_chain_is_c1(k: int) -> None:
    """Sum of alpha^i, the i.i.d. formula of leviathan2023."""
    for alpha in (0.0, 0.3, 0.8, 1.0):
        assert expected_tokens(Chain(k), [alpha]) == pytest.approx(float(iid_tokens_per_call(alpha, k)), rel=ROUNDING)


@pytest.mark.parametrize("shape", WALKED, ids=str)
def test_batches_and_array_libraries(shape: Shape) -> None:
    strict = pytest.importorskip("array_api_strict")
    laws = np.random.default_rng(0).dirichlet(np.ones(4), (2, 3))[..., :3]
    for name, function in {
        "tokens": expected_tokens,
        "survival": survival,
        "weights": node_weights,
        "exits": exit_law,
    }.items():
        batch = function(shape, laws)
        assert batch.shape[:2] == (2, 3), name
        for i, j in product(range(2), range(3)):
            assert batch[i, j] == pytest.approx(function(shape, laws[i, j].tolist()), abs=ROUNDING)
        double = function(shape, torch.from_numpy(laws))
        assert isinstance(double, torch.Tensor)
        assert double.dtype == torch.float64
        assert double.numpy() == pytest.approx(batch, abs=ROUNDING)
        single = function(shape, torch.from_numpy(laws).float())
        assert single.dtype == torch.float32
        assert single.numpy() == pytest.approx(batch, abs=FLOAT32)
        array = function(shape, strict.asarray(laws))
        assert isinstance(array, type(strict.asarray(laws)))
        assert np.asarray(array) == pytest.approx(batch, abs=ROUNDING)
        assert function(shape, np.empty((0, 3))).shape[0] == 0


def test_optimal_tree_takes_any_array() -> None:
    strict = pytest.importorskip("array_api_strict")
    for wrap in (np.asarray, torch.tensor, strict.asarray, tuple):
        assert optimal_tree(wrap([0.5, 0.375]), 3) == Tree.from_paths([(1,), (2,), (1, 1)])


BAD_LAWS: dict[str, Refusal] = {
    "rank": (
        lambda: expected_tokens(Batch(3), [0.5, 0.2]),
        SettingError,
        "the shape has rank 3: the rank pmf stops at 2",
    ),
    "negative": (lambda: survival(Chain(1), [-0.5, 1.0]), PmfError, "entry -0.5"),
    "nan": (lambda: node_weights(Chain(1), [math.nan]), PmfError, "entry nan"),
    "sum": (lambda: exit_law(Chain(1), [0.6, 0.5]), PmfError, "sums to 1.1: at most 1"),
    "sum in a batch": (lambda: expected_tokens(Chain(1), [[0.5, 0.5], [0.75, 0.5]]), PmfError, "sums to 1.25"),
    "empty": (lambda: expected_tokens(Chain(1), []), PmfError, "no entries"),
    "number": (lambda: expected_tokens(Chain(1), 0.5), PmfError, "no entries"),
    "budget": (lambda: optimal_tree([0.5], 0), SettingError, "budget is 0: must be >= 1"),
    "budget fraction": (lambda: optimal_tree([0.5], 2.5), SettingError, "budget is 2.5: must be a whole number"),
    "budget large": (
        lambda: optimal_tree([0.5], 2**31),
        SettingError,
        "budget is 2147483648: must be at most 16777216",
    ),
    "depth": (lambda: optimal_tree([0.5], 2, 0), SettingError, "max depth is 0"),
    "width": (lambda: optimal_tree([0.5], 2, max_width=0), SettingError, "max width is 0"),
    "two laws": (lambda: optimal_tree([[0.5], [0.5]], 2), PmfError, "shape (2, 1): one law"),
    "nothing to draft": (lambda: optimal_tree([0.0, 0.0], 2), PmfError, "no rank has positive probability"),
    "law beyond one": (lambda: optimal_tree([0.9, 0.2], 2), PmfError, "sums to 1.1"),
    "width of consecutive ranks": (
        lambda: optimal_tree([0.1, 0.2], 2, max_width=2, consecutive=True),
        SettingError,
        "max width is 2: the width cannot be limited where later ranks are more probable",
    ),
}

test_bad_laws_are_named_in_one_line = all_refused(BAD_LAWS)


STOP = read_stop("top<0.4")
TREES = (Chain(3), Batch(3), KAry((2, 2)), Tree.from_paths([(1,), (2,), (1, 1)]), Grown(6, 2, 3))


@dataclass(frozen=True)
class Pairs(Schedule):
    """A toy: one pass for every two depths."""

    def passes(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """Those of every other depth."""
        return inner[::2]


@pytest.mark.parametrize("shape", TREES, ids=str)
def test_a_schedule_changes_the_passes_alone(shape: Shape) -> None:
    assert shape.schedule == Sequential()
    assert shape.passes == shape.inner
    for schedule, passes in ((Parallel(), (shape.depth,)), (Pairs(), shape.inner[::2])):
        other = shape.by(schedule)
        assert other.passes == passes
        assert ConstantRatio(0.5).call(other).best == 1 + 0.5 * len(passes)
        assert (str(other), other.nodes, other.depth, other.verified) == (
            str(shape),
            shape.nodes,
            shape.depth,
            shape.verified,
        )
        assert other != shape
        assert other.by(Sequential()) == shape


def test_what_is_the_default_is_not_shown() -> None:
    assert repr(Chain(2)) == "Chain(k=2)"
    assert repr(KAry((2, 1), schedule=Parallel())) == "KAry(branching=(2, 1), schedule=Parallel())"
    assert repr(Chain(2, stop=STOP)) == "Chain(k=2, stop=TopBelow(threshold=0.4))"


@pytest.mark.parametrize(
    ("schedule", "kept", "looked"),
    [(Sequential(), (1, 1), (1, 1, 1)), (Parallel(), (4,), (4,)), (Pairs(), (1, 1), (1, 1))],
)
def test_calls_that_are_stopped(schedule: Schedule, kept: tuple[int, ...], looked: tuple[int, ...]) -> None:
    """A call of 2 of 4 drafts: the pass that looked at a token is made, whether the token is kept or not."""
    for stop, passes in ((read_stop("token<0.4"), kept), (STOP, looked)):
        call = Chain(4, schedule=schedule, stop=stop).cut(2)
        assert (call.passes, call.verified) == (passes, {3: 1.0})


def test_other_lengths_keep_schedule_and_stop() -> None:
    shape = Chain(4, schedule=Parallel(), stop=STOP)
    assert shape.of_length(2) == Chain(2, schedule=Parallel(), stop=STOP)
    assert Chain(2, schedule=Copied((0.5, 0.25, 0.25))).of_length(1) == Chain(1, schedule=Copied((0.5, 0.5)))


BAD: dict[str, Refusal] = {
    "a tree that stops": (lambda: KAry((2, 2), stop=STOP), SettingError, "k-ary is given top<0.4: only a chain"),
    "a copied tree": (lambda: Batch(2, schedule=Copied()), SettingError, "batch is given Copied: only a chain"),
    "a copied tree, later": (lambda: TREES[3].by(Copied()), SettingError, "tree is given Copied: only a chain"),
    "a grown tree that stops": (lambda: Grown(6, 2, 3, stop=STOP), SettingError, "grown is given top<0.4"),
    "a tree that is cut": (lambda: Batch(2).cut(1), SettingError, "batch is given Cut: only a chain"),
    "shares of another length": (lambda: Chain(3).by(Copied((0.5, 0.5))), SettingError, "needs 4 numbers >= 0"),
    "no schedule": (lambda: Chain(3, schedule="parallel"), SettingError, "schedule"),  # type: ignore[arg-type]
    "no stopping rule": (lambda: Chain(3, stop=0.4), SettingError, "stop"),  # type: ignore[arg-type]
}

test_bad_drafts_are_named_in_one_line = all_refused(BAD)
