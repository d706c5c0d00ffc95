"""What theory says a simulation counts, and the comparison of the two at a stated rate of false alarms.

Simulators know nothing of the closed forms; the two meet here. A predictor is a function of a task's parameters that
is registered under the simulator's name. A verdict says the smallest error that would be seen.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from scipy import special, stats

from simulations.counts import Estimate, Mean, Quantity, Share, Tally, bernstein_reach, student_reach
from simulations.experiments.tasks import Task
from spectheory.errors import SettingError
from spectheory.intervals import Interval

# Whether a tally agrees with a prediction


ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Relative: samples and predictions are sums of products of floats, and a mean this close to a prediction is there."""

POWER = 0.99
"""An error of the size called smallest is seen with this probability."""


@dataclass(frozen=True)
class Agreement:
    """The verdict of a comparison; true where it is one of agreement.

    - ``z``: standard errors from the nearest predicted value to the observed one; of that value for a probability, of
      the samples for a mean.
    - ``alarm``: probability that a right prediction is rejected, at most (for a mean without a range: about).
    - ``below``, ``above``: the smallest errors that would be seen with probability `POWER`, were the true value that
      far below or above; infinite if none would. Exact for a share; for a mean about, from the spread that was
      observed.
    """

    agrees: bool
    observed: float
    predicted: tuple[float, float]
    z: float
    alarm: float
    below: float
    above: float

    def __bool__(self) -> bool:
        """Whether the prediction stands."""
        return self.agrees


def agrees(
    tally: Tally, quantity: Quantity, predicted: float | Interval, alarm: float, variance: float | None = None
) -> Agreement:
    """Compare a tally with a prediction made without it.

    The number of trials must not depend on what was counted: compare tallies of a fixed number of trials.

    - ``quantity``: what is predicted: shares are judged by exact binomial tails, means by the empirical Bernstein bound
      where they have a range, else by Student's approximation. A distance that is rounding alone, at most `ROUNDING` of
      the mean or the prediction, is none: samples that are all equal have a spread of 0.
    - ``predicted``: the prediction, or the range it is certain to lie in.
    - ``variance``: that of a sample, if the prediction states it too: a mean with a range is then judged by Bernstein's
      inequality with it, which sees smaller errors.
    """
    if not 0 < alarm < 1:
        raise SettingError(f"alarm is {alarm}", limit="must lie in (0, 1)", remedy="use 1e-9")
    if isinstance(predicted, Interval) and predicted.kind == "statistical":
        raise SettingError("the prediction is a statistical interval", limit="must be certain", remedy="use exact ones")
    low, high = (predicted.low, predicted.high) if isinstance(predicted, Interval) else (predicted, predicted)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise SettingError(f"the prediction is [{low}, {high}]", limit="must be finite", remedy="predict a number")
    if isinstance(quantity, Share):
        return _share(quantity.successes(tally), tally.trials, (float(low), float(high)), alarm)
    return _mean(quantity, tally, (float(low), float(high)), alarm, variance)


def _share(count: int, trials: int, predicted: tuple[float, float], alarm: float) -> Agreement:
    low, high = predicted
    if not 0 <= low <= high <= 1:
        raise SettingError(f"the prediction is [{low}, {high}]", limit="a probability", remedy="predict within [0, 1]")
    if count > trials:
        raise SettingError(f"{count} of {trials} trials", limit="a share counts a trial once", remedy="use a Mean")
    fewest, most = accepted_counts(trials, predicted, alarm)
    share = count / trials
    nearest = min(max(share, low), high)
    spread = math.sqrt(nearest * (1 - nearest) / trials)
    distance = share - nearest
    z = distance / spread if spread else (math.copysign(math.inf, distance) if distance else 0.0)
    below = low - float(special.betaincinv(fewest, trials - fewest + 1, 1 - POWER)) if fewest > 0 else math.inf
    above = float(special.betaincinv(most + 1, trials - most, POWER)) - high if most < trials else math.inf
    return Agreement(fewest <= count <= most, share, predicted, z, alarm, below, above)


def accepted_counts(trials: int, predicted: tuple[float, float], alarm: float) -> tuple[int, int]:
    """The fewest and the most successes that agree: each tail beyond them has probability alarm/2 or less.

    By bisection on the tails themselves: quantile functions round.
    """
    low, high = predicted
    counts = range(trials + 1)
    fewest = bisect_left(counts, True, key=lambda c: stats.binom.cdf(c, trials, low) > alarm / 2)
    most = bisect_left(counts, True, key=lambda c: stats.binom.sf(c, trials, high) <= alarm / 2)
    return fewest, most


def known_variance_reach(n: int, variance: float, largest: float, alarm: float) -> float:
    """How far the mean of n samples strays with probability `alarm` at most, by Bernstein's inequality on both sides.

    `largest` bounds how far one sample is from the mean.

    Examples
    --------
    >>> round(known_variance_reach(10_000, 0.25, 0.5, 1e-6), 4)
    0.0272
    """
    log = math.log(2 / alarm)
    range_term = largest * log / 3
    return (range_term + math.sqrt(range_term**2 + 2 * n * variance * log)) / n


