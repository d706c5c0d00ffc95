"""Best trees of random pmfs, simulated, against the exact law of a plain heap.

Means are checked by Bernstein with the variance of the exact law, and totals cell by cell, each at 1e-11; there are
fewer than 100 such checks: the file fails wrongly with probability below 1e-9.
A mean of about 1.5 with a spread of 0.3 is known to 0.005.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import simulations.simulators  # noqa: F401  registers all kinds
from proofs_check.theorems.branching.random_pmf_trees import Ensemble, mean_best, mean_best_by_depth
from simulations.counts import Tally
from simulations.draws import words
from simulations.experiments.tasks import registered
from simulations.kernels.random_pmf_trees import random_pmf_trees
from simulations.reference.drawing import Draws, exact_law
from simulations.reference.trees import heaviest_prefixes
from simulations.verdicts.predictions import compare, predictions
from spectheory.drafting import expected_tokens, optimal_tree
from spectheory.limits import stationary_tree_value
from tests.simulations.laws import Floats, straying, strays

TREES = 200_000

SUMMED = 1e-12
"""Relative: sums of at most some hundred products of floats."""


def tenths(*rows: Sequence[int]) -> Ensemble:
    return [tuple(Fraction(share, sum(row)) for share in row) for row in rows]


ENSEMBLES: dict[str, Ensemble] = {
    "sure or even": tenths([10, 0], [5, 5]),
    "three tokens": tenths([6, 3, 1], [4, 3, 3]),
    "zeros and ties": tenths([5, 5, 0], [0, 8, 2], [2, 2, 6]),
}
CAPACITIES = [1, 2, 3, 5]


def floats(pmfs: Ensemble) -> Floats:
    return np.array([[float(share) for share in pmf] for pmf in pmfs])


def law_of_the_total(pmfs: Ensemble, capacity: int) -> dict[float, float]:
    """Every total of the best tree with its probability: each prefix draws its pmf when it is found."""
    rows = floats(pmfs)

    def total(draws: Draws) -> float:
        prefixes = heaviest_prefixes(lambda _: rows[draws.token(np.ones(len(rows)))], (), capacity)
        return round(sum(weight for weight, _ in prefixes), 12)

    return exact_law(total)


def moments(law: dict[float, float]) -> tuple[float, float]:
    mean = sum(total * chance for total, chance in law.items())
    return mean, sum((total - mean) ** 2 * chance for total, chance in law.items())


@pytest.fixture(scope="module")
def simulated() -> dict[str, Floats]:
    return {
        name: random_pmf_trees(floats(pmfs), CAPACITIES, TREES, state=words(31)) for name, pmfs in ENSEMBLES.items()
    }


def families() -> dict[str, Floats]:
    rng = np.random.default_rng(5)
    tiny = np.array([[1e-300, 1 - 1e-12, 1e-12], [1.0, 0.0, 0.0]])
    return {
        **{name: floats(pmfs) for name, pmfs in ENSEMBLES.items()},
        "peaked": rng.dirichlet(np.full(40, 0.05), size=30),
        "flat": rng.dirichlet(np.ones(7), size=12),
        "one-hot": np.eye(3),
        "one token": np.ones((1, 1)),
        "uniform": np.full((2, 4), 0.25),
        "tiny": tiny,
    }


@pytest.mark.parametrize("name", ENSEMBLES)
def test_means_are_those_of_the_enumeration(name: str, simulated: dict[str, Floats]) -> None:
    for column, capacity in enumerate(CAPACITIES):
        mean, variance = moments(law_of_the_total(ENSEMBLES[name], capacity))
        assert mean == pytest.approx(float(mean_best(ENSEMBLES[name], capacity)), rel=1e-11), "in fractions"
        assert not strays(simulated[name][:, column].sum(), TREES * mean, TREES * variance, capacity), capacity


@pytest.mark.parametrize("name", ENSEMBLES)
def test_totals_are_those_that_occur(name: str, simulated: dict[str, Floats]) -> None:
    """Each tree's total is one of the law's, and each of the law's is seen at its rate."""
    law = law_of_the_total(ENSEMBLES[name], 3)
    values = np.array([float(total) for total in law])
    distance = np.abs(simulated[name][:, 2, None] - values)
    assert distance.min(axis=1).max() <= SUMMED
    assert straying((distance <= SUMMED).sum(axis=0), list(law.values())) == []


def test_wrong_means_are_caught(simulated: dict[str, Floats]) -> None:
    """Negative control: one pmf for all prefixes of a length, and the best tree of the mean pmf."""
    for name, pmfs in ENSEMBLES.items():
        _, variance = moments(law_of_the_total(pmfs, 5))
        mean_pmf = [tuple(sum(column, Fraction(0)) / len(pmfs) for column in zip(*pmfs, strict=True))]
        for wrong in (mean_best_by_depth(pmfs, 5), mean_best(mean_pmf, 5)):
            assert strays(simulated[name][:, 3].sum(), TREES * float(wrong), TREES * variance, 5)


@pytest.mark.parametrize("pmf", [[0.6, 0.3, 0.1], [0.5, 0.5], [1.0], [0.25, 0.0, 0.75]], ids=str)
def test_one_pmf_everywhere_is_the_optimal_rank_tree(pmf: list[float]) -> None:
    """Nothing is random then: the value of S2's tree, and the stationary one."""
    total = float(random_pmf_trees(pmf, [100], 1, state=words(1))[0, 0])
    assert total == pytest.approx(stationary_tree_value(pmf, 100), rel=SUMMED)
    assert total + 1 == pytest.approx(float(expected_tokens(optimal_tree(pmf, 100), pmf)), rel=SUMMED)


def test_one_pmf_is_judged_by_its_numbers_not_by_their_rounding() -> None:
    """All trees are alike, so their mean has no error at all: the exact value and B3' stand; half of it would not."""
    pmf = np.random.default_rng(7).dirichlet(np.full(1000, 0.05)).tolist()
    given = {"pmfs_given": [pmf], "capacities": [1, 5, 64]}
    tally = run("random-trees", given, 50)
    compared = compare(tally, predictions("random-trees", given))
    assert [each for each in compared if not each] == []
    for each in compared:
        if each.predicted.statement == "B3'":
            assert each.predicted.value >= each.observed.best, "from above"
            assert not compare(tally, [replace(each.predicted, value=each.observed.best * (1 - 1e-12))])[0]


def run(kind: str, parameters: dict[str, Any], trials: int) -> Tally:
    return registered(kind).run(parameters, trials, words(3))


def test_capacities_do_not_change_the_trees() -> None:
    """The largest capacity says what is drawn."""
    pmfs = families()["flat"]
    every = random_pmf_trees(pmfs, range(1, 41), 50, state=words(2))
    np.testing.assert_array_equal(every[:, [4, 39]], random_pmf_trees(pmfs, [5, 40], 50, state=words(2)))
    assert np.all(np.diff(every, axis=1) > 0)
    assert np.all(np.diff(every, n=2, axis=1) <= SUMMED), "the heaviest first"
