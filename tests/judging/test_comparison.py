"""Counted calls against their laws: what is certain, tails that are no false alarms, and laws that are estimated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import norm, t

from spectheory.errors import ShapeError
from spectheory.judging.comparison import _BEYOND, READINGS, CallLaw, Comparison, _largest_error, compare_calls
from spectheory.prediction.law import law_of_calls, tail
from spectheory.prediction.paths import calls_of_texts


def test_what_is_certain_must_be_equal() -> None:
    comparisons = [compare_calls(count, [CallLaw(3.0, 0.0, 0.0, 3, (1.0,))]) for count in (2, 3, 4)]
    assert [one.z for one in comparisons] == [-math.inf, 0, math.inf]
    assert [one.p for one in comparisons] == [0, 1, 0]
    assert all(one.certain for one in comparisons)


def test_the_law_of_calls_has_the_moments_of_the_theorem() -> None:
    """On drawn survival functions, what reaches past the end included."""
    rng = np.random.default_rng(1)
    for tokens, depth in ((1, 3), (2, 1), (9, 4), (30, 5)):
        survival = np.multiply.accumulate(rng.random((tokens, depth)), axis=1)
        calls, law, count = calls_of_texts(survival, np.array([tokens])), law_of_calls(survival), np.arange(tokens + 1)
        mean = float(law @ count)
        assert math.isclose(law.sum(), 1, rel_tol=1e-12)
        assert math.isclose(mean, calls.expected[0], rel_tol=1e-12)
        assert math.isclose(law @ (count - mean) ** 2, calls.variance[0], rel_tol=1e-9, abs_tol=1e-12)


def test_tails_are_no_false_alarms() -> None:
    """Whatever the law, a tail is below a rate at most so often; here by enumeration, of two texts."""
    rng = np.random.default_rng(2)
    laws = [(1, law / law.sum()) for law in rng.random((2, 6)) ** 4]
    total = np.convolve(laws[0][1], laws[1][1])
    tails = np.array([tail(laws, 2 + count) for count in range(len(total))])
    for rate in (0.01, 0.1, 0.5):
        assert total[tails < rate].sum() <= rate


def test_noise_of_estimates_widens_the_deviation() -> None:
    """By that of the mean of four readings, and by that of one, which its variance lacks: 1 + 0.6 + 4 * 0.6 = 2²."""
    comparisons = [compare_calls(5, [CallLaw(3.0, 1.0, noise, 2, (0.5, 0.0, 0.5))]) for noise in (0.0, 0.6)]
    assert [one.z for one in comparisons] == [2, 1]
    assert [one.of_estimates for one in comparisons] == [0, 0.6**0.5]


# Estimated laws


PICKS = list(itertools.product((0, 1), repeat=READINGS))
"""All ways to draw the readings of a law that is one of two."""
FAR = float(t.ppf(1 - _BEYOND / 2, READINGS - 1))
"""Standard deviations that the error of one text's expectation exceeds as often as `BEYOND` says."""


def of_law(law: Sequence[float], noise: float, count: int) -> Comparison:
    counts = np.arange(len(law))
    calls = float(np.array(law) @ counts)
    variance = float(np.array(law) @ (counts - calls) ** 2)
    return compare_calls(count, [CallLaw(calls, variance, noise, 0, tuple(law))])


def test_tails_of_estimates_are_above_those_of_the_exact_law() -> None:
    """A skewed law, known up to a small error: the normal limit calls what chance often does impossible."""
    law = (0.99, *[0.0] * 9, 0.01)
    exact = [of_law(law, 0.0, count).p for count in (0, 10)]
    tails = [of_law(law, 1e-6, count).p for count in (0, 10)]
    assert exact == [1.0, tail([(0, np.array(law))], 10)]
    assert all(one <= two for one, two in zip(exact, tails, strict=True))
    assert tails[1] == pytest.approx(0.02 + _BEYOND, rel=1e-9)
    limit = 2 * norm.sf(9.9 / of_law(law, 1e-6, 10).deviation)
    assert limit < 1e-9, "the control: what the normal limit says"


