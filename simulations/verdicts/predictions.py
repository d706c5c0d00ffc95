"""What theory says a simulation counts, and the comparison of the two at a stated rate of false alarms.

Simulators know nothing of the closed forms; the two meet here. A predictor is a function of a task's parameters that
is registered under the simulator's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

from simulations.counts.estimates import Estimate
from simulations.counts.quantities import Quantity, Share
from simulations.counts.tally import Tally
from simulations.experiments.tasks import Task
from simulations.verdicts.agreement import Agreement, agrees
from spectheory.errors import SettingError
from spectheory.intervals import Interval

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

    def __str__(self) -> str:
        """The comparison in a line."""
        return f"{self.predicted.says} ({self.predicted.statement}, {self.predicted.side}): {self.agreement}"

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
