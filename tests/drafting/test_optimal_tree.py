"""S2: the optimal tree against all trees and against a heap, with consecutive ranks too; S3: how it grows."""

from __future__ import annotations

import heapq
import math
from itertools import pairwise, product

import numpy as np
import pytest

from spectheory import entropy
from spectheory.drafting import Chain, KAry, Tree, expected_tokens, node_weights, optimal_tree
from spectheory.drafting.optimal import _best_consecutive_tree
from spectheory.kernels import tree as tree_kernel
from spectheory.kernels.tree import _compiled, _grow, heaviest_nodes
from tests.drafting.drafting_cases import ROUNDING, Floats, all_trees, in_order, larger_laws, width

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
                positive = sum(share > 0 for share in law)
                possible = sum(min(most_wide or MOST, positive**d) for d in range(1, (depth or MOST) + 1))
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
    ranks = [rank for rank, share in enumerate(law, start=1) if share > 0]
    every = {path for d in range(1, depth + 1) for path in product(ranks, repeat=d)}
    for budget in (len(every), len(every) + 1, 1000):
        assert set(optimal_tree(law, budget, depth).paths) == every
        assert set(optimal_tree(law, budget, depth, consecutive=True).paths) == every
        for most_wide in (1, 2, 4):
            tree = optimal_tree(law, budget, depth, max_width=most_wide)
            assert tree.nodes == sum(min(most_wide, len(ranks) ** d) for d in range(1, depth + 1))


# S2: larger trees against a heap


def heaviest(law: Floats, budget: int, depth: int) -> list[tuple[float, int]]:
    """Weight and depth of the heaviest nodes in order, from a heap of all children of what was found."""
    nodes: list[tuple[float, int]] = []
    heap = [(-1.0, 0)]
    while heap and len(nodes) <= budget:
        weight, above = heapq.heappop(heap)
        nodes.append((-weight, above))
        if above < depth:
            for share in law[law > 0]:
                heapq.heappush(heap, (weight * float(share), above + 1))
    return nodes[1:]


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


@pytest.mark.parametrize("worth", [False, True])
@pytest.mark.parametrize("name", sorted(larger_laws()))
def test_compiled_and_plain_kernels_are_equal(name: str, worth: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Node for node, before and after the compiled one is worth loading."""
    pytest.importorskip("numba")
    loaded = []
    monkeypatch.setattr(tree_kernel, "_compiled", lambda: loaded.append(name) or _compiled())
    monkeypatch.setattr(tree_kernel, "_taken", tree_kernel._LOADING if worth else 0)
    law = np.sort(larger_laws()[name])[::-1][:8].copy()
    budgets = ((1, 1, 1), (700, 700, 700), (700, 3, 700), (700, 700, 9), (25_000, 12, 9000))
    for budget, depth, most_wide in budgets:
        plain = _grow(law, budget, depth, most_wide)
        compiled = _compiled()(law, budget, depth, most_wide)
        chosen = heaviest_nodes(law, budget, depth, most_wide)
        for one, two, three in zip(plain, compiled, chosen, strict=True):
            assert one.dtype == two.dtype == np.int32
            assert np.array_equal(one, two)
            assert np.array_equal(one, three)
    assert len(loaded) == (len(budgets) if worth else 0)


# S2: consecutive ranks


def test_the_programme_against_all_trees_of_two_ranks() -> None:
    """Up to 8 nodes, also where the order of the ranks does not matter."""
    for law in ((0.1, 0.8), (0.8, 0.1), (0.5, 0.5), (0.3, 0.31), (0.0, 0.9)):
        for budget, depth in product((5, 7, 8), (1, 2, 4, 8)):
            tree = _best_consecutive_tree(np.array(law), budget, depth)
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
    programme = _best_consecutive_tree(law, 60, depth or 60)
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
