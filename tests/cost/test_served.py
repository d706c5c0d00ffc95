"""Times of a server's steps: fitted laws against known ones, their intervals, and runs that say too little."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from spectheory.cost.served import ServedCost, ServedFit, StepTime, fit_server
from spectheory.drafting import Batch, Chain
from spectheory.errors import SettingError
from tests.made_up import each
from tests.toy_server import affine

LAW = affine(8e-3, 2e-4, 1e-7, 1e-3, 9e-4, 1.5e-4, 2e-8)
RUNS = tuple(
    StepTime(b, context, k, LAW(b, context, k)) for b in (1, 4, 16, 64) for context in (100, 2000) for k in (0, 1, 3, 5)
)
ROUNDING = 1e-9
NOISE = 0.03


def noisy(rng: np.random.Generator, runs: tuple[StepTime, ...] = RUNS) -> list[StepTime]:
    return [replace(run, seconds=run.seconds * (1 + NOISE * float(rng.standard_normal()))) for run in runs]


def test_exact_runs_give_the_law_back() -> None:
    fit = fit_server(RUNS)
    assert fit.coefficients == pytest.approx(
        (8e-3, 2e-4, 1e-7, 1e-3, 9e-4, 1.5e-4, 2e-8, 0.0, 0.0), rel=1e-6, abs=1e-12
    )
    assert fit.error < ROUNDING
    assert max(map(abs, fit.left_out)) < ROUNDING
    assert (fit.ks, fit.batches, fit.contexts) == ((1, 2, 3, 4, 5), (1, 64), (100, 2000))
    cost = ServedCost(fit, 10, 500)
    assert cost.target_step().best == pytest.approx(LAW(10, 500, 0))
    assert cost.call(Chain(2)).best == pytest.approx(LAW(10, 500, 2)), "between the lengths that ran"


def covered(fit: ServedFit, width: float = 1.0) -> bool:
    """Whether the interval of one step, between the runs, holds the true time."""
    interval, true = fit.seconds(10, 700, 2), LAW(10, 700, 2)
    return abs(true - interval.best) <= width * (interval.high - interval.best)


def test_intervals_hold_as_often_as_stated() -> None:
    """600 sweeps of 32 runs with 3% noise; at a true coverage of 95% fewer than 90.5% hold with probability 2e-6.

    A coverage below 88% is missed with probability 0.02. Negative control: intervals of half the width.
    """
    rng = np.random.default_rng(3)
    fits = [fit_server(noisy(rng), law="affine") for _ in range(600)]
    assert np.mean([covered(fit) for fit in fits]) >= 0.905
    assert np.mean([covered(fit, 0.5) for fit in fits]) < 0.905
    assert np.mean([fit.error for fit in fits]) == pytest.approx(NOISE, rel=0.1)


def test_runs_left_out_show_an_error_that_residuals_hide() -> None:
    """One run of 16 that is 30% off: the fit without it misses it by about as much."""
    wrong = [replace(run, seconds=1.3 * run.seconds) if i == 5 else run for i, run in enumerate(RUNS)]
    fit = fit_server(wrong)
    assert int(np.argmax(np.abs(fit.left_out))) == 5
    assert fit.left_out[5] == pytest.approx(1 / 1.3 - 1, abs=1e-6)
    assert max(abs(error) for i, error in enumerate(fit.left_out) if i != 5) < 0.2


def test_a_run_that_alone_determines_a_term_has_no_error() -> None:
    runs = [run for run in RUNS if run.context == 100] + [next(run for run in RUNS if run.context == 2000 and run.k)]
    runs += [next(run for run in RUNS if run.context == 2000 and not run.k)]
    assert [math.isnan(error) for error in fit_server(runs).left_out] == [run.context == 2000 for run in runs]


def test_one_length_alone_plans_no_other() -> None:
    fit = fit_server([run for run in RUNS if run.k in (0, 3)])
    assert fit.ks == (3,)
    assert ServedCost(fit, 4, 100).call(Chain(3)).best == pytest.approx(LAW(4, 100, 3))
    with pytest.raises(SettingError, match="k = 3 alone"):
        ServedCost(fit, 4, 100).call(Chain(2))


def test_errors_are_those_of_the_interval() -> None:
    """Directions are independent: their ends, added in squares, give the interval of a time."""
    cost = ServedCost(fit_server(noisy(np.random.default_rng(1))), 4, 300)
    halves = [(high.call(Chain(3)).best - low.call(Chain(3)).best) / 2 for low, high in cost.errors()]
    call = cost.call(Chain(3))
    assert math.sqrt(sum(half**2 for half in halves)) == pytest.approx(call.high - call.best, rel=1e-6)


def test_a_term_at_its_bound_adds_nothing_to_intervals() -> None:
    """The fit is on the side of 0 where the term does not vary."""
    rng = np.random.default_rng(3)
    fits = [fit_server(noisy(rng)) for _ in range(5)]
    assert {fit.coefficients[7] > 0 for fit in fits} == {False, True}
    for fit in fits:
        assert np.array_equal(np.any(fit.directions, axis=0), np.array(fit.coefficients) > 0)


def only(keep: Callable[[StepTime], bool]) -> list[StepTime]:
    return [run for run in RUNS if keep(run)]


@each(
    "runs, words",
    [
        ([], "runs without speculation are missing (there are none): each kind is needed at two batches; add runs"),
        (only(lambda r: r.k == 0), "runs with speculation are missing (there are none)"),
        (only(lambda r: r.k == 0 or r.batch == 4), "runs with speculation are missing (there are some at 4 alone)"),
        (only(lambda r: r.k > 0 or r.batch == 1), "runs without speculation are missing (there are some at 1 alone)"),
        (only(lambda r: r.k in (0, 1) and r.context == 100 and r.batch < 16), "4 runs are given for 4 terms"),
        (
            only(lambda r: (r.batch, r.context) in ((1, 100), (4, 2000))),
            "do not determine the times of a step, a sequence",
        ),
        ([replace(r, seconds=r.seconds * (1 + 2 * (i % 3 == 0))) for i, r in enumerate(RUNS)], "the runs scatter by"),
    ],
)
def test_too_few_runs_say_which_are_missing(runs: list[StepTime], words: str) -> None:
    with pytest.raises(SettingError) as refused:
        fit_server(runs)
    assert words in str(refused.value)


@each(
    "make, words",
    [
        (lambda: StepTime(0, 1, 0, 1.0), "needs batch >= 1"),
        (lambda: StepTime(1, 1, 0, math.nan), "seconds > 0"),
        (lambda: ServedCost(fit_server(RUNS), 128, 100), "batch is 128: runs cover 1 to 64"),
        (lambda: ServedCost(fit_server(RUNS), 4, 5000), "context is 5000: runs cover 100 to 2000"),
        (lambda: ServedCost(fit_server(RUNS), 4, 100).call(Chain(6)), "known are drafted chains, 1..5"),
        (lambda: ServedCost(fit_server(RUNS), 4, 100).call(Batch(2)), "was not timed with batch"),
    ],
)
def test_what_was_not_timed_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(SettingError) as refused:
        make()
    assert words in str(refused.value)
