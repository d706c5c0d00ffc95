"""What simulations count: exact tallies, the quantities read from them, and their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from operator import lshift
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from spectheory.errors import SettingError, ShapeError
from spectheory.intervals import CONFIDENCE

# Sums and sums of squares of real samples without rounding: every float is a fraction, and fractions add exactly


@dataclass(frozen=True)
class Moments:
    """Number, sum and sum of squares of real samples, exact."""

    n: int = 0
    total: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)

    @classmethod
    def of(cls, samples: ArrayLike) -> Moments:
        """The moments of samples ``[n]``."""
        values = np.asarray(samples, dtype=np.float64).ravel()
        if not np.all(np.isfinite(values)):
            raise SettingError("a sample is not finite", limit="moments need numbers", remedy="count such trials apart")
        return cls(values.size, *_exact_sums(values))

    @classmethod
    def of_histogram(cls, counts: ArrayLike) -> Moments:
        """The moments of samples 0, 1, 2, ... that occurred ``counts[i]`` times, ``[n]``."""
        numbers = [int(count) for count in np.asarray(counts)]
        total = sum(value * count for value, count in enumerate(numbers))
        squares = sum(value * value * count for value, count in enumerate(numbers))
        return cls(sum(numbers), Fraction(total), Fraction(squares))

    def __add__(self, other: Moments) -> Moments:
        """The moments of both samples together."""
        return Moments(self.n + other.n, self.total + other.total, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """The mean, rounded once."""
        return float(self.total / self.n)

    @property
    def variance(self) -> float:
        """The unbiased variance, rounded once; it needs two samples."""
        return float((self.squares - self.total**2 / self.n) / (self.n - 1))


def _exact_sums(values: NDArray[np.float64]) -> tuple[Fraction, Fraction]:
    """Sum and sum of squares of floats: as multiples of the smallest one's unit they are whole numbers."""
    mantissas, exponents = np.frexp(values)
    least = int(exponents.min(initial=0))
    shifts, whole = (exponents - least).tolist(), (mantissas * 2.0**53).astype(np.int64).tolist()
    multiples, unit = list(map(lshift, whole, shifts)), Fraction(2) ** (least - 53)
    return sum(multiples) * unit, sum(each * each for each in multiples) * unit**2


# Exact sums, the same in any order and for any number of workers


