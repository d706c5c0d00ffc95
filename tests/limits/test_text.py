"""B6 along a text; bad settings of limits."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proofs_check.library.strategies import Floats, theorem
from spectheory.limits import (
    StepLaw,
    branching_bound_from_text,
    renewal_bound,
)
from spectheory.limits.text import best_threshold, surprisal_walks, threshold_terms
from tests.limits.limit_cases import ROUNDING, Model, best_tree
from tests.made_up import each

# B6: text, no i.i.d. assumption


def all_walks(model: Model, depth: int) -> tuple[Floats, Floats]:
    """Cumulative surprisals ``[texts, depth]`` of every text of the model, and the texts' probabilities."""
    walks, shares = [], []
    for text in product(range(len(model(()))), repeat=depth):
        steps = [float(model(text[:n])[token]) for n, token in enumerate(text)]
        if min(steps) > 0:
            walks.append(np.cumsum(-np.log(steps)))
            shares.append(math.prod(steps))
    return np.array(walks), np.array(shares)


def test_b6_without_memory_is_b3() -> None:
    """One pmf at every prefix: B6 from every text, minimised over t, is B3', and both are the best tree."""
    pmf, capacity = np.array([0.5, 0.25, 0.25]), 8
    walks, shares = all_walks(lambda _: pmf, capacity)
    lattice = math.log(2) * np.arange(8)
    values = [float(shares @ threshold_terms(walks, t)) + capacity * math.exp(-t) for t in lattice]
    numeric = renewal_bound(StepLaw.from_pmfs(pmf), capacity, grid=math.log(2)).high
    assert min(values) == pytest.approx(numeric, rel=ROUNDING)
    assert numeric == pytest.approx(best_tree(lambda _: pmf, capacity), rel=ROUNDING)


# The pieces of B6


def slow_b6(texts: list[Floats], capacity: int, t: float) -> float:
    """B6 from text, start by start and token by token."""
    starts = []
    for text in texts:
        for n in range(len(text) - capacity + 1):
            walk = np.cumsum(text[n : n + capacity])
            starts.append(sum(max(0.0, 1 - math.exp(s - t)) for s in walk))
    return min(float(np.mean(starts)) + capacity * math.exp(-t), capacity)


def some_texts(seed: int) -> list[Floats]:
    rng = np.random.default_rng(seed)
    return [rng.exponential(rng.choice([0.2, 2.0]), size=n) for n in (9, 1, 4, 30, 3)]


@each("capacity", [1, 3, 9, 30])
@each("t", [0.0, 0.7, 3.0, 30.0])
def test_b6_from_text_is_its_slow_twin(capacity: int, t: float) -> None:
    texts = some_texts(1)
    assert branching_bound_from_text(texts, capacity, t) == pytest.approx(slow_b6(texts, capacity, t), abs=ROUNDING)


def test_walks_stop_at_the_end_of_their_text() -> None:
    texts = [np.array([1.0, 2.0, 4.0]), np.array([8.0]), np.array([16.0, 32.0])]
    walks, whole = surprisal_walks(np.concatenate(texts), np.array([3, 1, 2]), 2)
    inf = math.inf
    np.testing.assert_array_equal(walks, [[1, 3], [2, 6], [4, inf], [8, inf], [16, 48], [32, inf]])
    np.testing.assert_array_equal(whole, [True, True, False, False, True, False])


@pytest.mark.parametrize("capacity", [1, 2, 5, 64])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_best_threshold_minimises(seed: int, capacity: int) -> None:
    """No t on a fine grid, and none of the walks' own values, gives less."""
    walks, _ = surprisal_walks(np.concatenate(some_texts(seed)), np.array([9, 1, 4, 30, 3]), capacity)

    def bound(t: float) -> float:
        return float(threshold_terms(walks, t).mean()) + capacity * math.exp(-t)

    best = bound(best_threshold(walks, capacity))
    grid = np.concatenate([np.linspace(0, 60, 400), walks[np.isfinite(walks)]])
    assert best <= min(bound(float(t)) for t in grid) + ROUNDING
    assert bound(best_threshold(walks, capacity) * 0.7) > best or capacity == 64


def test_the_best_threshold_of_no_walk_at_all() -> None:
    assert best_threshold(np.full((2, 3), math.inf), 3) > 40


@theorem
@given(st.lists(st.floats(0, 30), min_size=1, max_size=40), st.floats(0, 100), st.integers(1, 40))
def test_b6_lies_between_its_trivial_bounds(surprisals: list[float], t: float, capacity: int) -> None:
    """Every value lies in [min(1, mean of e^-S_1), P]: the best single prefix is worth that much."""
    assume(len(surprisals) >= capacity)
    text = np.array(surprisals)
    value = branching_bound_from_text([text], capacity, t)
    single = float(np.mean(np.exp(-text[: len(text) - capacity + 1])))
    assert min(single, 1.0) <= value + ROUNDING
    assert value <= capacity
