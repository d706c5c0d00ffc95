"""S4: the search for a draft tree along a text."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from proofs_check.twins import path_theorem, tree_theorem
from spectheory import drafting
from spectheory.drafting import Chain
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.prediction.best_tree import _worth, text_tree
from spectheory.prediction.paths import calls_and_visits, calls_of_tree, tree_survival
from tests.drafting.drafting_cases import rank_trees
from tests.made_up import Refusal, all_refused
from tests.prediction.tree_cases import ROUNDING, TREES, Floats, library_tree

EQUAL = 1e-9
"""Calls of two trees that differ by less, relative, are a tie in exact arithmetic: rounding is far below."""

STEP = 1e-6
"""Share of a node that is added to see what it is worth."""

QUOTIENT = 1e-4
"""Difference quotients of sums below 25 calls: curvature of at most some 50 times the step, and rounding over it."""


# S4: the search


@cache
def library_trees(alphabet: int, nodes: int) -> list[drafting.Tree]:
    return [library_tree(tree) for tree in sorted(rank_trees(alphabet, nodes), key=sorted)]


def in_order(tree: drafting.Tree) -> bool:
    """Whether siblings have ranks 1..m."""
    return all(path[-1] == 1 or (*path[:-1], path[-1] - 1) in tree.paths for path in tree.paths)


def calls_of(law: Floats, lengths: NDArray[np.int64], tree: drafting.Tree) -> float:
    return float(calls_of_tree(*tree_survival(law, tree), lengths).expected.sum())


ALTERNATING = np.array([[0.0002, 0.9997], [0.955, 0.026]] * 20)


def test_found_calls_are_those_of_the_tree() -> None:
    """In fractions, from the recursion's twin, of a tree larger than the ledger's."""
    law = [[Fraction(float(share)) for share in row] for row in ALTERNATING]
    best = text_tree(ALTERNATING, np.array([40]), 5)
    survival = tree_theorem.tree_survival(law, frozenset(best.tree.paths))
    exact, _ = path_theorem.calls(survival, best.tree.depth, 40)
    assert best.calls == pytest.approx(float(exact), rel=ROUNDING)


@dataclass(frozen=True)
class Text:
    """Rank laws along texts."""

    law: Floats
    lengths: NDArray[np.int64]


def random_text(seed: int, alphabet: int) -> Text:
    """Independent positions, or positions that repeat with a period of 1 to 3; one text, or two, or tokens alone."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(4, 25))
    period = [length, int(rng.integers(1, 4)), length][seed % 3]
    law = rng.dirichlet(np.full(alphabet + 1, 2.0 if seed % 3 == 2 else 0.3), period)[:, :alphabet]
    law = np.tile(law, (length, 1))[:length]
    cut = int(rng.integers(1, length))
    lengths = [[length], [cut, length - cut], [1] * length][0 if seed % 2 else 1 + (seed % 10 == 0)]
    return Text(law, np.array(lengths))


def searched(seeds: range, consecutive: bool) -> tuple[int, int]:
    """Search against all trees of up to as many nodes: how often the found tree is the best, and the greedy one."""
    best, greedy_best = 0, 0
    for seed in seeds:
        alphabet = 2 + seed % 2
        budget = 1 + seed % (4 if alphabet == 2 else 3)
        text = random_text(seed, alphabet)
        search = text_tree(text.law, text.lengths, budget, consecutive=consecutive)
        trees = [t for k in range(1, budget + 1) for t in library_trees(alphabet, k) if not consecutive or in_order(t)]
        fewest = min(calls_of(text.law, text.lengths, tree) for tree in trees)
        assert search.tree.nodes <= budget
        assert in_order(search.tree) or not consecutive
        assert search.calls <= search.greedy_calls
        assert search.calls == pytest.approx(calls_of(text.law, text.lengths, search.tree), rel=ROUNDING)
        assert fewest <= search.calls * (1 + ROUNDING)
        best += search.calls <= fewest * (1 + EQUAL)
        greedy_best += search.greedy_calls <= fewest * (1 + EQUAL)
    return best, greedy_best


@pytest.mark.parametrize("consecutive", [False, True])
def test_search_against_all_trees(consecutive: bool) -> None:
    """Never worse than greedy, never better than the best of all trees; of 120 small cases at least 118 the best."""
    best, greedy_best = searched(range(120), consecutive)
    assert best >= 118
    assert greedy_best < best


