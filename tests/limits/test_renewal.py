"""B3, B3': the renewal recursion against convolution powers, exact trees and closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import Floats, pmfs, theorem
from spectheory.limits import (
    StepLaw,
    branching_bound,
    renewal_bound,
    stationary_tree_value,
)
from spectheory.limits.branching import Form
from spectheory.limits.renewal import RenewalForm
from tests.limits.renewal_cases import ROUNDING, population
from tests.made_up import each

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
