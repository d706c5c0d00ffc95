"""What a call drafts: the heaviest prefixes, what stood in the text before, shapes cut where a text must end."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from spectheory.drafting import Chain, KAry, Shape, Tree
from spectheory.measure.decoders import HeaviestTree, Method
from spectheory.measure.decoders.methods import (
    Drafting,
    _by_arrival_with_repeats,
    _draft_heaviest,
    _first_of,
    by_arrival,
)
from spectheory.measure.decoders.tree import Clocks, DraftTree, Floats, GeneratorChance, Source
from spectheory.ngrams.lookup import Lookup
from tests.made_up import each

V = 7


def pmf_after(path: Sequence[int], seed: int) -> Floats:
    weights = np.random.default_rng([seed, *path]).exponential(size=V) ** 2
    return weights / weights.sum()


def drafted(tree: DraftTree, drafting: Drafting, seed: int) -> int:
    """Grow the tree; return how many passes that took."""
    passes, wanted = 0, next(drafting, None)
    while wanted is not None:
        passes += 1
        pmfs = [pmf_after([tree.tokens[on] for on in tree.path(node)], seed) for node in wanted]
        try:
            wanted = drafting.send(pmfs)
        except StopIteration:
            break
    return passes


def paths_of(tree: DraftTree) -> set[tuple[int, ...]]:
    return {tuple(tree.tokens[on] for on in tree.path(node)) for node in tree.nodes}


def best_first(nodes: int, depth: int, ends: frozenset[int], seed: int) -> set[tuple[int, ...]]:
    """The same tree node by node with a heap: the most probable known prefix is taken and its children are known."""
    taken: set[tuple[int, ...]] = set()
    known: list[tuple[float, tuple[int, ...]]] = [(-1.0, ())]
    while known and len(taken) <= nodes:
        weight, path = heapq.heappop(known)
        taken.add(path)
        if len(path) < depth and not (path and path[-1] in ends):
            for token, mass in enumerate(pmf_after(path, seed)):
                heapq.heappush(known, (weight * mass, (*path, token)))
    return taken - {()}


@each("seed", range(10))
@each("nodes, depth", [(1, 9), (12, 9), (40, 9), (40, 2), (5, 1)])
def test_the_heaviest_tree_is_the_best_first_one(nodes: int, depth: int, seed: int) -> None:
    for ends in (frozenset[int](), frozenset({2, 5})):
        tree = DraftTree()
        passes = drafted(tree, _draft_heaviest(tree, nodes, depth, ends), seed)
        assert paths_of(tree) == best_first(nodes, depth, ends, seed)
        assert passes <= min(tree.depth + 1, depth)


def test_nothing_is_drafted_where_one_token_is_left() -> None:
    for method in (Method("toptree", HeaviestTree(4)), Method("token", Chain(3)), Method("lookup", Chain(3))):
        tree = DraftTree()
        source = Source(GeneratorChance(np.random.default_rng(1)), Clocks(1, V))
        assert drafted(tree, method.drafting(tree, [1, 1, 1], 0, source, frozenset()), 1) == 0
        assert tree.nodes == []
        assert tree.depth == 0


@pytest.mark.parametrize("room", [1, 2, 3, 9])
@pytest.mark.parametrize("shape", [Chain(4), KAry((2, 3)), Tree.from_paths([(2,), (2, 3), (4,), (4, 1), (4, 1, 1)])])
def test_shapes_are_cut_at_their_room(shape: Shape, room: int) -> None:
    """What is drafted are the shape's nodes no deeper than that, in one pass a level; nothing after an end."""
    wanted = {path for path in shape.tree().paths if len(path) <= room}
    tree, source = DraftTree(), Source(GeneratorChance(np.random.default_rng(1)), Clocks(1, V))
    passes = drafted(tree, Method("topk", shape).drafting(tree, [1], room, source, frozenset()), 3)
    assert {tuple(tree.ranks[on] for on in tree.path(node)) for node in tree.nodes} == wanted
    assert passes == min(room, shape.depth)
    shorter = DraftTree()
    everything = frozenset(range(V))
    assert drafted(shorter, Method("topk", shape).drafting(shorter, [1], room, source, everything), 3) == 1
    assert shorter.depth == 1


def naive_lookup(text: list[int], k: int, ngram: int) -> list[int]:
    for length in range(min(ngram, len(text) - 1), 0, -1):
        for end in range(len(text) - 1, length - 1, -1):
            if text[end - length : end] == text[-length:]:
                return text[end : end + k]
    return []


@each("seed", range(20))
def test_lookup_copies_the_latest_longest_match(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for size in (1, 2, 3, 10, 40):
        text = rng.integers(0, 3, size).tolist()
        for k, ngram in ((1, 1), (4, 2), (5, 4), (3, 50)):
            assert Lookup(ngram).draft(np.asarray(text), None)[:k].tolist() == naive_lookup(text, k, ngram)


def test_first_of_is_a_stable_sort() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 50):
        values = rng.integers(0, 6, size).astype(float)
        for count in (1, 2, 7, 60):
            assert _first_of(values, count) == np.argsort(values, kind="stable")[:count].tolist()


@pytest.mark.parametrize("candidates", [by_arrival, _by_arrival_with_repeats])
def test_arrivals_are_exponential_with_the_drafts_rates(candidates: Callable[..., list[int]]) -> None:
    """First arrivals are draws from the draft; repeats follow as independent draws, distinct ones without.

    4,000 lists of two; false alarm in 1e-9 (6.1 standard deviations), sees an error of a probability of 5%.
    """
    pmf, lists, count = np.array([0.5, 0.3, 0.2, 0.0]), np.zeros((4, 4)), 4_000
    for key in range(count):
        first, second = candidates(
            pmf, 2, DraftTree(), -1, Source(GeneratorChance(np.random.default_rng(1)), Clocks(key, 4))
        )
        lists[first, second] += 1
    law = np.outer(pmf, pmf)
    if candidates is by_arrival:
        law = np.divide(law * (1 - np.eye(4)), 1 - pmf[:, None])
    assert np.all(np.abs(lists - count * law) <= 6.1 * np.sqrt(count * law * (1 - law)) + 1e-9)


def test_clocks_belong_to_prefixes() -> None:
    """The same prefix has the same clocks as text and as drafts; another seed, position or token has others."""
    clocks, tree, empty = Clocks(5, 1_000), DraftTree(), DraftTree()
    node = tree.add(tree.add(-1, 1, 3), 1, 4)
    sibling = tree.add(0, 2, 5)
    as_drafts = clocks.at(tree, node).copy()
    others = [clocks.at(tree, -1), clocks.at(tree, 0), clocks.at(tree, sibling), Clocks(6, 1_000).at(tree, node)]
    clocks.follow([3])
    clocks.follow([4])
    assert (clocks.at(empty, -1) == as_drafts).all()
    assert abs(as_drafts.mean() - 1) < 6.1 / np.sqrt(1_000)
    for other in others:
        assert abs(np.corrcoef(as_drafts, other)[0, 1]) < 6.1 / np.sqrt(1_000)
