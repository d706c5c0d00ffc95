"""S2 with consecutive ranks; S3: how the optimal tree grows."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from spectheory import entropy
from spectheory.drafting import (
    KAry,
    expected_tokens,
    optimal_tree,
)
from spectheory.drafting.optimal import best_consecutive_tree
from tests.drafting.drafting_cases import ROUNDING, all_trees, in_order, larger_laws

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
