"""B3, B3': the renewal recursion against convolution powers, exact and random trees, closed forms, estimated laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom
from scipy.stats import t as student

from proofs_check.library.strategies import Floats, pmfs, theorem
from spectheory.limits import StepLaw, branching_bound, random_tree_totals, renewal_bound, stationary_tree_value
from spectheory.limits.branching import Form
from spectheory.limits.renewal import RenewalForm
from tests.made_up import each

ROUNDING = 1e-10
"""Relative: a recursion of at most ten thousand positive terms of a thousand products each, and the exponentials."""


# Random trees below the bounds


@cache
def population(name: str) -> Floats:
    """Pmfs over 16 tokens of which every prefix draws one: the step law is then exact."""
    rng = np.random.default_rng(11)
    if name == "softmax":
        weights = np.exp(3 * rng.standard_normal((200, 16)))
    elif name == "sparse":
        weights = np.where(rng.random((200, 16)) < 0.2, rng.random((200, 16)), 0.0)
        weights[np.arange(200), rng.integers(16, size=200)] += 1
    elif name == "two regimes":
        weights = np.stack([np.append(0.98 * 15 / 0.02, np.ones(15)), np.ones(16)])
    else:
        raise KeyError(name)
    return weights / weights.sum(axis=1, keepdims=True)


OUTWARD = 1e-16
"""What rounding outward adds to a bound however small; steps of 41 nats bound it by e^-41, 2e-18."""

SPAN = math.log(2)
"""Span of the lattice laws: probabilities are powers of 1/2."""

LATTICE_PMFS: list[list[float]] = [
    [1.0],
    [0.5, 0.5],
    [0.25] * 4,
    [0.5, 0.25, 0.25],
    [0.5, 0.25, 0.125, 0.125],
    [0.5, 0.0, *[1 / 32] * 16],
]

PLAIN_PMFS: list[list[float]] = [
    [0.7, 0.3],
    [0.9, 0.05, 0.05],
    [0.4, 0.3, 0.2, 0.1],
    [0.999, 0.001],
    [0.97, *[0.0005] * 60],
    [1 / 3] * 3,
]

LAWS: dict[str, tuple[list[int], list[float]]] = {
    "one step": ([1], [1.0]),
    "with rest": ([0, 1], [0.5, 0.5]),
    "mostly rest": ([0, 2, 5], [0.9, 0.05, 0.05]),
    "wide": ([1, 2, 3, 7, 20], [0.1, 0.3, 0.2, 0.3, 0.1]),
    "far": ([1, 1000], [0.8, 0.2]),
}
"""Steps in cells of the grid, and their weights."""


def lattice_law(cells: list[int], weights: list[float], grid: float) -> StepLaw:
    return StepLaw(np.array(cells) * grid, np.array(weights))


def visits_by_powers(cells: list[int], weights: list[float], points: int) -> Floats:
    """Expected visits to 0, 1, ..., points - 1: the convolution powers of the law, added up one by one."""
    step = np.zeros(points)
    for cell, weight in zip(cells, weights, strict=True):
        if cell < points:
            step[cell] += weight
    power, visits = step, np.zeros(points)
    while power.sum() > 1e-18:
        visits += power
        power = np.convolve(power, step)[:points]
    return visits


def slow_dual(visits: Floats, grid: float, capacity: float, t: float) -> float:
    """B3' at t: the integral of U(s) e^-(t-s), cell by cell."""
    total = 0.0
    for j in range(len(visits)):
        start, end = j * grid, min((j + 1) * grid, t)
        if start < t:
            total += float(visits[: j + 1].sum()) * (math.exp(end - t) - math.exp(start - t))
    return total + capacity * math.exp(-t)


def slow_plain(visits: Floats, grid: float, capacity: float, t: float) -> float:
    """B3 at t, U taken just below t."""
    below = math.ceil(t / grid - 1e-9)
    return float(visits[:below].sum()) + capacity * math.exp(-t)


# The recursion