def test_estimates_do_not_refute_what_they_cannot_tell() -> None:
    """Within the error that four readings leave, which is Student's, nothing is refuted; far beyond it is."""
    law = (0.0, 0.5, 0.5)
    within, beyond = ((4.5 / FAR) ** 2, (2.0 / FAR) ** 2)
    assert of_law(law, within, 6).p == 1.0
    assert of_law(law, beyond, 6).p == of_law(law, beyond, -4).p == pytest.approx(_BEYOND)


@pytest.mark.parametrize(("texts", "unequal"), [(1, 1), (2, 3), (16, 10)])
def test_the_error_of_estimates_is_as_rare_as_stated(texts: int, unequal: float) -> None:
    """Readings of unequal normal noise: the error exceeds its 1% limit in at most 1.2% of 40,000 runs.

    If it does so in 1% of the runs the test fails with probability 4e-5. The control: the normal limit.
    """
    rng, runs, level = np.random.default_rng(texts), 40_000, 0.01
    spread = np.geomspace(1, unequal, texts)
    readings = rng.normal(0.0, spread[:, None], (runs, texts, READINGS))
    noises = readings.var(axis=2, ddof=1) / READINGS
    errors = np.abs(readings.mean(axis=2).sum(axis=1))
    limits = np.array([_largest_error(list(each), level) for each in noises])
    assert np.mean(errors > limits) <= 0.012
    assert np.mean(errors > norm.ppf(1 - level / 2) * np.sqrt(noises.sum(axis=1))) > 0.012, "the control"


def test_the_variance_of_estimates_has_no_bias() -> None:
    """By enumeration of all readings of a law that is one of two: their means are those of the mean law."""
    laws, counts = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), np.arange(3)
    means = laws @ counts
    variances = laws @ counts**2 - means**2
    truth = laws.mean(axis=0)
    estimates = []
    for picked in PICKS:
        of = list(picked)
        noise = float(means[of].var(ddof=1)) / READINGS
        estimates.append(CallLaw(float(means[of].mean()), float(variances[of].mean()), noise, 0, (1.0,)))
    spread, alone = np.mean([one.spread for one in estimates]), np.mean([one.variance for one in estimates])
    exact = truth @ counts**2 - (truth @ counts) ** 2
    assert spread == pytest.approx(exact, rel=1e-12)
    assert alone < 0.9 * exact, "the control: without the error of the means"


def test_readings_make_one_law() -> None:
    """By enumeration of all four readings of a law that is one of two, each P(tau >= i): every part is unbiased."""
    kinds = (np.full((4, 2), [0.7, 0.2]), np.full((4, 2), [0.4, 0.35]))
    exact = [law_of_calls(survival) for survival in kinds]
    means = [float(law @ np.arange(len(law))) for law in exact]
    truth, made = np.mean(exact, axis=0), [CallLaw.of([kinds[i] for i in each]) for each in PICKS]
    counts = np.arange(len(truth))
    laws = [np.pad(one.law, (one.least, len(truth) - one.least - len(one.law))) for one in made]
    assert np.mean(laws, axis=0) == pytest.approx(truth, rel=1e-12, abs=1e-15)
    assert np.mean([one.calls for one in made]) == pytest.approx(truth @ counts, rel=1e-12)
    assert np.mean([one.spread for one in made]) == pytest.approx(truth @ counts**2 - (truth @ counts) ** 2, rel=1e-12)
    errors = [one.calls - truth @ counts for one in made]
    assert np.mean([one.noise for one in made]) == pytest.approx(np.mean(np.square(errors)), rel=1e-12)
    assert abs(means[0] - means[1]) > 0.1, "the control: readings differ"
    with pytest.raises(ShapeError, match="2 readings"):
        CallLaw.of(kinds)
