"""S1-S3: draft shapes, what they give, and the best tree, beyond the small trees that the ledger tries one by one."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spectheory import entropy
from spectheory.cost import iid_tokens_per_call
from spectheory.drafting import (
    Batch,
    Chain,
    KAry,
    Shape,
    Tree,
    exit_law,
    expected_tokens,
    node_weights,
    optimal_tree,
    survival,
)
from spectheory.drafting.consecutive import best_consecutive_tree
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.kernels.tree import _compiled, _grow, heaviest_nodes

Floats = NDArray[np.float64]
Path = tuple[int, ...]
Paths = frozenset[Path]

ROUNDING = 1e-12
"""Sums of up to some thousand products near one, each within 1e-16."""

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


BAD_SHAPES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
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
    "rank fraction": (lambda: Tree.from_paths([(1.5,)]), ShapeError, "ranks are not all integers"),
    "lengths": (lambda: Tree([-1, 0], [1]), ShapeError, "parents (2,) and ranks (1,)"),
    "flat": (lambda: Tree([[-1]], [[1]]), ShapeError, "parents (1, 1)"),
    "late parent": (lambda: Tree([-1, 1], [1, 1]), ShapeError, "the parent of node 1 is 1"),
    "no parent": (lambda: Tree([-2], [1]), ShapeError, "the parent of node 0 is -2"),
    "siblings": (lambda: Tree([-1, 0, 0], [1, 2, 2]), ShapeError, "node 0 has two children of rank 2"),
    "first siblings": (lambda: Tree([-1, -1], [3, 3]), ShapeError, "node -1 has two children of rank 3"),
    "parent fraction": (lambda: Tree([-1.0, 0.5], [1, 1]), ShapeError, "parents are not all integers"),
    "nan": (lambda: Tree([-1.0], [math.nan]), ShapeError, "ranks are not all integers"),
    "words": (lambda: Tree(["a"], ["b"]), ShapeError, "parents are not all integers"),
    "beyond int32": (lambda: Tree([-1], [2**32 + 1]), ShapeError, "ranks reach beyond"),
}


@pytest.mark.parametrize("name", sorted(BAD_SHAPES))
def test_bad_shapes_are_named_in_one_line(name: str) -> None:
    call, error, fragment = BAD_SHAPES[name]
    with pytest.raises(error) as caught:
        call()
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)


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


BAD_LAWS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
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
        "max width is 2: none where ranks grow likelier",
    ),
}


@pytest.mark.parametrize("name", sorted(BAD_LAWS))
def test_bad_laws_are_named_in_one_line(name: str) -> None:
    call, error, fragment = BAD_LAWS[name]
    with pytest.raises(error) as caught:
        call()
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)


# S2: the optimal tree against all trees


@cache
def rank_trees(alphabet: int, nodes: int) -> list[Paths]:
    """Every tree of that many nodes with ranks up to `alphabet`."""
    trees: set[Paths] = {frozenset()}
    for _ in range(nodes):
        trees = {
            tree | {(*node, rank)}
            for tree in trees
            for node in [(), *tree]
            for rank in range(1, alphabet + 1)
            if (*node, rank) not in tree
        }
    return list(trees)


def in_order(paths: Paths) -> bool:
    """Whether siblings have ranks 1..m."""
    return all(path[-1] == 1 or (*path[:-1], path[-1] - 1) in paths for path in paths)


def width(paths: Paths) -> int:
    depths = [len(path) for path in paths]
    return max(map(depths.count, depths))


class AllTrees:
    """All trees of one size, and what they give, all at once."""

    def __init__(self, alphabet: int, nodes: int) -> None:
        trees = rank_trees(alphabet, nodes)
        depths = range(1, nodes + 1)
        self.paths = [path for d in depths for path in product(range(1, alphabet + 1), repeat=d)]
        number = {path: i for i, path in enumerate(self.paths)}
        self.members = np.array([[number[path] for path in tree] for tree in trees])
        self.depth = np.array([max(map(len, tree)) for tree in trees])
        self.width = np.array([width(tree) for tree in trees])
        self.in_order = np.array([in_order(tree) for tree in trees])

    def best(self, law: tuple[float, ...], depth: int, most_wide: int, consecutive: bool) -> float:
        """The most expected tokens within the limits, -inf if there is no such tree."""
        weights = np.array([math.prod(law[rank - 1] for rank in path) for path in self.paths])
        allowed = (self.depth <= depth) & (self.width <= most_wide) & (self.in_order | (not consecutive))
        return float(1 + weights[self.members[allowed]].sum(axis=1).max(initial=-np.inf))


@cache
def all_trees(alphabet: int, nodes: int) -> AllTrees:
    return AllTrees(alphabet, nodes)


SMALL_LAWS: dict[str, tuple[float, ...]] = {
    "descending": (0.5, 0.25, 0.125),
    "ties": (0.25, 0.25, 0.25),
    "growing": (0.125, 0.25, 0.5),
    "middle first": (0.2, 0.7, 0.1),
    "second rank": (0.001, 0.999),
    "lattice": (0.5, 0.5),
    "certain": (1.0,),
    "certain third": (0.0, 0.0, 1.0),
    "zero first": (0.0, 0.5, 0.25),
    "zero between": (0.5, 0.0, 0.25),
    "zero last": (0.25, 0.5, 0.0),
    "one rank": (0.0, 0.7, 0.0),
}
MOST = 6
LIMITS = [None, 1, 2, 3]


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize("name", sorted(SMALL_LAWS))
def test_optimal_tree_against_all_trees(name: str, consecutive: bool) -> None:
    """No tree of as many nodes within the limits on depth and width gives more, whatever the order of the ranks."""
    law = SMALL_LAWS[name]
    grows = any(after > before for before, after in pairwise(law))
    for depth, most_wide in product(LIMITS, LIMITS):
        if consecutive and grows and most_wide is not None:
            continue
        bests = [
            all_trees(len(law), k).best(law, depth or MOST, most_wide or MOST, consecutive) for k in range(1, MOST + 1)
        ]
        for budget in range(1, MOST + 1):
            tree = optimal_tree(law, budget, depth, max_width=most_wide, consecutive=consecutive)
            paths = frozenset(tree.paths)
            assert tree.nodes <= budget
            assert tree.depth <= (depth or MOST)
            assert width(paths) <= (most_wide or MOST)
            assert in_order(paths) or not consecutive
            assert expected_tokens(tree, law) == pytest.approx(max(bests[:budget]), abs=ROUNDING)
            if not consecutive:
                drawn = sum(share > 0 for share in law)
                possible = sum(min(most_wide or MOST, drawn**d) for d in range(1, (depth or MOST) + 1))
                assert tree.nodes == min(budget, possible)


def test_order_of_ranks() -> None:
    """S2: pi = (.001, .999) and one node: rank 2 gives 1.999, rank 1 gives 1.001."""
    law = [0.001, 0.999]
    assert optimal_tree(law, 1).paths == [(2,)]
    assert float(expected_tokens(optimal_tree(law, 1), law)) == pytest.approx(1.999)
    in_order_tree = optimal_tree(law, 1, consecutive=True)
    assert in_order_tree.paths == [(1,)]
    assert float(expected_tokens(in_order_tree, law)) == pytest.approx(1.001)
    assert optimal_tree(law, 2, consecutive=True).paths == [(1,), (2,)]


def test_ties_go_to_the_shallowest_and_the_lowest_rank() -> None:
    """Equal weights: the shallower node; equal depths too: the likelier, then the lower last rank."""
    assert optimal_tree([0.25, 0.5, 0.25], 4).paths == [(2,), (1,), (3,), (2, 2)]
    assert optimal_tree([0.5, 0.5], 6).paths == [(1,), (2,), (1, 1), (2, 1), (1, 2), (2, 2)]
    assert optimal_tree([1.0], 4) == Chain(4).tree()
    assert optimal_tree([0.0, 1.0], 3).paths == [(2,), (2, 2), (2, 2, 2)]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("law", [(0.8, 0.19, 0.01), (0.4, 0.35, 0.25), (0.01, 0.19, 0.8), (0.5, 0.3, 0.0)], ids=str)
def test_budgets_beyond_the_nodes(law: tuple[float, ...], depth: int) -> None:
    """Every node within the depth is found, those of ranks that never occur left out."""
    drawn = [rank for rank, share in enumerate(law, start=1) if share > 0]
    every = {path for d in range(1, depth + 1) for path in product(drawn, repeat=d)}
    for budget in (len(every), len(every) + 1, 1000):
        assert set(optimal_tree(law, budget, depth).paths) == every
        assert set(optimal_tree(law, budget, depth, consecutive=True).paths) == every
        for most_wide in (1, 2, 4):
            tree = optimal_tree(law, budget, depth, max_width=most_wide)
            assert tree.nodes == sum(min(most_wide, len(drawn) ** d) for d in range(1, depth + 1))


# S2: larger trees against a heap


def heaviest(law: Floats, budget: int, depth: int) -> list[tuple[float, int]]:
    """Weight and depth of the heaviest nodes in order, from a heap of all children of what was found."""
    found: list[tuple[float, int]] = []
    heap = [(-1.0, 0)]
    while heap and len(found) <= budget:
        weight, above = heapq.heappop(heap)
        found.append((-weight, above))
        if above < depth:
            for share in law[law > 0]:
                heapq.heappush(heap, (weight * float(share), above + 1))
    return found[1:]


def larger_laws() -> dict[str, Floats]:
    rng = np.random.default_rng(5)
    zipf = 1 / np.arange(1.0, 31)
    return {
        "geometric": 0.5 ** np.arange(1, 12),
        "zipf": zipf / zipf.sum(),
        "random": rng.dirichlet(np.ones(5)),
        "random, a part missing": rng.dirichlet(np.ones(8))[:7],
        "peaked": np.array([0.02, 0.95, 0.02]),
        "lattice": np.array([0.5, 0.5]),
        "flat": np.full(40, 1 / 40),
    }


@pytest.mark.parametrize("depth", [None, 2, 3, 7])
@pytest.mark.parametrize("name", sorted(larger_laws()))
def test_larger_trees_against_a_heap(name: str, depth: int | None) -> None:
    """The same weights, float for float."""
    law = larger_laws()[name]
    for budget in (17, 1500):
        tree = optimal_tree(law, budget, depth)
        expected = [weight for weight, _ in heaviest(law, budget, depth or budget)]
        assert np.sort(np.asarray(node_weights(tree, law)))[::-1].tolist() == sorted(expected, reverse=True)
        assert np.all(np.diff(node_weights(tree, law)) <= 0), "the heaviest first"


@pytest.mark.parametrize("law", [(0.7, 0.2, 0.06), (0.05, 0.5, 0.25, 0.2), (0.5, 0.5), (0.3, 0.3, 0.3)], ids=str)
def test_larger_trees_of_limited_width(law: tuple[float, ...]) -> None:
    """The heaviest nodes of each depth, out of all of them, and of those the heaviest."""
    depth = 6
    levels = [sorted((math.prod(path) for path in product(law, repeat=d)), reverse=True) for d in range(1, depth + 1)]
    for most_wide, budget in product((1, 2, 5, 30), (3, 20, 200)):
        expected = sorted((weight for level in levels for weight in level[:most_wide]), reverse=True)[:budget]
        tree = optimal_tree(law, budget, depth, max_width=most_wide)
        assert width(frozenset(tree.paths)) <= most_wide
        assert np.asarray(node_weights(tree, law)).tolist() == pytest.approx(expected, rel=ROUNDING)


@pytest.mark.parametrize("name", sorted(larger_laws()))
def test_the_first_nodes_are_the_smaller_optimal_tree(name: str) -> None:
    law = larger_laws()[name]
    tree = optimal_tree(law, 200, 9, max_width=50)
    for k in range(1, tree.nodes + 1, 13):
        first = optimal_tree(law, k, 9, max_width=50)
        assert first.parents.tolist() == tree.parents[:k].tolist()
        assert first.ranks.tolist() == tree.ranks[:k].tolist()
        assert Tree(first.parents, first.ranks) == first


LARGE = (25_000, 12, 9000)
"""Nodes, depth and width: enough to be compiled."""


@pytest.mark.parametrize("name", sorted(larger_laws()))
def test_compiled_and_plain_kernels_are_equal(name: str) -> None:
    """Node for node, below and beyond the size from which the compiled one is taken."""
    pytest.importorskip("numba")
    law = np.sort(larger_laws()[name])[::-1][:8].copy()
    for budget, depth, most_wide in ((1, 1, 1), (700, 700, 700), (700, 3, 700), (700, 700, 9), LARGE):
        plain = _grow(law, budget, depth, most_wide)
        compiled = _compiled()(law, budget, depth, most_wide)
        chosen = heaviest_nodes(law, budget, depth, most_wide)
        for one, two, three in zip(plain, compiled, chosen, strict=True):
            assert one.dtype == two.dtype == np.int32
            assert np.array_equal(one, two)
            assert np.array_equal(one, three)


# S2: consecutive ranks


def test_the_programme_against_all_trees_of_two_ranks() -> None:
    """Up to 8 nodes, also where the order of the ranks does not matter."""
    for law in ((0.1, 0.8), (0.8, 0.1), (0.5, 0.5), (0.3, 0.31), (0.0, 0.9)):
        for budget, depth in product((5, 7, 8), (1, 2, 4, 8)):
            tree = best_consecutive_tree(np.array(law), budget, depth)
            best = max(all_trees(2, k).best(law, depth, budget, True) for k in range(1, budget + 1))
            assert expected_tokens(tree, law) == pytest.approx(best, abs=ROUNDING)
            assert in_order(frozenset(tree.paths))
            assert tree.depth <= depth


@pytest.mark.parametrize("depth", [None, 2, 5])
@pytest.mark.parametrize("name", sorted(larger_laws()))
def test_the_programme_gives_the_heap_s_tree_where_ranks_fall(name: str, depth: int | None) -> None:
    law = np.sort(larger_laws()[name])[::-1].copy()
    heap = optimal_tree(law, 60, depth)
    assert optimal_tree(law, 60, depth, consecutive=True) == heap
    assert in_order(frozenset(heap.paths))
    programme = best_consecutive_tree(law, 60, depth or 60)
    assert programme.nodes == heap.nodes
    assert expected_tokens(programme, law) == pytest.approx(float(expected_tokens(heap, law)), rel=ROUNDING)


def test_consecutive_ranks_cost_tokens() -> None:
    """Where likely ranks come late the tree must draft the ones before: fewer tokens, never more."""
    law = larger_laws()["peaked"]
    for budget in (1, 2, 5, 30):
        free = float(expected_tokens(optimal_tree(law, budget), law))
        assert float(expected_tokens(optimal_tree(law, budget, consecutive=True), law)) < free


def test_ranks_that_never_occur_are_drafted_for_later_ones_only() -> None:
    assert optimal_tree([0.0, 0.5, 0.5], 3, 1, consecutive=True).paths == [(1,), (2,), (3,)]
    assert optimal_tree([0.1, 0.5, 0.0], 4, 1, consecutive=True).paths == [(1,), (2,)]
    assert optimal_tree([0.0, 0.7, 0.0], 5, consecutive=True).paths == [(1,), (2,), (2, 1), (2, 2)]
    assert optimal_tree([0.0, 0.7], 10, 2, consecutive=True).paths == [(1,), (2,), (2, 1), (2, 2)]
    assert optimal_tree([0.0, 0.5, 0.0], 1, consecutive=True).paths == [(1,)], "a tree has a node"


# S2: how it grows


@pytest.mark.parametrize(("alphabet", "depth"), [(2, 2), (2, 9), (4, 2), (8, 1)])
def test_equally_likely_ranks_have_the_complete_tree(alphabet: int, depth: int) -> None:
    """The tree by which the ledger attains T1 is the optimal one."""
    law, complete = np.full(alphabet, 1 / alphabet), KAry((alphabet,) * depth)
    assert optimal_tree(law, complete.nodes) == complete.tree()
    assert expected_tokens(complete, law) == depth + 1


DYADIC = [(0.5, 0.5), (0.5, 0.25, 0.25), (0.5, 0.25, 0.125, 0.125), (0.875, 0.125)]
OTHER = [(0.6, 0.4), (0.9, 0.05, 0.05), (0.4, 0.3, 0.2, 0.1)]


@pytest.mark.parametrize("law", DYADIC + OTHER, ids=str)
def test_the_optimal_tree_grows_as_log_k(law: tuple[float, ...]) -> None:
    """E[tokens] H(R) ~ log k (S2), with Tunstall's constant, for trees larger than the ledger's."""
    uncertainty, least = float(entropy(law)), min(law)
    for k in (1000, 10**4, 10**5):
        information = float(expected_tokens(optimal_tree(law, k), law)) * uncertainty
        leaves = math.log((k + 1) * (len(law) - 1) + 1)
        assert leaves + math.log(least) - ROUNDING * leaves <= information <= leaves * (1 + ROUNDING)
    assert abs(information / math.log(10**5) - 1) <= math.log(len(law) / least) / math.log(10**5)
