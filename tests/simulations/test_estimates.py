"""Intervals and verdicts, mostly without chance: for few trials every outcome is enumerated with its probability.

The two tests that draw (a coin and exponential times, 20,000 trials each) compare at `ALARM` and say what they see.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from simulations.counts import Mean, Moments, Share, Tally, bernstein, exact, student
from simulations.experiments.collect import Stop, run_batch
from simulations.verdicts.predictions import POWER, accepted_counts, agrees, known_variance_reach
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from tests import sim_toys
from tests.sim_toys import P, coins

ALARM = 1e-9
ROUNDING = 1e-12
"""Sums of at most 200 binomial probabilities, each right to about 1e-14."""

EPS = float(np.finfo(np.float64).eps)

SHARES = (0.001, 0.03, 0.2, 0.5, 0.71, 0.99)


def counted(heads: int, trials: int) -> Tally:
    return Tally.of(trials, counts={"heads": [heads]})


def probability(trials: int, p: float, holds: Any) -> float:
    """Probability that a number of successes has a property."""
    return math.fsum(float(stats.binom.pmf(k, trials, p)) for k in range(trials + 1) if holds(k))


# Intervals


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_exact_intervals_cover(trials: int, confidence: float) -> None:
    ends = [exact(k, trials, confidence) for k in range(trials + 1)]
    for p in SHARES:
        assert probability(trials, p, lambda k, p=p: ends[k].low <= p <= ends[k].high) >= confidence - ROUNDING


def test_exact_intervals_are_scipys() -> None:
    """As far as those go; and where they do not, the ends are where the binomial tails say."""
    for k, n in ((0, 9), (1, 9), (9, 9), (5, 10**6)):
        expected = stats.binomtest(k, n).proportion_ci(0.9, "exact")
        interval = exact(k, n, 0.9)
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-11)
    interval = exact(3, 10**13, 0.9)
    assert stats.poisson.sf(2, interval.low * 10**13) == pytest.approx(0.05, rel=1e-9)
    assert stats.poisson.cdf(3, interval.high * 10**13) == pytest.approx(0.05, rel=1e-9)


def test_a_narrower_interval_would_be_seen() -> None:
    """Negative control: the normal interval of one share covers too seldom."""

    def holds(k: int) -> bool:
        return abs(k / 40 - 0.03) <= 1.96 * math.sqrt(k / 40 * (1 - k / 40) / 40)

    assert probability(40, 0.03, holds) < 0.75


def test_student_is_scipys() -> None:
    samples = np.random.default_rng(3).exponential(size=30)
    interval = student(Moments.of(samples), 0.9)
    expected = stats.ttest_1samp(samples, 0.0).confidence_interval(0.9)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


@pytest.mark.parametrize("trials", [2, 30, 200])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_bernstein_intervals_cover(trials: int, confidence: float) -> None:
    """Samples 0 and 1, all numbers of ones; an honest bound covers more often than it says."""
    ends = [bernstein(Moments(trials, sum_, sum_), 0.0, 1.0, confidence) for sum_ in map(_fraction, range(trials + 1))]
    for p in SHARES:
        assert probability(trials, p, lambda k, p=p: ends[k].low <= p <= ends[k].high) >= confidence - ROUNDING


def _fraction(n: int) -> Any:
    return Moments.of(np.ones(n)).total


def test_bernstein_knows_small_variances() -> None:
    """Samples that hardly vary: far narrower than their range allows, the point of using the variance."""
    samples = np.full(10_000, 0.5)
    samples[0] = 0.6
    interval = bernstein(Moments.of(samples), 0.0, 1.0)
    assert interval.high - interval.low < 0.003
    hoeffding = 2 * math.sqrt(math.log(2 / 0.05) / (2 * 10_000))
    assert interval.high - interval.low < hoeffding / 8


def test_samples_outside_their_range_are_noticed() -> None:
    with pytest.raises(SettingError, match="state a wider range"):
        bernstein(Moments.of([0.0, 1.1, 0.0, 1.1]), 0.0, 1.0)
    assert bernstein(Moments.of([0.0, 1.0, 0.0, 1.0]), 0.0, 1.0).best == 0.5


def test_looking_after_every_batch() -> None:
    """A fair coin in batches of 5, stopped when a 95% interval is narrow: every path with its probability.

    The rule's interval keeps its word where it stops. Negative control: the plain one, good for a number of trials
    fixed beforehand, misses 5.6% of the time.
    """
    stop = Stop(trials=150, width=0.5, of=Share("heads"))
    assert missed(stop, lambda tally: stop.interval(tally).low, lambda tally: stop.interval(tally).high) < 0.05
    plain = missed(
        stop, lambda tally: exact(_heads(tally), tally.trials).low, lambda t: exact(_heads(t), t.trials).high
    )
    assert 0.055 < plain < 0.058


def _heads(tally: Tally) -> int:
    return Share("heads").successes(tally)


def missed(stop: Stop, low: Any, high: Any) -> float:
    """Probability that an interval misses 1/2 where the rule stops."""
    paths, wrong = {0: 1.0}, 0.0
    for trials in range(5, stop.trials + 1, 5):
        reached: dict[int, float] = {}
        for heads, share in paths.items():
            for more in range(6):
                reached[heads + more] = reached.get(heads + more, 0.0) + share * math.comb(5, more) / 32
        paths = {}
        for heads, share in reached.items():
            tally = Tally(trials, counted(heads, trials).counts, batches=((0, trials // 5),))
            if not stop.met(tally):
                paths[heads] = share
            elif not low(tally) <= 0.5 <= high(tally):
                wrong += share
    return wrong


# Verdicts


@pytest.mark.parametrize("trials", [1, 10, 200])
@pytest.mark.parametrize("alarm", [0.3, 0.05, 1e-9])
def test_false_alarms_are_as_rare_as_stated(trials: int, alarm: float) -> None:
    """Rejection probability of a right prediction, summed over all outcomes; and no tail could give more."""
    for p in SHARES:
        verdicts = [bool(agrees(counted(k, trials), Share("heads"), p, alarm)) for k in range(trials + 1)]
        assert probability(trials, p, lambda k, verdicts=verdicts: not verdicts[k]) <= alarm * (1 + ROUNDING)
        fewest, most = accepted_counts(trials, (p, p), alarm)
        assert verdicts == [fewest <= k <= most for k in range(trials + 1)]
        assert stats.binom.cdf(fewest, trials, p) > alarm / 2
        assert stats.binom.sf(most - 1, trials, p) > alarm / 2


@pytest.mark.parametrize("alarm", [0.05, 1e-6])
def test_errors_of_the_stated_size_are_seen(alarm: float) -> None:
    """Were the truth that far away, all outcomes that reject add up to the stated power; half as far, to less."""
    for p in (0.2, 0.5, 0.71):
        agreement = agrees(counted(100, 200), Share("heads"), p, alarm)
        fewest, most = accepted_counts(200, (p, p), alarm)
        for error in (-agreement.below, agreement.above):
            for size, seen in ((1.0, POWER), (0.9, None)):
                power = probability(200, p + size * error, lambda k, low=fewest, high=most: k < low or k > high)
                assert power >= POWER - 1e-9 if seen else power < POWER


def test_errors_of_a_mean_vary_as_the_samples_do() -> None:
    """A predicted variance is the prediction's own. Were the truth that far off, samples of 0 and 1 would be seen.

    Normal tails are within .005 of the binomial ones; control: with the predicted spread the power is below .8.
    """
    n, variance = 10_000, 0.01
    samples = Tally.of(n, samples={"x": np.repeat([0.0, 1.0], n // 2)})
    agreement = agrees(samples, Mean("x", 0.0, 1.0), 0.5, 0.05, variance)
    reach = known_variance_reach(n, variance, 0.5, 0.05)
    narrow = reach + stats.norm.ppf(POWER) * math.sqrt(variance / n)
    for above, least, most in ((agreement.above, POWER - 0.005, 1.0), (narrow, 0.0, 0.8)):
        assert least < stats.binom.sf(math.floor(n * (0.5 + reach)), n, 0.5 + above) < most


def test_what_cannot_be_seen_is_said() -> None:
    agreement = agrees(counted(0, 10), Share("heads"), 0.05, 1e-9)
    assert agreement.below == math.inf
    assert agreement.above < 1
    everything = agrees(counted(1, 1), Share("heads"), 0.5, 1e-9)
    assert (everything.below, everything.above) == (math.inf, math.inf)
    assert everything


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_predictions(p: float) -> None:
    """One trial against a certain prediction rejects it at any rate; rare ones are judged by their tail."""
    assert agrees(counted(int(p) * 9, 9), Share("heads"), p, 1e-300)
    agreement = agrees(counted(1, 9), Share("heads"), p, 1e-300)
    assert not agreement
    assert abs(agreement.z) == math.inf
    assert agrees(counted(1, 10**10), Share("heads"), 1e-17, 1e-9), "a chance of 1e-7"
    assert not agrees(counted(1, 10**6), Share("heads"), 1e-17, 1e-9), "a chance of 1e-11"


def test_a_prediction_may_be_a_range() -> None:
    low, high = Interval(0.2, 0.2, 0.3, "bound"), Interval(0.55, 0.6, 0.7, "bound")
    assert agrees(counted(250, 1000), Share("heads"), low, ALARM)
    assert agrees(counted(250, 1000), Share("heads"), low, ALARM).z == 0
    assert not agrees(counted(250, 1000), Share("heads"), high, ALARM)
    with pytest.raises(SettingError, match="statistical"):
        agrees(counted(1, 2), Share("heads"), Interval(0.1, 0.2, 0.3, "statistical"), ALARM)


def test_rounding_of_a_mean_is_no_disagreement() -> None:
    """Equal samples have no spread; some units in the last place are nothing, on both sides and at any scale."""
    for mean in (0.1, -3.7e200, 1e-200):
        same = Tally.of(100, samples={"x": [mean] * 100})
        for units in (-20, 0, 20):
            agreement = agrees(same, Mean("x"), mean * (1 + units * EPS), ALARM)
            assert agreement, agreement
            assert agreement.z == 0
        # Negative control: more than rounding.
        for units in (-100, 100):
            agreement = agrees(same, Mean("x"), mean * (1 + units * EPS), ALARM)
            assert not agreement
            assert math.isinf(agreement.z)
    assert agrees(same, Mean("x"), Interval(0.0, 1e-200 * (1 - EPS), 1e-200 * (1 - EPS), "bound"), ALARM)
    assert not agrees(Tally.of(9, samples={"x": [0.0] * 9}), Mean("x"), 1e-300, ALARM), "0 has no rounding"


# The coin


@cache
def tossed() -> Tally:
    batches = [run_batch(coins(), batch, sim_toys.__name__) for batch in range(100)]
    return sum((each for each in batches if isinstance(each, Tally)), Tally())


def test_the_coin_is_what_it_is() -> None:
    """20,000 trials: errors of 0.028 of the share and of 0.062 of the mean are all but sure to be seen."""
    assert tossed().trials == 20_000
    share, mean = agrees(tossed(), Share("heads"), P, ALARM), agrees(tossed(), Mean("time"), 1.0, ALARM)
    assert share, str(share)
    assert mean, str(mean)
    assert max(share.below, share.above) < 0.028
    assert max(mean.below, mean.above) < 0.062
    assert agrees(tossed(), Mean("time", 0.0, 40.0), 1.0, ALARM), "times beyond 37 do not exist: 2^-53 is the least"


def test_a_wrong_coin_is_caught() -> None:
    """Negative control: predictions just as wrong as the agreement says it would see."""
    share, mean = agrees(tossed(), Share("heads"), P, ALARM), agrees(tossed(), Mean("time"), 1.0, ALARM)
    ranged = agrees(tossed(), Mean("time", 0.0, 40.0), 1.0, ALARM)
    for wrong in (P + share.below * 1.1, P - share.above * 1.1):
        assert not agrees(tossed(), Share("heads"), wrong, ALARM)
    for quantity, agreement in ((Mean("time"), mean), (Mean("time", 0.0, 40.0), ranged)):
        for wrong in (1 + agreement.below * 1.1, 1 - agreement.above * 1.1):
            assert not agrees(tossed(), quantity, wrong, ALARM)
