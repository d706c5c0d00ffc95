"""B3, B3' with random trees and estimated laws; bad settings."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import beta, binom
from scipy.stats import t as student

from proofs_check.library.strategies import Floats
from spectheory.limits import (
    StepLaw,
    branching_bound,
    random_tree_totals,
    renewal_bound,
)
from spectheory.limits.branching import Form
from spectheory.limits.renewal import RenewalForm
from tests.limits.renewal_cases import ROUNDING, population

FALSE_ALARM = 1e-9
"""Chance that any one simulated test here fails although the library is right."""


def dirichlet_law(concentration: float, tokens: int) -> StepLaw:
    """Step law of symmetric Dirichlet pmfs: p_Y is Beta(a + 1, (V - 1) a); steps rounded down to 1e-3 nats."""
    edges = np.append(np.arange(0, 12, 1e-3), math.inf)
    mass = -np.diff(beta.cdf(np.exp(-edges), concentration + 1, (tokens - 1) * concentration))
    return StepLaw.from_surprisal_histogram(edges, mass)


def family(name: str) -> tuple[Callable[[np.random.Generator, int], Floats], StepLaw]:
    """How to draw pmfs, and the exact law of a step."""
    if name.startswith("dirichlet"):
        concentration = float(name.split()[1])
        return lambda rng, n: rng.dirichlet(np.full(16, concentration), n), dirichlet_law(concentration, 16)
    pmf = population(name)
    return lambda rng, n: pmf[rng.integers(len(pmf), size=n)], StepLaw.from_pmfs(pmf)


FAMILIES = ["dirichlet 1", "dirichlet 0.1", "softmax", "sparse", "two regimes"]

TREES, CUT = 4000, 8.0


@pytest.mark.parametrize("name", FAMILIES)
def test_random_trees_stay_below_every_bound(name: str) -> None:
    """E[X] at P = 1, 8, 64 against B3', B3, B2', B2; 4000 trees.

    One-sided empirical Bernstein on min(X, 8), at `FALSE_ALARM`; at P = 64 the mean is known to 0.25 token, so that a
    bound with half the slope in log P is seen to fail.
    """
    sample, law = family(name)
    totals = random_tree_totals(sample, 64, TREES, rng=21)
    log = math.log(2 / FALSE_ALARM)
    for capacity in (1, 8, 64):
        tokens = np.minimum(totals[:, capacity - 1], CUT)
        slack = math.sqrt(2 * tokens.var(ddof=1) * log / TREES) + 7 * min(CUT, capacity) * log / (3 * (TREES - 1))
        numeric = renewal_bound(law, capacity)
        bounds = [numeric.high, renewal_bound(law, capacity, form="plain").high]
        forms: tuple[Form, ...] = ("sharp", "lorden", "best_t", "numeric")
        bounds += [branching_bound(None, None, capacity, form, step_law=law) for form in forms]
        assert tokens.mean() - slack <= min(bounds)
        assert numeric.high == pytest.approx(min(bounds), rel=ROUNDING)
    assert slack < 0.25
    spread = law.second_moment / law.mean**2 - 1
    assert tokens.mean() - slack > spread + math.log1p(law.mean * (64 - spread)) / law.mean / 2, "half the slope"


# Estimated laws


@pytest.mark.parametrize("form", ["dual", "plain"])
def test_the_interval_of_an_estimated_law_is_its_influence(form: RenewalForm) -> None:
    """Half the width is Student's quantile of the influences, each a finite difference of the bound itself."""
    steps = np.array([0.1, 0.4, 0.4, 0.7, 1.3, 2.0, 0.2, 0.0])
    known = StepLaw(steps, np.full(8, 1 / 8))
    change = 1e-6
    grid, capacity = 0.1, 30.0

    def value(law: StepLaw) -> float:
        return renewal_bound(law, capacity, form=form, grid=grid).high

    def slope(atom: int) -> float:
        """Central difference in the direction of one atom."""
        up, down = (StepLaw(steps, (1 - e) * known.weights + e * np.eye(8)[atom]) for e in (change, -change))
        return (value(up) - value(down)) / (2 * change)

    slopes = np.array([slope(atom) for atom in range(8)])
    texts = [steps[:3], steps[3:4], steps[4:]]
    estimated = renewal_bound(StepLaw.from_surprisals(texts), capacity, form=form, grid=grid)
    per_text = np.array([slopes[:3].sum(), slopes[3], slopes[4:].sum()]) / 8
    width = student.ppf(0.975, 2) * math.sqrt(3 / 2 * float(per_text @ per_text))
    assert estimated.kind == "statistical"
    assert estimated.best == value(known)
    assert estimated.high - estimated.best == pytest.approx(width, rel=1e-6)
    assert slopes.std() > 0.1


def test_the_interval_of_an_estimated_law_covers() -> None:
    """300 samples of 60 texts of ten exponential steps: log(1 + mu P)/mu lies in the interval, as 95% should.

    The number of misses is within its `FALSE_ALARM` quantile at 10% (the Student interval of 60 draws of a skewed law
    may miss more than 5%); intervals half as wide miss more often than that (negative control).
    """
    rng, mean, capacity = np.random.default_rng(31), 1.5, 64
    truth = math.log1p(mean * capacity) / mean
    misses = half = 0
    for _ in range(300):
        texts = rng.exponential(mean, (60, 10))
        value = renewal_bound(StepLaw.from_surprisals(list(texts)), capacity, grid=0.01)
        misses += not value.low <= truth <= value.high
        half += abs(truth - value.best) > (value.high - value.low) / 4
    allowed = binom.isf(FALSE_ALARM, 300, 0.10)
    assert misses <= allowed
    assert half > allowed


def test_tokens_of_one_text_are_one_draw() -> None:
    """Repeating every token of a text tells nothing new; a single draw has no interval."""
    steps = np.random.default_rng(1).exponential(1.0, 40)
    single = renewal_bound(StepLaw.from_surprisals([[s] for s in steps]), 64)
    repeated = renewal_bound(StepLaw.from_surprisals([[s] * 5 for s in steps]), 64)
    assert (repeated.low, repeated.high) == pytest.approx((single.low, single.high), rel=ROUNDING)
    alone = renewal_bound(StepLaw.from_surprisals([steps]), 64)
    assert alone.kind == "estimate"
    assert alone.low == alone.high


def test_sampled_contexts_give_a_statistical_interval() -> None:
    pmf = population("softmax")
    known, sampled = renewal_bound(StepLaw.from_pmfs(pmf), 64), renewal_bound(StepLaw.from_pmfs(pmf, sampled=True), 64)
    assert (known.kind, sampled.kind) == ("bound", "statistical")
    assert sampled.low < known.low < known.high == sampled.best < sampled.high


# The law itself


def test_the_law_of_pmfs_has_their_moments() -> None:
    import torch

    from spectheory import entropy, second_log_moment

    pmf = population("sparse").reshape(2, 100, 16)
    law = StepLaw.from_pmfs(torch.from_numpy(pmf))
    assert law.mean == pytest.approx(float(np.mean(entropy(pmf))), rel=ROUNDING)
    assert law.second_moment == pytest.approx(float(np.mean(second_log_moment(pmf))), rel=ROUNDING)
    assert len(law.steps) == np.count_nonzero(pmf)
    shares = StepLaw.from_pmfs([[0.5, 0.5], [1.0, 0.0]], [0.25, 0.75])
    assert shares.mean == pytest.approx(math.log(2) / 4, rel=ROUNDING)
