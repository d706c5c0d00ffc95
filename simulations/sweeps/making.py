"""Make figures: finish their simulations, save the counts, draw the saved data.

A figure leaves ``NAME.json``, with every tally, what theory says of it and what is drawn, ``NAME.png`` and
``NAME.svg``. Finished batches are appended to ``results.jsonl``; the same call continues from them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from simulations.counts import Tally
from simulations.experiments.collect import Stop, collect
from simulations.experiments.tasks import Task
from simulations.sweeps.base import Ask, Data, Scale, Sweep
from simulations.verdicts.predictions import ALARM
from spectheory.errors import OutputError, SettingError, load_extra
from spectheory.files import write_whole
from spectheory.plots.style import save_figure

RESULTS = "results.jsonl"

SAVED = ("figure", "title", "statements", "setting", "seed", "alarm", "results", "comparisons", "data")
COMPARED = ("label", "says", "statement", "predicted", "observed", "agrees")
"""What a saved figure has, and each of its comparisons."""


@dataclass(frozen=True)
class Made:
    """A figure that was made."""

    sweep: Sweep
    content: Data
    files: tuple[Path, ...]

    @property
    def disagreements(self) -> list[dict[str, Any]]:
        """The comparisons in which theory and simulation disagree."""
        return [row for row in self.content["comparisons"] if not row["agrees"]]


@dataclass
class Making:
    """Figures on their way.

    - ``workers``: processes; all processors by default. The numbers do not depend on it, but for times.
    - ``alarm``: probability that a figure finds a disagreement with a theory that is right.
    - ``on_progress``: ``on_progress(done, total, label)``, in batches.
    - ``on_made``: called with each figure as soon as it is made.
    """

    sweeps: Sequence[Sweep]
    scale: Scale
    out: Path
    workers: int | None = None
    alarm: float = ALARM
    on_progress: Callable[[int, int, str], None] | None = None
    on_made: Callable[[Made], None] | None = None
    remarks: list[str] = field(default_factory=list)

    def make(self) -> list[Made]:
        """Make all of them, those that measure time last and with one process."""
        for sweep in self.sweeps:
            for extra, _, module in (each.partition(":") for each in sweep.extras):
                load_extra(module, extra=extra)
        self._asks = {sweep.name: sweep.asks(self.scale) for sweep in self.sweeps}
        self._stops = _stops([one for asks in self._asks.values() for one in asks])
        self._counted: dict[Task, Tally] = {}
        self._made: dict[str, Made] = {}
        for alone in (False, True):
            tasks = [one.task for sweep in self.sweeps if sweep.alone == alone for one in self._asks[sweep.name]]
            if tasks:
                collected = collect(
                    tasks,
                    stop=lambda task: self._stops[task],
                    results=self.out / RESULTS,
                    workers=1 if alone else self.workers,
                    progress=self._advance,
                )
                self.remarks += collected.remarks
                self._counted |= collected.tallies
        self._finish()
        return [self._made[sweep.name] for sweep in self.sweeps]

    def _advance(self, task: Task, tally: Tally) -> None:
        self._counted[task] = tally
        if self.on_progress:
            total = sum(stop.batches(task) for task, stop in self._stops.items())
            self.on_progress(sum(tally.size for tally in self._counted.values()), total, task.kind)
        self._finish()

    def _finish(self) -> None:
        """Save and draw the figures whose simulations have ended."""
        for sweep in self.sweeps:
            asks = self._asks[sweep.name]
            if sweep.name not in self._made and all(self._ended(one) for one in asks):
                tallies = {**{one.label: self._counted[one.task] for one in asks}, **sweep.theory(self.scale)}
                content = sweep.made(self.scale, tallies, self.alarm)
                path = self.out / f"{sweep.name}.json"
                write_whole(path, partial(_write, content))
                self._made[sweep.name] = Made(sweep, content, (path, *_drawn(sweep, content, self.out)))
                if self.on_made:
                    self.on_made(self._made[sweep.name])

    def _ended(self, one: Ask) -> bool:
        tally = self._counted.get(one.task)
        return tally is not None and one.stop.met(tally)


def redraw(sweep: Sweep, out: Path) -> Made:
    """Draw a figure again from its saved data."""
    path = out / f"{sweep.name}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["figure"] != sweep.name:
            raise ValueError("it is of another figure")
        if missing := [name for name in SAVED if name not in content]:
            raise ValueError(f"it lacks {missing[0]}")
        if any(name not in row for row in content["comparisons"] for name in COMPARED):
            raise ValueError("a comparison is not whole")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _unreadable(path, error) from error
    try:
        files = _drawn(sweep, content, out)
    except OutputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise _unreadable(path, error) from error
    return Made(sweep, content, (path, *files))


def _unreadable(path: Path, error: Exception) -> SettingError:
    reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    return SettingError(
        f"{path} cannot be read ({reason})", limit="holds what the figure shows", remedy="make the figure again"
    )


def _stops(asks: Sequence[Ask]) -> dict[Task, Stop]:
    """When each task ends; figures that share one must ask for as much of it, so that none depends on the others."""
    stops: dict[Task, Stop] = {}
    for one in asks:
        if stops.setdefault(one.task, one.stop) != one.stop:
            raise SettingError(
                f"{one.label!r} is asked for with different trials", limit="a task has one end", remedy="ask alike"
            )
    return stops


def _drawn(sweep: Sweep, content: Data, out: Path) -> list[Path]:
    return save_figure(lambda figure: sweep.draw(figure, content["data"]), sweep.size, out / sweep.name)


def _write(content: Data, path: Path) -> None:
    try:
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    except ValueError as error:
        raise OutputError(f"{path.name}: {error}", limit="numbers are finite", remedy="report it") from error