def test_gains_are_derivatives_of_the_calls() -> None:
    """What the search calls the worth of a node is the fall of all calls when a share of it is added, as a quotient."""
    for seed in range(6):
        text = random_text(seed, 2)
        tree = library_tree(TREES["uneven"])
        alive = tree_survival(text.law, tree)[0]
        starts = np.cumsum(text.lengths) - text.lengths
        before = calls_and_visits(alive, text.lengths)[0][starts].sum()
        for path in ((2, 1), (2, 2)):
            more = text.law[:, 1] * np.append(text.law[1:, path[1] - 1], 0.0)
            gain = float(_worth(text.law, text.lengths, tree)(2) @ more)
            more_alive = alive + STEP * np.stack([np.zeros_like(more), more], axis=1)
            after = calls_and_visits(more_alive, text.lengths)[0][starts].sum()
            assert (before - after) / STEP == pytest.approx(gain, abs=QUOTIENT)


def test_the_search_does_not_look_across_texts() -> None:
    """Texts of two tokens: counted across their ends, 1-1 would weigh more than 2, and greedy take 1.1 calls a text."""
    law, lengths = np.tile([[0.9, 0.05], [0.4, 0.55]], (50, 1)), np.full(50, 2)
    assert text_tree(law, lengths, 2).greedy_calls == pytest.approx(1.05 * 50, rel=ROUNDING)
    chain_calls = calls_of(law, lengths, Chain(2).tree())
    assert chain_calls == pytest.approx(1.1 * 50, rel=ROUNDING)


def test_limits_on_the_tree() -> None:
    """Depth, and a budget beyond all nodes that fit into the text."""
    for most in (1, 2):
        best = text_tree(ALTERNATING, np.array([40]), 4, max_depth=most)
        trees = [tree for tree in library_trees(2, min(4, 2 * most)) if tree.depth <= most]
        assert best.tree.depth <= most
        assert best.calls == pytest.approx(min(calls_of(ALTERNATING, np.array([40]), t) for t in trees), rel=EQUAL)
    for length in (1, 2, 3):
        best = text_tree(np.full((length, 2), 0.5), np.array([length]), 50)
        assert best.tree.nodes == 2 ** (length + 1) - 2
        assert best.calls == pytest.approx(1.0)
    assert text_tree(np.full((3, 1), 0.5), np.array([3]), 50).tree == Chain(3).tree()
    assert text_tree(np.full((3, 1), 0.5), np.array([1, 1, 1]), 50).calls == pytest.approx(3.0)


def test_a_long_law_of_one_text_is_its_optimal_tree() -> None:
    """One law all along a long text: the tree of S2, whose calls no search betters by more than the text's two ends."""
    law = np.tile([0.55, 0.25, 0.1], (4000, 1))
    search = text_tree(law, np.array([4000]), 12)
    best = drafting.optimal_tree(law[0], 12)
    assert search.calls <= calls_of(law, np.array([4000]), best) * (1 + EQUAL)
    per_call = float(drafting.expected_tokens(best, law[0]))
    assert abs(4000 / per_call - search.calls) <= 1 + best.depth / per_call


BAD: dict[str, Refusal] = {
    "budget": (lambda: text_tree(np.ones((2, 1)), np.array([2]), 0), SettingError, "budget is 0: must be >= 1"),
    "fraction": (lambda: text_tree(np.ones((2, 1)), np.array([2]), 1.5), SettingError, "budget is 1.5"),
    "depth": (lambda: text_tree(np.ones((2, 1)), np.array([2]), 1, max_depth=0), SettingError, "max depth is 0"),
    "lengths": (lambda: text_tree(np.ones((2, 1)), np.array([3]), 1), ShapeError, "the texts have 3 tokens"),
    "flat": (lambda: text_tree(np.ones(2), np.array([2]), 1), ShapeError, "the rank law is (2,)"),
    "no text": (lambda: text_tree(np.ones((0, 1)), np.array([0]), 1), ShapeError, "(0, 1)"),
    "empty text": (lambda: text_tree(np.ones((2, 1)), np.array([2, 0]), 1), ShapeError, "a text has 0 tokens"),
    "negative": (lambda: text_tree(np.array([[-0.5], [1.0]]), np.array([2]), 1), PmfError, "entry -0.5"),
    "sum": (lambda: text_tree(np.array([[0.5, 0.6]]), np.array([1]), 1), PmfError, "sums to 1.1"),
}

test_bad_input_is_named_in_one_line = all_refused(BAD)
