"""T1 against every rank tree."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import Floats, theorem
from spectheory.limits import (
    stationary_tree_value,
    tunstall_bound,
)
from tests.limits.limit_cases import ROUNDING, Node, best_tree, entropy, weight
from tests.made_up import each

# T1


def rank_trees(alphabet: int, nodes: int) -> Iterator[frozenset[Node]]:
    """Every draft tree of that many nodes, root excluded, whose edges are ranks below `alphabet`."""
    trees: set[frozenset[Node]] = {frozenset([()])}
    for _ in range(nodes):
        trees = {
            tree | {(*node, rank)}
            for tree in trees
            for node in tree
            for rank in range(alphabet)
            if (*node, rank) not in tree
        }
    return iter(trees)


RANK_LAWS = [
    np.array(law)
    for law in ([0.5, 0.5], [0.9, 0.1], [0.01, 0.99], [1.0, 0.0], [1 / 3] * 3, [0.7, 0.2, 0.1], [0.98, 0.01, 0.01])
]


@each("nodes", [1, 2, 3, 4])
@each("law", RANK_LAWS)
def test_no_rank_tree_beats_the_channel_limit(law: Floats, nodes: int) -> None:
    """T1 and S3: E[tokens] = sum of node weights, E[tokens] H(R) = H(exit leaf) <= log(leaves), for every tree."""
    alphabet = len(law)
    bound = tunstall_bound(entropy(law), alphabet, nodes)
    for tree in rank_trees(alphabet, nodes):
        tokens = sum(weight(law, node) for node in tree)
        leaves = [(*node, rank) for node in tree for rank in range(alphabet) if (*node, rank) not in tree]
        assert len(leaves) == (nodes + 1) * (alphabet - 1) + 1
        exits = np.array([weight(law, leaf) for leaf in leaves])
        assert tokens * entropy(law) == pytest.approx(entropy(exits), abs=ROUNDING)
        assert tokens <= bound + ROUNDING


def test_the_channel_limit_is_reached() -> None:
    """Equally likely ranks and a complete tree: H(exit leaf) is the logarithm of the leaves."""
    for alphabet, depth in ((2, 3), (3, 2)):
        nodes = sum(alphabet**d for d in range(1, depth))
        assert tunstall_bound(math.log(alphabet), alphabet, nodes) == pytest.approx(depth, abs=ROUNDING)
    assert tunstall_bound(0.0, 4, 7) == 8
    assert tunstall_bound(0.0, 1, 7) == 8
    assert tunstall_bound(1e-9, 4, 7) == 8


def test_the_channel_limit_fails_for_mixed_ranks() -> None:
    """A = 4, half the texts with rank 1 always: a chain of 16 gives 9.17 where the marginal law's limit says 3.68."""
    marginal = np.array([0.625, 0.125, 0.125, 0.125])
    chain = (17 + sum(0.25**i for i in range(17))) / 2
    assert chain == pytest.approx(9.17, abs=0.005)
    assert tunstall_bound(entropy(marginal), 4, 16) == pytest.approx(3.68, abs=0.005)


@theorem
@given(st.integers(2, 10**5), st.integers(1, 10**4), st.floats(0, 1))
def test_the_channel_limit_against_its_simple_form(alphabet: int, nodes: int, share: float) -> None:
    """1 <= T1 <= min(k + 1, (log A + log(k+1)) / H), and the simple form is just that."""
    rank_entropy = share * math.log(alphabet)
    bound = tunstall_bound(rank_entropy, alphabet, nodes)
    simple = tunstall_bound(rank_entropy, alphabet, nodes, form="asymptotic")
    assert 1 - ROUNDING <= bound <= simple * (1 + ROUNDING)
    assert simple <= nodes + 1
    if rank_entropy > 0:
        expected = min((math.log(alphabet) + math.log(nodes + 1)) / rank_entropy, nodes + 1)
        assert simple == pytest.approx(expected, rel=ROUNDING)


@each("nodes", [1, 10, 1000, 20_000])
@each("law", [law for law in RANK_LAWS if law.min() > 0])
def test_the_tunstall_tree_attains_the_channel_limit(law: Floats, nodes: int) -> None:
    """log(leaves p_min) <= E[tokens] H(R) <= log(leaves): every leaf was split off a node no lighter than any leaf."""
    tokens = stationary_tree_value(law, nodes) + 1
    leaves = (nodes + 1) * (len(law) - 1) + 1
    least = (math.log(leaves) + math.log(float(law.min()))) / entropy(law)
    assert least <= tokens * (1 + ROUNDING)
    assert tokens <= tunstall_bound(entropy(law), len(law), nodes) * (1 + ROUNDING)


@pytest.mark.parametrize("nodes", [1, 5, 50, 500])
@pytest.mark.parametrize("kept", [1, 2, 4])
def test_the_channel_limit_of_lumped_ranks(kept: int, nodes: int) -> None:
    """Geometric ranks without end, those beyond B lumped and never drafted: every tree on ranks up to B obeys T1."""
    law = 0.6 * 0.4 ** np.arange(kept)
    lumped = np.append(law, 0.4**kept)
    tokens = 1 + best_tree(lambda _: law, nodes)
    assert tokens <= tunstall_bound(entropy(lumped), kept + 1, nodes) + ROUNDING
