"""Intervals that hold although measuring stops when they are narrow: exact for small numbers, and by simulation."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from spectheory.measure.rounds import LEAST_REPEATS, LOOKS, Rounds, median_at, miss_rate, rank_at

Floats = NDArray[np.float64]
RUNS = 20_000
FALSE_ALARM = 1e-7
"""Of one coverage; there are four."""


@pytest.mark.parametrize("last", [8, 11, 13])
def test_the_chance_to_miss_by_counting_every_case(last: int) -> None:
    """All signs of so many values around their median, each as likely; intervals at the looks before it and at it."""
    ranks = {n: rank_at(n, last=False) for n in LOOKS if n < last} | {last: rank_at(last, last=True)}
    missed = 0
    for signs in itertools.product((0, 1), repeat=last):
        below = {n: sum(signs[:n]) for n in ranks}
        missed += any(not rank <= below[n] <= n - rank for n, rank in ranks.items())
    assert miss_rate(last, ranks[last]) == pytest.approx(missed / 2**last, rel=1e-12)


def test_ranks_are_as_deep_as_the_error_allows() -> None:
    for n in (*range(LEAST_REPEATS, 45), 101):
        rank = rank_at(n, last=True)
        assert miss_rate(n, rank) <= 0.05 < miss_rate(n, rank + 1)
        assert rank <= binom.ppf(0.025, n, 0.5), "an interval of its own, without looks before, is no wider"
    assert rank_at(LEAST_REPEATS - 1, last=True) == 0
    assert all(1 <= rank_at(n, last=False) <= rank_at(n, last=True) for n in LOOKS)
    assert rank_at(LOOKS[0], last=True) == binom.ppf(0.025, LOOKS[0], 0.5), "there is no look before the first"


def noisy(shape: tuple[int, int], spread: float, rng: np.random.Generator) -> Floats:
    """Ratios around a median of 1 with a skewed law; now and then something else delays a pass, or the plain step."""
    ratios = np.exp(spread * rng.gumbel(size=shape) - spread * -np.log(np.log(2)))
    delayed = rng.random(shape) < 0.05
    return np.where(delayed, ratios ** rng.choice([-30.0, 30.0], size=shape), ratios)


def coverage(values: Floats, width: float, rank: Callable[[int, bool], int], looks: tuple[int, ...]) -> float:
    """How often the interval contains the median 1, where a run ends at the first look that finds it narrow."""
    inside, going = np.zeros(len(values), dtype=bool), np.ones(len(values), dtype=bool)
    for n in looks:
        ordered = np.sort(values[:, :n], axis=1)
        ends = rank(n, n == looks[-1])
        low, high = ordered[:, ends - 1], ordered[:, n - ends]
        ended = going & ((high - low <= width * np.median(ordered, axis=1)) | (n == looks[-1]))
        inside |= ended & (low <= 1) & (high >= 1)
        going &= ~ended
    return float(inside.mean())


@pytest.mark.parametrize("spread", [0.005, 0.02, 0.04, 0.06])
def test_coverage_when_a_narrow_interval_ends_the_run(spread: float) -> None:
    """At least 0.95, whatever the noise. The control looks after every round, each time as if for the first."""
    values = noisy((RUNS, LOOKS[-1]), spread, np.random.default_rng(round(1e4 * spread)))
    slack = (binom.ppf(FALSE_ALARM, RUNS, 0.95) - 1) / RUNS
    assert coverage(values, 0.05, lambda n, last: rank_at(n, last=last), LOOKS) > slack
    control = coverage(values, 0.05, lambda n, last: int(binom.ppf(0.025, n, 0.5)), tuple(range(6, LOOKS[-1] + 1)))
    if spread >= 0.04:  # with less noise the first look is narrow, and an interval of so few values is too wide
        assert control < slack, "an error of 0.01 is seen"


def test_rounds_end_as_in_the_simulation() -> None:
    """The rule of `Rounds`, a pass at a time, against the rule on whole arrays."""
    values, ends = noisy((60, LOOKS[-1]), 0.03, np.random.default_rng(5)), set()
    for run in values:
        rounds = Rounds([("draft", 1)], 0.1, LOOKS[-1])
        for ratio in run:
            if not rounds.due(left=1e9):
                break
            rounds.add({("target", 1): 0.5, ("draft", 1): 0.5 * float(ratio)})
        n = rounds.count(("draft", 1))
        narrow = [look for look in LOOKS if wide(run[:look]) <= 0.1]
        assert n == (narrow[0] if narrow else LOOKS[-1])
        assert rounds.stopped == ("width" if narrow else "repeats")
        assert rounds.medians()["draft", 1] == median_at(run[:n], last=n == LOOKS[-1]) * 0.5
        ends.add(n)
    assert len(ends) > 3


def wide(values: Floats) -> float:
    found = median_at(values, last=len(values) == LOOKS[-1])
    return (found.high - found.low) / found.best