Counts = NDArray[np.int64]
Runs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Tally:
    """What a number of trials counted; tallies of different batches add up exactly, in any order.

    - ``counts``, ``[.]``: named int64 vectors, e.g. a histogram of ranks; read-only.
    - ``moments``: named moments of real quantities.
    - ``batches``: which batches are in it, as runs of batch numbers; empty for trials outside any.

    Examples
    --------
    >>> one, two = Tally.of(3, counts={"heads": [2]}), Tally.of(4, counts={"heads": [1]})
    >>> both = one.as_batch(0) + two.as_batch(1)
    >>> both.trials, both.counts["heads"], both.batches
    (7, array([3]), ((0, 2),))
    """

    trials: int = 0
    counts: Mapping[str, Counts] = field(default_factory=dict)
    moments: Mapping[str, Moments] = field(default_factory=dict)
    batches: Runs = ()

    @classmethod
    def of(
        cls,
        trials: int,
        *,
        counts: Mapping[str, ArrayLike] | None = None,
        samples: Mapping[str, ArrayLike | Moments] | None = None,
    ) -> Tally:
        """The tally of finished trials: vectors of counts, and samples of real quantities or their moments."""
        if trials < 1:
            raise SettingError(f"trials is {trials}", limit="must be >= 1", remedy="make some")
        vectors = {name: _vector(name, vector) for name, vector in (counts or {}).items()}
        moments = {n: v if isinstance(v, Moments) else Moments.of(v) for n, v in (samples or {}).items()}
        return cls(trials, vectors, moments)

    @property
    def size(self) -> int:
        """How many batches it has."""
        return sum(end - first for first, end in self.batches)

    def as_batch(self, batch: int) -> Tally:
        """The same tally as that of one batch."""
        return Tally(self.trials, self.counts, self.moments, ((batch, batch + 1),))

    def __add__(self, other: Tally) -> Tally:
        """Both tallies together."""
        if not (self.trials and other.trials):
            return self if self.trials else other
        shapes = [{name: len(t.counts[name]) for name in t.counts} for t in (self, other)]
        if shapes[0] != shapes[1] or set(self.moments) != set(other.moments):
            raise ShapeError(
                f"tallies count {shapes[0]} and {shapes[1]}, with moments {[*self.moments]} and {[*other.moments]}",
                limit="the same names and lengths add up",
                remedy="let a simulator count the same in every batch",
            )
        return Tally(
            self.trials + other.trials,
            {name: _added(name, self.counts[name], other.counts[name]) for name in self.counts},
            {name: self.moments[name] + other.moments[name] for name in self.moments},
            _joined(self.batches, other.batches),
        )

    def __eq__(self, other: object) -> bool:
        """Whether all numbers and batches are equal."""
        return isinstance(other, Tally) and self.as_dict() == other.as_dict() and self.batches == other.batches

    __hash__ = None  # type: ignore[assignment]

    def as_dict(self) -> dict[str, Any]:
        """The numbers, JSON-ready and exact, names in order; not the batches."""
        moments = {name: self.moments[name] for name in sorted(self.moments)}
        return {
            "trials": self.trials,
            "counts": {name: self.counts[name].tolist() for name in sorted(self.counts)},
            "moments": {name: [m.n, str(m.total), str(m.squares)] for name, m in moments.items()},
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Tally:
        """The tally of such numbers."""
        tally = cls.of(fields["trials"], counts=fields["counts"])
        moments = {name: Moments(n, Fraction(a), Fraction(b)) for name, (n, a, b) in fields["moments"].items()}
        return cls(tally.trials, tally.counts, moments)


def _vector(name: str, counts: ArrayLike) -> Counts:
    vector = np.array(counts)
    if vector.ndim != 1:
        raise ShapeError(f"counts {name!r} have the shape {vector.shape}", limit="must be [n]", remedy="flatten them")
    if vector.dtype.kind not in "iu" or (vector.size and (vector.min() < 0 or vector.max() >= 2**63)):
        raise SettingError(
            f"counts {name!r} are {vector.dtype}s or negative", limit="must be integers >= 0", remedy="use samples"
        )
    return _read_only(vector.astype(np.int64))


def _added(name: str, one: Counts, other: Counts) -> Counts:
    both = one + other
    if np.any(both < 0):
        raise SettingError(f"counts {name!r} pass 2^63", limit="must fit 64 bits", remedy="use fewer trials")
    return _read_only(both)


def _read_only(vector: Counts) -> Counts:
    vector.flags.writeable = False
    return vector


def _joined(one: Runs, other: Runs) -> Runs:
    """The union of runs of batch numbers."""
    union: list[tuple[int, int]] = []
    for first, end in sorted(one + other):
        if union and first < union[-1][1]:
            raise SettingError(f"batch {first} is in both tallies", limit="a batch counts once", remedy="add others")
        if union and first == union[-1][1]:
            union[-1] = (union[-1][0], end)
        else:
            union.append((first, end))
    return tuple(union)


# Confidence intervals: `exact` and `bernstein` hold for any number of trials; `student` is good for many


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


# What a tally is asked for: a probability or a mean


@dataclass(frozen=True)
class Share:
    """The probability that a trial is counted in ``counts[name]`` at an index, or at one of several.

    A trial must be counted there at most once.

    Examples
    --------
    >>> Share("heads").estimate(Tally.of(4, counts={"heads": [1]})).best
    0.25
    """

    name: str
    index: int | tuple[int, ...] = 0

    def successes(self, tally: Tally) -> int:
        """The count."""
        vector = _named("counts", tally.counts, self.name)
        places = self.index if isinstance(self.index, tuple) else (self.index,)
        if any(not 0 <= place < len(vector) for place in places):
            raise SettingError(f"index is {self.index}", limit=f"{self.name} has {len(vector)}", remedy="use another")
        return sum(int(vector[place]) for place in set(places))

    def estimate(self, tally: Tally, confidence: float = CONFIDENCE) -> Estimate:
        """Its exact interval."""
        return exact(self.successes(tally), tally.trials, confidence)


@dataclass(frozen=True)
class Mean:
    """The mean of ``moments[name]``; with a range that holds all samples its interval is certain, else Student's.

    Examples
    --------
    >>> Mean("time").estimate(Tally.of(3, samples={"time": [1.0, 2.0, 6.0]})).best
    3.0
    """

    name: str
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None) or (self.low is not None and not self.low < self.high):  # type: ignore[operator]
            raise SettingError(
                f"the range is [{self.low}, {self.high}]", limit="needs low < high, or neither", remedy="state both"
            )

    def moments(self, tally: Tally) -> Moments:
        """The moments."""
        return _named("moments", tally.moments, self.name)

    def estimate(self, tally: Tally, confidence: float = CONFIDENCE) -> Estimate:
        """Its interval."""
        if self.low is None or self.high is None:
            return student(self.moments(tally), confidence)
        return bernstein(self.moments(tally), self.low, self.high, confidence)


Quantity = Share | Mean


def _named(what: str, known: Any, name: str) -> Any:
    if name not in known:
        raise SettingError(f"no {what} are called {name!r}", limit=f"there are {sorted(known)}", remedy="use another")
    return known[name]
