"""Run batches of tasks on any executor until each task has enough, and keep every finished one.

Batch b of a task draws from a stream that the root seed, the task's id and b decide, and sums are exact: the number of
workers, their order, kills and reruns change no number. Where to stop is decided on batches 0, 1, 2, ... in this order;
batches beyond that point which were under way are kept on file and not counted, and a later run with a stricter rule
finds them there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from simulations.counts.tally import Tally
from simulations.experiments import PRELOADED
from simulations.experiments.batches import Failure, run_batch
from simulations.experiments.registry import registered
from simulations.experiments.results import ResultsWriter
from simulations.experiments.stopping import Stop
from simulations.experiments.tasks import Task
from spectheory.errors import OutputError, SettingError, WorkerError
from spectheory.processes import DEATHS, WHY_WORKERS_DIE, begin, fresh_processes, processors
from spectheory.runner import Maker, Seat, Spread

Progress = Callable[[Task, Tally], None]

GRACE = 3.0
"""Seconds that running batches have to finish after an interruption."""


@dataclass(frozen=True)
class Collected:
    """What a run leaves."""

    tallies: dict[Task, Tally]
    remarks: tuple[str, ...] = ()

    def __getitem__(self, task: Task) -> Tally:
        """The tally of a task."""
        return self.tallies[task]


def collect(
    tasks: Iterable[Task],
    *,
    stop: Stop | Callable[[Task], Stop],
    results: Path | None = None,
    executor: Executor | Maker | None = None,
    workers: int | None = None,
    in_flight: int | None = None,
    progress: Progress | None = None,
) -> Collected:
    """Bring every task to where the rule stops it; what a results file has is not run again.

    - ``tasks``: the experiments; one that occurs twice is run once.
    - ``stop``: when a task has enough; a function states it for each task.
    - ``results``: file to read finished batches from and to append them to.
    - ``executor``: any ``concurrent.futures.Executor``, e.g. Dask's ``client.get_executor()``, which stays yours, or a
      function that makes one, called again when a worker's death breaks it. By default a pool of processes; a script
      must then call this under ``if __name__ == "__main__":``.
    - ``workers``: processes of the default pool; all processors by default.
    - ``in_flight``: batches submitted at a time; by default twice the workers or, with an executor of yours, twice the
      processors here: state more for a larger cluster.
    - ``progress``: called as ``progress(task, tally)`` each time the counted batches of a task grow.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from simulations.draws.streams import Stream
    >>> from simulations.experiments.registry import simulator
    >>> from simulations.experiments.tasks import task
    >>> @simulator("a coin for show", version="1")
    ... def coin(parameters, trials, state):
    ...     stream = Stream(state)
    ...     return Tally.of(trials, counts={"heads": [sum(stream.uniform() < parameters["p"] for _ in range(trials))]})
    >>> biased = task("a coin for show", {"p": 0.25}, seed=1, trials=1000)
    >>> found = collect([biased], stop=Stop(trials=3000), executor=lambda: ThreadPoolExecutor(2))
    >>> found[biased].trials, found[biased].batches
    (3000, ((0, 3),))
    """
    wanted = list(dict.fromkeys(tasks))
    for task in wanted:
        if registered(task.kind).version != task.version:
            raise SettingError(
                f"a task is of version {task.version} of {task.kind}",
                limit=f"here is version {registered(task.kind).version}",
                remedy="describe the task anew",
            )
    rule: Callable[[Task], Stop] = (lambda task: stop) if isinstance(stop, Stop) else stop
    most = 2 * (workers or processors()) if in_flight is None else in_flight
    if most < 1:
        raise SettingError(f"in_flight is {most}", limit="must be >= 1", remedy="leave it out")
    if workers is not None and executor is not None:
        raise SettingError("workers and an executor are given", limit="one of them", remedy="leave one out")
    seat = partial(Seat, executor or (lambda: process_pool(workers)), lambda: most)
    report = progress or (lambda *_: None)
    if results is None:
        return Collected(Run([Advance(task, rule(task)) for task in wanted], seat(), None, report).finish())
    with ResultsWriter(results) as file:
        held = file.results
        if executor is None:  # processes here read large arrays from the file
            wanted = [file.describe(task) if task.arrays.held else task for task in wanted]
        advances = [Advance(task, rule(task), dict(held.of(task))) for task in wanted]
        tallies = Run(advances, seat(), file, report).finish()
        beside = (remark for task in wanted for remark in held.versions_beside(task))
        return Collected(tallies, (*held.remarks, *beside))


@dataclass
class Advance:
    """How far a task is: finished batches `ready` to be counted, and the `tally` of the first ones without a gap.

    `asked` batches are under way, or finished.
    """

    task: Task
    stop: Stop
    ready: dict[int, Tally] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    tally: Tally = field(default_factory=Tally)
    done: bool = False

    def count(self) -> bool:
        """Count the batches whose turn it is; returns whether there were any."""
        before = self.tally.size
        while not self.done and self.tally.size in self.ready:
            self.tally += self.ready.pop(self.tally.size)
            self.done = self.stop.met(self.tally)
        return self.tally.size > before

    def next(self) -> int | None:
        """The first batch that was not asked for and that the rule may still need."""
        end = 0 if self.done else self.stop.batches(self.task)
        wanted = (each for each in range(self.tally.size, end) if each not in self.ready and each not in self.asked)
        return next(wanted, None)


Batch = tuple[Advance, int]


def process_pool(workers: int | None = None) -> ProcessPoolExecutor:
    """Processes that share nothing with this one but its files, leave keyboard interrupts to the run, and end with it
    however it ends.
    """
    if workers is not None and workers < 1:
        raise SettingError(f"workers is {workers}", limit="must be >= 1", remedy="leave it out for all processors")
    return ProcessPoolExecutor(workers or processors(), mp_context=fresh_processes(PRELOADED), initializer=begin)


class Run:
    """A run of several tasks."""

    def __init__(self, advances: list[Advance], seat: Seat, file: ResultsWriter | None, progress: Progress) -> None:
        self.advances, self.file, self.progress = advances, file, progress
        self._spread = Spread[Batch]([seat], _call, lambda each: (each[0].task.id, each[1]), _dead)

    def finish(self) -> dict[Task, Tally]:
        """Bring every task to its end; whatever happens, finished batches are kept."""
        try:
            for advance in self.advances:
                self._count(advance)
            for (advance, batch), future in self._spread.results(self._due):
                self._keep(advance, batch, future)
        except OutputError:
            self._spread.close(at_once=True)
            raise
        except BaseException as error:
            self._cut_off(None if isinstance(error, Exception) else GRACE)
            raise
        self._spread.close()
        return {advance.task: advance.tally for advance in self.advances}

    def _due(self) -> Batch | None:
        """The next batch, that of the first task that needs one."""
        for advance in self.advances:
            batch = advance.next()
            if batch is not None:
                advance.asked.add(batch)
                return advance, batch
        return None

    def _keep(self, advance: Advance, batch: int, future: Future[Tally | Failure]) -> None:
        try:
            outcome = future.result()
        except Exception as error:
            outcome = Failure(f"{type(error).__name__}: {error}")
        if isinstance(outcome, Failure):
            task = advance.task
            raise WorkerError(
                f"batch {batch} of {task.kind} (task {task.id[:12]}, seed {task.seed}) failed ({outcome.error})",
                limit="finished batches are kept",
                remedy="correct it and run again",
            )
        if self.file is not None:
            self.file.keep(advance.task, batch, outcome)
        advance.ready[batch] = outcome
        self._count(advance)
        if advance.done:
            self._spread.cancel(lambda each: each[0].done)

    def _count(self, advance: Advance) -> None:
        if advance.count():
            self.progress(advance.task, advance.tally)

    def _cut_off(self, seconds: float | None) -> None:
        """Drop what waits, let what runs finish if it does so in time, and end the workers."""
        try:
            self._spread.drain(seconds)
        finally:  # at once, after a second interruption
            self._spread.close(at_once=True)
            for (advance, batch), future in self._spread.finished():
                if self.file is not None and isinstance(tally := future.result(), Tally):
                    self.file.keep(advance.task, batch, tally)


def _call(each: Batch) -> tuple[Any, ...]:
    task = each[0].task
    return run_batch, task, each[1], registered(task.kind).run.__module__


def _dead(batches: list[Batch], _: list[int]) -> WorkerError:
    return WorkerError(
        f"workers died {DEATHS} times with the batches {[batch for _, batch in batches[:8]] or 'yet to come'}",
        limit="finished batches are kept",
        remedy=WHY_WORKERS_DIE,
    )
