"""What a figure is made of: the tasks that are simulated, what is worked out from their tallies, and who draws it.

The data of a figure is a pure function of the saved tallies, the drawing a pure function of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import simulations.simulators  # noqa: F401
from simulations.counts import Tally
from simulations.experiments.collect import Stop
from simulations.experiments.tasks import Task, registered, task
from simulations.verdicts.predictions import Comparison, Predicted, compare, predictions
from spectheory.errors import SettingError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

FIGURE_SCHEMA = 1
"""Version of a figure's saved data."""


@dataclass(frozen=True)
class Scale:
    """How much is simulated: the full setting of the docs, or a quick one."""

    full: bool
    seed: int = 0

    @property
    def name(self) -> str:
        """``full`` or ``quick``."""
        return "full" if self.full else "quick"

    def pick(self, quick: T, full: T) -> T:
        """The one for this setting."""
        return full if self.full else quick


@dataclass(frozen=True)
class Ask:
    """A simulation that a figure needs; the trials are fixed beforehand, so that verdicts hold."""

    label: str
    task: Task
    trials: int

    @property
    def stop(self) -> Stop:
        """When it has enough."""
        return Stop(trials=self.trials)


def ask(
    label: str, kind: str, parameters: Mapping[str, Any], scale: Scale, *, trials: int, batch: int | None = None
) -> Ask:
    """A simulation of so many trials, in batches of `batch`, or of an eighth."""
    return Ask(label, task(kind, parameters, seed=scale.seed, trials=batch or max(trials // 8, 1)), trials)


Tallies = Mapping[str, Tally]
Data = dict[str, Any]


@dataclass(frozen=True)
class Sweep:
    """A bound-against-empirical figure.

    - ``name``: of the files, and on the command line.
    - ``statements``: ids of the statements it is about.
    - ``asks``: ``asks(scale)``: the simulations.
    - ``data``: ``data(scale, tallies)``: what is drawn, JSON-ready; tallies by label. Closed forms are worked out here.
    - ``draw``: ``draw(figure, data)``: draw it on an empty figure.
    - ``extras``: modules that must be installed, beside matplotlib, each as ``extra:module``.
    - ``alone``: whether it measures time, so that nothing else may run beside it.
    - ``theory``: ``theory(scale)``: numbers of closed forms that take long, as tallies by label; saved with the others.
    - ``further``: ``further(tallies)``: comparisons beside those of each tally with its own theory, as (label, tally,
      what is predicted of it).
    """

    name: str
    title: str
    statements: tuple[str, ...]
    asks: Callable[[Scale], tuple[Ask, ...]]
    data: Callable[[Scale, Tallies], Data]
    draw: Callable[[Figure, Data], None]
    size: tuple[float, float] = (8.4, 4.6)
    extras: tuple[str, ...] = ()
    alone: bool = False
    theory: Callable[[Scale], Tallies] = lambda scale: {}
    further: Callable[[Tallies], Sequence[tuple[str, Tally, Sequence[Predicted]]]] = lambda tallies: ()

    def made(self, scale: Scale, tallies: Tallies, alarm: float) -> Data:
        """All that is saved of a figure: its setting, the tallies, what theory says of them, and what is drawn."""
        asks = self.asks(scale)
        compared = self.compared(asks, tallies, alarm)
        theory = {label: tallies[label].as_dict() for label in tallies if label not in {one.label for one in asks}}
        return {
            "schema": FIGURE_SCHEMA,
            "figure": self.name,
            "title": self.title,
            "statements": list(self.statements),
            "setting": scale.name,
            "seed": scale.seed,
            "alarm": alarm,
            "results": [
                {"label": one.label, "task": one.task.as_dict(), **tallies[one.label].as_dict()} for one in asks
            ],
            **({"theory": theory} if theory else {}),
            "comparisons": [{"label": label, **comparison.as_dict()} for label, comparison in compared],
            "data": self.data(scale, tallies),
        }

    def compared(self, asks: tuple[Ask, ...], tallies: Tallies, alarm: float) -> list[tuple[str, Comparison]]:
        """Every tally against all that theory says of it; `alarm` is the figure's, shared by all comparisons."""
        stated = [
            *((one.label, tallies[one.label], predictions(one.task.kind, one.task.parameters)) for one in asks),
            *self.further(tallies),
        ]
        number = max(sum(len(predicted) for _, _, predicted in stated), 1)
        return [
            (label, comparison)
            for label, tally, predicted in stated
            for comparison in compare(tally, predicted, alarm * len(predicted) / number)
        ]


def saved_tallies(made: Data) -> dict[str, Tally]:
    """The tallies of a saved figure by their labels."""
    tallies = {label: Tally.from_dict(row) for label, row in made.get("theory", {}).items()}
    for row in made["results"]:
        one = Task.from_dict(row["task"])
        if registered(one.kind).version != one.version:
            raise SettingError(
                f"{row['label']!r} was simulated by version {one.version} of {one.kind}",
                limit=f"here is version {registered(one.kind).version}",
                remedy="make the figure again",
            )
        tallies[row["label"]] = Tally.from_dict(row)
    return tallies
