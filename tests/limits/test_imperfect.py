"""B8 and B9: trees from imperfect knowledge, and the window bound, against brute force."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from spectheory.limits import imperfect_tree, window_bound


def test_values_are_those_of_every_set() -> None:
    """The best value is the largest over all sets of P prefixes; the tree of the draft is the draft's best set."""
    rng = np.random.default_rng(5)
    for capacity in (1, 2, 4):
        p, q = rng.uniform(0, 1, (2, 7))
        sets = [list(each) for each in combinations(range(7), capacity)]
        chosen = max(sets, key=lambda each: q[each].sum())
        tree = imperfect_tree(p, q, capacity)
        assert tree.best == pytest.approx(max(p[each].sum() for each in sets), rel=1e-12)
        assert tree.value == pytest.approx(p[chosen].sum(), rel=1e-12)
        assert tree.claimed == pytest.approx(q[chosen].sum(), rel=1e-12)
        assert 0 <= tree.loss <= tree.bound


def test_perfect_knowledge_loses_nothing_and_the_bound_is_met() -> None:
    p = [0.5, 0.3, 0.2]
    assert (imperfect_tree(p, p, 2).loss, imperfect_tree(p, p, 2).bound) == (0.0, 0.0)
    tight = imperfect_tree([0.6, 0.4], [0.5, 0.5 + 1e-12], 1)
    assert tight.loss == pytest.approx(tight.bound, abs=1e-9)
    assert tight.loss > 0.19, "negative control: a bound of 0 would be caught"


def test_fair_coins_meet_the_window_bound_to_its_constant() -> None:
    """Fair coins: w = 1, delta = log 2, epsilon = 1; the tree of 2^(n+1) - 2 prefixes predicts n tokens."""
    for n in (1, 3, 9):
        bound = window_bound(2 ** (n + 1) - 2, 1, math.log(2), 1.0)
        assert n <= bound <= n + 1