@each("capacity", [1, 2, 5, 40])
@each("name", sorted(LAWS))
def test_the_bound_is_its_definition_minimised(name: str, capacity: int) -> None:
    """Visits by convolution powers, the integral by cells, t on a grid ten times finer and on the lattice itself."""
    grid, points = 0.3, 50
    law = lattice_law(*LAWS[name], grid)
    visits = visits_by_powers(*LAWS[name], points)
    slow: dict[RenewalForm, Callable[..., float]] = {"dual": slow_dual, "plain": slow_plain}
    for form, definition in slow.items():
        value = renewal_bound(law, capacity, form=form, grid=grid)
        least = min(definition(visits, grid, capacity, t) for t in np.arange(0, points * grid, grid / 10))
        assert value.kind == "bound"
        assert value.high == pytest.approx(min(least, capacity), rel=ROUNDING)
        assert value.low == pytest.approx(value.high, rel=ROUNDING)


@pytest.mark.parametrize("success", [0.1, 0.5, 0.9])
def test_geometric_steps_are_visited_evenly(success: float) -> None:
    """Steps 1, 2, ... with law r (1-r)^(i-1): every point beyond 0 is visited with probability r, so U(jh) = r j."""
    grid, capacity = 0.01, 300.0
    cells = np.arange(1, 10_000)
    weights = success * (1 - success) ** (cells - 1)
    law = StepLaw(cells * grid, weights)
    t = grid * np.arange(1, 4000)
    plain = success * (np.arange(1, 4000) - 1) + capacity * np.exp(-t)
    decay = -np.expm1(-t) / -math.expm1(-grid)  # sum of e^-(j-i)h over i = 1..j
    dual = success * (np.arange(1, 4000) - decay) + capacity * np.exp(-t)
    assert renewal_bound(law, capacity, form="plain", grid=grid).high == pytest.approx(plain.min(), rel=ROUNDING)
    assert renewal_bound(law, capacity, grid=grid).high == pytest.approx(dual.min(), rel=ROUNDING)


def exponential_bins(mean: float, width: float) -> tuple[Floats, Floats]:
    """Bins of exponential steps and their mass, up to 60 means."""
    edges = np.append(np.arange(0, 60 * mean, width), math.inf)
    return edges, -np.diff(np.exp(-edges / mean))


@pytest.mark.parametrize("capacity", [1, 10, 4096])
@pytest.mark.parametrize("mean", [0.3, 2.0])
def test_exponential_steps(mean: float, capacity: int) -> None:
    """U(t) = t/mu and K = 1 - 1: B3' is log(1 + mu P)/mu, B3 is (log(mu P) + 1)/mu; bins bracket both."""
    edges, mass = exponential_bins(mean, 1e-3)
    below = StepLaw.from_surprisal_histogram(edges, mass)
    above = StepLaw(below.steps + 1e-3, mass)
    dual = math.log1p(mean * capacity) / mean
    plain = (math.log(mean * capacity) + 1) / mean if mean * capacity > 1 else capacity
    for form, exact in (("dual", dual), ("plain", plain)):
        high = renewal_bound(below, capacity, form=form).high  # type: ignore[arg-type]
        low = renewal_bound(above, capacity, form=form).low  # type: ignore[arg-type]
        assert low <= exact * (1 + ROUNDING)
        assert exact <= high * (1 + ROUNDING)
        assert high - low < 0.01 * exact, "bins of a thousandth of a nat leave this much"


# One pmf at every prefix: B3' is the best tree


@each("refined", [1, 7])
@each("capacity", [1, 2, 3, 6, 64, 1000])
@each("pmf", LATTICE_PMFS)
def test_on_the_lattice_the_bound_is_the_best_tree(pmf: list[float], capacity: int, refined: int) -> None:
    value = renewal_bound(StepLaw.from_pmfs(pmf), capacity, grid=SPAN / refined)
    exact = stationary_tree_value(pmf, capacity)
    assert value.high == pytest.approx(exact, rel=ROUNDING)
    assert value.low == pytest.approx(exact, rel=ROUNDING)
    assert value.low <= exact <= value.high * (1 + 1e-15 * (value.high == capacity)), "rounded outwards, but for P"


