"""Run batches of tasks on any executor until each task has enough, and keep every finished one.

Batch b of a task draws from a stream that the root seed, the task's id and b decide, and sums are exact: the number of
workers, their order, kills and reruns change no number. Where to stop is decided on batches 0, 1, 2, ... in this order;
batches beyond that point which were under way are kept on file and not counted, and a later run with a stricter rule
finds them there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from simulations.counts.tally import Tally
from simulations.experiments.appending import ResultsWriter
from simulations.experiments.pools import Maker, Pool
from simulations.experiments.registry import registered
from simulations.experiments.running import Advance, Progress, Run
from simulations.experiments.stopping import Stop
from simulations.experiments.tasks import Task
from spectheory.errors import SettingError
from spectheory.processes import processors


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
    if results is None:
        return Collected(
            Run([Advance(task, rule(task)) for task in wanted], Pool(executor, workers), most, None, progress).finish()
        )
    with ResultsWriter(results) as file:
        held = file.results
        if executor is None:  # processes here read large arrays from their files
            wanted = [task.kept_in(held.arrays) for task in wanted]
        advances = [Advance(task, rule(task), dict(held.of(task))) for task in wanted]
        tallies = Run(advances, Pool(executor, workers), most, file, progress).finish()
        beside = (remark for task in wanted for remark in held.versions_beside(task))
        return Collected(tallies, (*held.remarks, *beside))
