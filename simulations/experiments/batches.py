"""One batch of a task, run by a worker: its stream depends on the task and the batch number alone."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from simulations.counts.tally import Tally
from simulations.draws.streams import Words, words
from simulations.experiments.registry import registered
from simulations.experiments.tasks import Task
from spectheory.errors import SettingError, SpectheoryError


@dataclass(frozen=True)
class Failure:
    """Why a batch has no result, in a line; what a worker sends where an error might not travel."""

    error: str


def batch_stream(task: Task, batch: int) -> Words:
    """The words of the stream of one batch: a child of the root seed by the task's id and the batch number."""
    return words(task.seed, *task.key, batch)


def run_batch(task: Task, batch: int, module: str) -> Tally | Failure:
    """Run one batch; `module` is imported first, it registers the simulator."""
    try:
        importlib.import_module(module)
        known = registered(task.kind)
        if known.version != task.version:
            raise SettingError(
                f"{task.kind} is of version {known.version} at a worker",
                limit=f"the task is of version {task.version}",
                remedy="install the same release everywhere",
            )
        tally = known.run(task.parameters, task.trials, batch_stream(task, batch))
        if not isinstance(tally, Tally) or tally.trials != task.trials:
            made = f"{tally.trials} trials" if isinstance(tally, Tally) else type(tally).__name__
            raise SettingError(
                f"{task.kind} returned {made}", limit=f"a Tally of {task.trials} trials was due", remedy="correct it"
            )
        return tally.as_batch(batch)
    except SpectheoryError as error:
        return Failure(str(error))
    except Exception as error:
        return Failure(" ".join(f"{type(error).__name__}: {error}".split()))
