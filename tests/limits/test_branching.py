"""B2 and B2' where every prefix has one pmf; best trees in random trees."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from proofs_check.library.strategies import Floats, theorem
from proofs_check.theorems.branching.random_pmf_trees import mean_best
from spectheory.limits import (
    StepLaw,
    branching_bound,
    imperfect_tree,
    random_tree_totals,
    random_tree_value,
    stationary_tree_value,
    window_bound,
)
from spectheory.limits.branching import Form
from tests.limits.limit_cases import ROUNDING, best_tree, entropy
from tests.made_up import each

FALSE_ALARM = 1e-9
"""Chance that any one simulated test here fails although the library is right."""

FORMS: tuple[Form, ...] = ("sharp", "lorden", "best_t")


def second_moment(pmf: Floats) -> float:
    return float(np.sum(pmf[pmf > 0] * np.log(pmf[pmf > 0]) ** 2))


# The law of a step


def test_the_atoms_of_one_context_are_one_draw() -> None:
    """A law of sampled contexts has as many independent draws as contexts, not as tokens."""
    law = StepLaw.from_pmfs([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]], sampled=True)
    assert law.draws is not None
    assert law.draws.tolist() == [0, 0, 1, 1, 1]
    assert law.weights.tolist() == [0.25, 0.25, 0.125, 0.25, 0.125]
    assert StepLaw.from_pmfs([[0.5, 0.5]]).draws is None


# B2, B2': one pmf at every prefix


@each("capacity", [1, 2, 3, 7, 8, 64, 300])
@each("pmf", [[0.5, 0.5], [0.25] * 4, [0.99, 0.01], [0.9, 0.05, 0.05], [0.999999, 0.000001], [0.4, 0.3, 0.2, 0.1]])
def test_no_tree_of_one_law_beats_the_branching_bounds(pmf: list[float], capacity: int) -> None:
    """B2, B2' where every prefix has the same pmf, so that the best tree is exact at any capacity."""
    law = np.array(pmf)
    exact = best_tree(lambda _: law, capacity)
    for form in FORMS:
        assert exact <= branching_bound(entropy(law), second_moment(law), capacity, form) + ROUNDING


def test_the_sharp_bound_is_not_loose() -> None:
    """The smallest error these tests would see: B2' is within 0.5 token of the fair binary tree at P = 2^10 - 2."""
    law = np.array([0.5, 0.5])
    exact = best_tree(lambda _: law, 1022)
    assert exact == pytest.approx(9, abs=ROUNDING)
    assert branching_bound(entropy(law), second_moment(law), 1022) < exact + 0.5


def test_wrong_branching_formulas_are_caught() -> None:
    """Negative control: without K, or in bits, B2' is exceeded by an enumerated tree."""

    def sharp(mu: float, spread: float, capacity: float) -> float:
        return min(spread + math.log1p(mu * (capacity - spread)) / mu if capacity >= spread else capacity, capacity)

    law = np.array([0.9, 0.05, 0.05])
    mu, spread = entropy(law), second_moment(law) / entropy(law) ** 2 - 1
    exact = best_tree(lambda _: law, 64)
    assert sharp(mu, spread, 64) == branching_bound(mu, (spread + 1) * mu**2, 64)
    assert exact > sharp(mu, 0.0, 64)
    fair = np.array([0.5, 0.5])
    assert best_tree(lambda _: fair, 1022) > sharp(entropy(fair) / math.log(2), 0.0, 1022)
    laws = np.array([[0.7, 0.2, 0.1], [0.98, 0.01, 0.01]])
    mu, mu2 = (float(np.mean([moment(row) for row in laws])) for moment in (entropy, second_moment))
    random_tree = mean_best([tuple(map(Fraction, row)) for row in laws], 2)
    assert random_tree > sharp(mu, 0.0, 2)
    assert branching_bound(mu, mu2, 1, "published") == 0, "B1's leading term alone is no bound at P = 1"


@theorem
@given(st.floats(1e-6, 20), st.floats(1, 1e6), st.integers(1, 10**9))
def test_sharp_is_below_the_other_forms(mu: float, ratio: float, capacity: int) -> None:
    """B2' <= both forms of B2, and every form lies in (0, P]."""
    mu2 = ratio * mu * mu
    sharp = branching_bound(mu, mu2, capacity)
    for form in FORMS:
        assert 0 < sharp <= branching_bound(mu, mu2, capacity, form) * (1 + 1e-9)
        assert branching_bound(mu, mu2, capacity, form) <= capacity


@theorem
@given(st.floats(1e-3, 20), st.floats(1, 100), st.integers(1, 10**6), st.integers(1, 10))
def test_more_capacity_never_hurts(mu: float, ratio: float, capacity: int, factor: int) -> None:
    """Every form grows with P."""
    mu2 = ratio * mu * mu
    for form in (*FORMS, "published"):
        small = branching_bound(mu, mu2, capacity, form)  # type: ignore[arg-type]
        large = branching_bound(mu, mu2, factor * capacity, form)  # type: ignore[arg-type]
        assert small <= large * (1 + ROUNDING)


@pytest.mark.parametrize("form", [*FORMS, "published"])
def test_a_certain_target_predicts_everything(form: Form) -> None:
    """Mu = 0 gives P, and so does a mu whose square underflows."""
    assert branching_bound(0.0, 0.0, 17, form) == 17
    if form != "published":
        assert branching_bound(1e-200, 0.0, 17, form) == 17
        assert branching_bound(1e-9, 1e-6, 17, form) == 17


# The value itself: best trees in random trees


@pytest.mark.parametrize("tokens", [2, 5])
def test_one_prefix_is_worth_the_largest_probability(tokens: int) -> None:
    """P = 1: the largest entry of each pmf, on average H_V/V for uniform pmfs; Hoeffding at `FALSE_ALARM`."""
    trees = 6000
    samples: list[Floats] = []

    def sample(rng: np.random.Generator, n: int) -> Floats:
        samples.append(rng.dirichlet(np.ones(tokens), n))
        return samples[-1]

    totals = random_tree_totals(sample, 1, trees, rng=4)[:, 0]
    np.testing.assert_array_equal(totals, np.concatenate(samples).max(axis=1))
    harmonic = sum(1 / n for n in range(1, tokens + 1)) / tokens
    assert abs(totals.mean() - harmonic) <= math.sqrt(math.log(2 / FALSE_ALARM) / (2 * trees))


def test_the_value_of_random_trees_has_its_interval() -> None:
    """The mean and Student interval of the trees' totals; a seed repeats it; equal trees have no width."""

    def sample(rng: np.random.Generator, n: int) -> Floats:
        return rng.dirichlet(np.full(8, 0.3), n)

    value = random_tree_value(sample, 6, 50, rng=2)
    tokens = random_tree_totals(sample, 6, 50, rng=np.random.default_rng(2))[:, -1]
    assert value.best == tokens.mean()
    wide = student.interval(0.95, 49, loc=tokens.mean(), scale=tokens.std(ddof=1) / math.sqrt(50))
    assert (value.low, value.high) == pytest.approx(wide, rel=ROUNDING)
    assert value.kind == "statistical"
    still = random_tree_value(lambda _, n: [[0.5, 0.25, 0.25]] * n, 9, 3)
    assert still.low == still.high == stationary_tree_value([0.5, 0.25, 0.25], 9)


# B8 and B9: trees from imperfect knowledge, and the window bound


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
