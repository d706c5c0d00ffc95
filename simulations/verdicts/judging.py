"""One setting simulated and judged: predictions first, then the batches, then the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulations.counts import Mean, Tally
from simulations.draws import words
from simulations.experiments.collect import Stop, collect, share_of_look
from simulations.experiments.tasks import Task, registered
from simulations.verdicts.predictions import ALARM, Comparison, Predicted, compare, predictions
from spectheory.errors import SettingError


@dataclass(frozen=True)
class Verdict:
    """A setting's tally beside what theory says of it; true where all comparisons agree."""

    task: Task
    tally: Tally
    alarm: float
    comparisons: tuple[Comparison, ...]
    remarks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether theory and simulation agree."""
        return all(self.comparisons)

    def as_dict(self) -> dict[str, Any]:
        """The verdict, JSON-ready."""
        return {
            "task": self.task.as_dict(),
            "id": self.task.id,
            "tally": self.tally.as_dict(),
            "alarm": self.alarm,
            "agree": bool(self),
            "comparisons": [each.as_dict() for each in self.comparisons],
        }


def foreseen(kind: str, parameters: Mapping[str, Any], *, trials: int, seed: int = 0) -> tuple[Predicted, ...]:
    """What theory says of a setting, after one trial, which refuses parameters that the simulator does not take."""
    registered(kind).run(parameters, 1, words(seed))
    predicted = predictions(kind, parameters)
    if trials < 2 and any(isinstance(each.quantity, Mean) for each in predicted):
        raise SettingError(
            f"--trials is {trials}", limit=f"{kind} has means, which need 2 for an interval", remedy="run more"
        )
    return predicted


def judge(
    task: Task,
    predicted: tuple[Predicted, ...],
    *,
    trials: int,
    width: float | None = None,
    alarm: float = ALARM,
    **running: Any,
) -> Verdict:
    """Simulate a task and compare; `running` goes to :func:`~simulations.experiments.collect.collect`.

    With `width` the run stops at the first batch at which the first quantity's interval is so narrow, relative to its
    value. The stopping batch depends on the counts, so each look at the data has its own share of the alarm rate.

    Examples
    --------
    >>> import simulations.simulators
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from simulations.experiments.tasks import task
    >>> race = task("race", {"target": [0.5, 0.5], "draft": [0.5, 0.5], "max_rank": 2}, seed=1, trials=500)
    >>> said = foreseen(race.kind, race.parameters, trials=1000)
    >>> bool(judge(race, said, trials=1000, executor=lambda: ThreadPoolExecutor(1)))
    True
    """
    stop = Stop(trials=trials, width=width, of=predicted[0].quantity) if width is not None else Stop(trials=trials)
    collected = collect([task], stop=stop, **running)
    tally = collected[task]
    shared = alarm if width is None else share_of_look(alarm, tally.size)
    return Verdict(task, tally, alarm, compare(tally, predicted, shared), tuple(collected.remarks))
