"""Confidence intervals of a probability and of a mean.

`exact` and `bernstein` hold at their confidence for any number of trials; `student` is an approximation, good for many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from scipy import special, stats

from simulations.counts.moments import Moments
from spectheory.errors import SettingError
from spectheory.intervals import CONFIDENCE


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval, and how often such an interval holds the true value."""

    low: float
    best: float
    high: float
    confidence: float

    @property
    def relative_width(self) -> float:
        """Width over the observed value; infinite where that is 0."""
        return (self.high - self.low) / abs(self.best) if self.best else math.inf


# Probabilities


def exact(successes: int, trials: int, confidence: float = CONFIDENCE) -> Estimate:
    """Clopper and Pearson's interval of a probability: never below its confidence.

    By beta quantiles: scipy's ``binomtest`` searches to 2e-12, too coarse for small probabilities.
    """
    _check(confidence, successes, trials)
    failures, miss = trials - successes, (1 - confidence) / 2
    low = float(special.betaincinv(successes, failures + 1, miss)) if successes else 0.0
    high = float(special.betainccinv(successes + 1, failures, miss)) if failures else 1.0
    return Estimate(low, successes / trials, high, confidence)


def _check(confidence: float, successes: int = 0, trials: int = 1) -> None:
    if not 0 < confidence < 1:
        raise SettingError(f"confidence is {confidence}", limit="must lie in (0, 1)", remedy="use 0.95")
    if not 0 <= successes <= trials or trials < 1:
        raise SettingError(
            f"{successes} successes of {trials} trials", limit="needs 0 <= successes <= trials", remedy="count again"
        )


# Means


def student(moments: Moments, confidence: float = CONFIDENCE) -> Estimate:
    """Student's interval of a mean; exact for normal samples, else an approximation for many."""
    _check(confidence)
    reach = student_reach(moments, 1 - confidence)
    return Estimate(moments.mean - reach, moments.mean, moments.mean + reach, confidence)


def student_reach(moments: Moments, alarm: float) -> float:
    """Half the width of Student's interval that misses the mean with probability `alarm`."""
    _two(moments)
    return float(stats.t.isf(alarm / 2, moments.n - 1)) * math.sqrt(moments.variance / moments.n)


def bernstein(moments: Moments, low: float, high: float, confidence: float = CONFIDENCE) -> Estimate:
    """The empirical Bernstein interval of the mean of samples in [low, high] (maurer2009, Theorem 4, both sides)."""
    _check(confidence)
    reach = bernstein_reach(moments, low, high, 1 - confidence)
    return Estimate(max(low, moments.mean - reach), moments.mean, min(high, moments.mean + reach), confidence)


def bernstein_reach(moments: Moments, low: float, high: float, alarm: float) -> float:
    """Half the width, not cut at the range, of the interval that misses the mean with probability `alarm` or less."""
    _two(moments)
    a, b = Fraction(low), Fraction(high)
    if (a + b) * moments.total - moments.n * a * b < moments.squares:  # the sum of (x - a)(b - x)
        raise SettingError(
            f"samples of mean {moments.mean:.6g} and variance {moments.variance:.3g} leave [{low}, {high}]",
            limit="all must lie in the range",
            remedy="state a wider range",
        )
    log = math.log(4 / alarm)
    return math.sqrt(2 * moments.variance * log / moments.n) + 7 * (high - low) * log / (3 * (moments.n - 1))


def _two(moments: Moments) -> None:
    if moments.n < 2:
        raise SettingError(f"{moments.n} samples", limit="a mean needs 2 for its interval", remedy="run more trials")