@each("capacity", [1, 2, 17, 4096])
@each("pmf", PLAIN_PMFS)
def test_off_the_lattice_the_interval_holds_the_best_tree(pmf: list[float], capacity: int) -> None:
    """Low <= exact <= high, and high is off by less than a cell: e^h in the weight of the last prefixes."""
    law = StepLaw.from_pmfs(pmf)
    exact = stationary_tree_value(pmf, capacity)
    for grid in (1e-2, 1e-3):
        value = renewal_bound(law, capacity, grid=grid)
        assert value.low <= exact * (1 + ROUNDING)
        assert exact <= value.high * (1 + ROUNDING)
        assert value.high <= exact * math.exp(grid)


@pytest.mark.parametrize("capacity", [1, 17, 4096])
def test_a_law_of_many_atoms_needs_no_fine_grid(capacity: int) -> None:
    """High is off by the square of the grid over mu; steps rounded down are off by the grid (negative control)."""
    law = StepLaw.from_pmfs(population("softmax"))
    coarse = 0.02
    fine = renewal_bound(law, capacity, grid=coarse / 10).high
    down = StepLaw(np.floor(law.steps / coarse) * coarse, law.weights)
    allowed = coarse**2 / law.mean * fine
    assert 0 <= renewal_bound(law, capacity, grid=coarse).high - fine <= allowed
    assert renewal_bound(down, capacity, grid=coarse).high - fine > allowed


@theorem
@given(pmfs(6), st.integers(1, 300), st.sampled_from([0.02, 0.3, 5.0]))
def test_spreading_lies_between_the_law_and_rounding_down(pmf: Floats, capacity: int, grid: float) -> None:
    """Exact <= high <= the bound with every step rounded down, for any grid, however coarse."""
    law = StepLaw.from_pmfs(pmf)
    value = renewal_bound(law, capacity, grid=grid)
    down = StepLaw(np.floor(law.steps / grid * (1 + 1e-12)) * grid, law.weights)
    whole = int(capacity)
    assert value.low <= value.high <= renewal_bound(down, capacity, grid=grid).high * (1 + ROUNDING)
    assert stationary_tree_value(pmf, whole) <= renewal_bound(law, whole, grid=grid).high * (1 + ROUNDING)
    assert renewal_bound(law, whole, grid=grid).low <= stationary_tree_value(pmf, whole) * (1 + ROUNDING)


# The order of the forms


@theorem
@given(
    st.lists(st.tuples(st.integers(0, 60), st.floats(1e-6, 1)), min_size=1, max_size=6),
    st.integers(1, 5000),
    st.sampled_from([0.01, 0.1, 1.0]),
)
def test_the_numeric_forms_are_below_the_closed_ones(
    atoms: list[tuple[int, float]], capacity: int, grid: float
) -> None:
    """B3' <= B2' and B3' <= B3 <= both forms of B2: Lorden's bound on U, put into the same minimum."""
    weights = np.array([weight for _, weight in atoms])
    law = StepLaw(np.array([cell for cell, _ in atoms]) * grid, weights / weights.sum())
    dual, plain = (renewal_bound(law, capacity, form=form, grid=grid).high for form in ("dual", "plain"))
    closed: dict[Form, float] = {
        form: branching_bound(None, None, capacity, form, step_law=law) for form in ("sharp", "lorden", "best_t")
    }
    assert dual <= plain * (1 + ROUNDING) + OUTWARD
    assert dual <= closed["sharp"] * (1 + ROUNDING)
    assert plain <= min(closed["lorden"], closed["best_t"]) * (1 + ROUNDING)
    assert 0 < dual <= capacity


def test_the_numeric_form_of_the_branching_bound() -> None:
    """The dual value, cut at B2' of the law's moments; moments beside it must be the law's."""
    law = StepLaw.from_pmfs([0.7, 0.2, 0.1])
    value = renewal_bound(law, 64).high
    assert branching_bound(None, None, 64, "numeric", step_law=law) == value
    assert branching_bound(law.mean, law.second_moment, 64, "numeric", step_law=law) == value
    assert value < branching_bound(law.mean, law.second_moment, 64)
    certain = StepLaw.from_pmfs([1.0, 0.0])
    assert branching_bound(None, None, 17, "numeric", step_law=certain) == 17
    assert renewal_bound(certain, 17) == renewal_bound(certain, 17, form="plain")


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