def _mean(
    quantity: Mean, tally: Tally, predicted: tuple[float, float], alarm: float, variance: float | None
) -> Agreement:
    moments = quantity.moments(tally)
    low, high = predicted
    least, most = (
        (-math.inf, math.inf) if quantity.low is None or quantity.high is None else (quantity.low, quantity.high)
    )
    certain = math.isfinite(most - least)
    spread = moments.variance if variance is None else variance
    if not certain:
        reach = student_reach(moments, alarm)
    elif variance is None:
        reach = bernstein_reach(moments, least, most, alarm)
    else:
        reach = known_variance_reach(moments.n, variance, max(most - low, high - least), alarm)
    error = math.sqrt(spread / moments.n)
    nearest = min(max(moments.mean, low), high)
    rounding = ROUNDING * max(abs(moments.mean), abs(nearest))
    distance, reach = moments.mean - nearest, max(reach, rounding)
    if abs(distance) <= rounding:
        distance = 0.0
    z = distance / error if error else (math.copysign(math.inf, distance) if distance else 0.0)
    seen = reach + float(stats.norm.ppf(POWER)) * math.sqrt(moments.variance / moments.n)
    below = seen if low - seen >= least else math.inf
    above = seen if high + seen <= most else math.inf
    return Agreement(abs(distance) <= reach, moments.mean, predicted, z, alarm, below, above)


# What theory says


Side = Literal["exact", "upper bound", "lower bound"]

ALARM = 1e-6
"""Probability that a right theory is called wrong, over all comparisons that are made together."""


@dataclass(frozen=True)
class Predicted:
    """A number that theory states.

    - ``says``: what it is, as ``P(R <= 2)``.
    - ``quantity``: what of the tally it is.
    - ``value``: the number, or the range it is certain to lie in.
    - ``variance``: that of a sample of a mean with a range, where theory knows it: smaller errors are seen then.
    """

    says: str
    statement: str
    quantity: Quantity
    value: float | Interval
    side: Side = "exact"
    variance: float | None = None

    def __post_init__(self) -> None:
        if self.side != "exact" and isinstance(self.value, Interval):
            raise SettingError(f"the {self.side} is an interval", limit="a bound is a number", remedy="give one end")

    def range(self) -> float | Interval:
        """Where the true value lies if the statement is right."""
        if isinstance(self.value, Interval) or self.side == "exact":
            return self.value
        least, most = _extremes(self.quantity)
        low, high = (min(least, self.value), self.value) if self.side == "upper bound" else (self.value, most)
        return Interval(low, self.value, max(high, self.value), "bound")


@dataclass(frozen=True)
class Comparison:
    """A prediction beside what was counted; true where they agree."""

    predicted: Predicted
    observed: Estimate
    agreement: Agreement

    def __bool__(self) -> bool:
        """Whether they agree."""
        return self.agreement.agrees

    def as_dict(self) -> dict[str, Any]:
        """The comparison, JSON-ready."""
        value = self.predicted.value
        return {
            "says": self.predicted.says,
            "statement": self.predicted.statement,
            "side": self.predicted.side,
            "predicted": asdict(value) if isinstance(value, Interval) else float(value),
            "observed": asdict(self.observed),
            "agrees": self.agreement.agrees,
            "z": _finite(self.agreement.z),
            "alarm": self.agreement.alarm,
            "smallest_error_seen": [_finite(self.agreement.below), _finite(self.agreement.above)],
        }


P = TypeVar("P", bound=Callable[[dict[str, Any]], Iterable[Predicted]])
_predictors: dict[str, Callable[[dict[str, Any]], Iterable[Predicted]]] = {}


def predicts(kind: str) -> Callable[[P], P]:
    """Register what theory says of a simulator's tallies; use it as a decorator of ``predictor(parameters)``.

    Examples
    --------
    >>> @predicts("a fair coin")
    ... def fair(parameters):
    ...     yield Predicted("P(heads)", "none", Share("heads"), 0.5)
    >>> [each.value for each in fair({})]
    [0.5]
    """

    def register(predictor: P) -> P:
        if kind in _predictors:
            raise SettingError(f"{kind!r} has a prediction", limit="one for a simulation", remedy="name another")
        _predictors[kind] = predictor
        return predictor

    return register


def predictions(kind: str, parameters: Mapping[str, Any]) -> tuple[Predicted, ...]:
    """What theory says of a setting; nothing where it has no closed form."""
    import simulations.simulators  # noqa: F401  registers all predictors; they import this file

    predictor = _predictors.get(kind)
    return tuple(predictor(dict(parameters))) if predictor else ()


def compare(tally: Tally, predicted: Iterable[Predicted], alarm: float = ALARM) -> tuple[Comparison, ...]:
    """Compare a tally with what is predicted of it; the alarm rate is shared by all predictions.

    The number of trials must have been fixed beforehand.

    Examples
    --------
    >>> fair = Predicted("P(heads)", "none", Share("heads"), 0.5)
    >>> [bool(each) for each in compare(Tally.of(1000, counts={"heads": [512]}), [fair])]
    [True]
    """
    asked = tuple(predicted)
    return tuple(
        Comparison(
            each,
            each.quantity.estimate(tally),
            agrees(tally, each.quantity, each.range(), alarm / len(asked), each.variance),
        )
        for each in asked
    )


def compare_task(task: Task, tally: Tally, alarm: float = ALARM) -> tuple[Comparison, ...]:
    """Compare a task's tally with all that theory says of it."""
    return compare(tally, predictions(task.kind, task.parameters), alarm)


def _extremes(quantity: Quantity) -> tuple[float, float]:
    if isinstance(quantity, Share):
        return 0.0, 1.0
    if quantity.low is None or quantity.high is None:
        return -1e300, 1e300
    return quantity.low, quantity.high


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None
