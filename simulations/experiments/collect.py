"""Run batches of tasks on any executor until each task has enough, and keep every finished one.

Batch b of a task draws from a stream that the root seed, the task's id and b decide, and sums are exact: the number of
workers, their order, kills and reruns change no number. Where to stop is decided on batches 0, 1, 2, ... in this order;
batches beyond that point which were under way are kept on file and not counted, and a later run with a stricter rule
finds them there.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from simulations.counts import Estimate, Mean, Quantity, Tally
from simulations.draws import Words, words
from simulations.experiments import PRELOADED
from simulations.experiments.results import ResultsWriter
from simulations.experiments.tasks import Task, registered
from spectheory.errors import OutputError, SettingError, SpectheoryError, WorkerError
from spectheory.intervals import CONFIDENCE
from spectheory.processes import DEATHS, WHY_WORKERS_DIE, begin, fresh_processes, processors
from spectheory.runner import Maker, Seat, Spread

# When a task has enough batches: decided on them in their order, so that who ran them does not matter


@dataclass(frozen=True)
class Stop:
    """Stop at the first batch that brings so many trials or, before, so narrow an interval.

    The width is that of the quantity's plain interval. Looked at after every batch, it misses slightly more often than
    stated: 5.6% at worst for a 95% interval, in 20 exactly computed cases of coins. :meth:`interval` holds at its
    confidence wherever the run stops (Student's approximately), by :func:`share_of_look`.

    A verdict on a prediction needs a number of trials fixed beforehand: leave `width` out.

    - ``trials``: enough trials; the last batch is run whole.
    - ``width``: narrow enough: width of the interval over the observed value.

    Examples
    --------
    >>> from simulations.counts import Share
    >>> stop = Stop(trials=10_000, width=0.5, of=Share("heads"))
    >>> stop.met(Tally.of(100, counts={"heads": [50]}).as_batch(0)), stop.met(Tally.of(10_000).as_batch(0))
    (True, True)
    """

    trials: int
    width: float | None = None
    of: Quantity | None = None
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise SettingError(f"trials is {self.trials}", limit="must be >= 1", remedy="raise it")
        if (self.width is None) != (self.of is None):
            raise SettingError("one of width and of is missing", limit="a width is of something", remedy="state both")
        if self.width is not None and not self.width > 0:
            raise SettingError(f"width is {self.width}", limit="must be > 0", remedy="leave it out to count trials")
        if not 0 < self.confidence < 1:
            raise SettingError(f"confidence is {self.confidence}", limit="must lie in (0, 1)", remedy="use 0.95")

    def batches(self, task: Task) -> int:
        """How many batches a task has at most."""
        return -(-self.trials // task.trials)

    def met(self, tally: Tally) -> bool:
        """Whether a prefix of the batches is enough."""
        if tally.trials >= self.trials:
            return True
        if self.width is None or not tally.trials or (isinstance(self.of, Mean) and self.of.moments(tally).n < 2):
            return False
        return self.of is not None and self.of.estimate(tally, self.confidence).relative_width <= self.width

    def interval(self, tally: Tally) -> Estimate:
        """The interval of the quantity after so many batches, valid although the batches were looked at one by one."""
        if self.of is None:
            raise SettingError("no quantity was watched", limit="the rule has no of", remedy="use estimate of a Share")
        estimate = self.of.estimate(tally, 1 - share_of_look(1 - self.confidence, max(tally.size, 1)))
        return replace(estimate, confidence=self.confidence)


def share_of_look(rate: float, look: int) -> float:
    """The share of an error rate at a look: rate / (b (b + 1)) at look b, whose sum over all looks is the rate."""
    return rate / (look * (look + 1))


# One batch of a task, run by a worker: its stream depends on the task and the batch number alone


@dataclass(frozen=True)
class Failure:
    """Why a batch has no result, in a line; what a worker sends where an error might not travel."""

    error: str


def batch_stream(task: Task, batch: int) -> Words:
    """The words of the stream of one batch: a child of the root seed by the task's id and the batch number."""
    return words(task.seed, *task.key, batch)


_parameters = lru_cache(maxsize=8)(json.loads)  # of a large vocabulary they take as long to read as a batch to run


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
        tally = known.run(_parameters(task.text), task.trials, batch_stream(task, batch))
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


# Runs


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
    >>> from simulations.draws import Stream
    >>> from simulations.experiments.tasks import simulator
    >>> from simulations.experiments.tasks import task
    >>> @simulator("a coin for show", version="1")
    ... def coin(parameters, trials, state):
    ...     stream = Stream(state)
    ...     return Tally.of(trials, counts={"heads": [sum(stream.uniform() < parameters["p"] for _ in range(trials))]})
    >>> biased = task("a coin for show", {"p": 0.25}, seed=1, trials=1000)
    >>> collected = collect([biased], stop=Stop(trials=3000), executor=lambda: ThreadPoolExecutor(2))
    >>> collected[biased].trials, collected[biased].batches
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
        known = file.results
        advances = [Advance(task, rule(task), dict(known.of(task))) for task in wanted]
        tallies = Run(advances, seat(), file, report).finish()
        beside = (remark for task in wanted for remark in known.versions_beside(task))
        return Collected(tallies, (*known.remarks, *beside))


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
