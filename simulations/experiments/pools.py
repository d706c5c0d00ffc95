"""Executors that a run submits to: its own pool of processes, renewed when a worker dies, or one that it is given."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor

from simulations.counts.tally import Tally
from simulations.experiments import PRELOADED
from simulations.experiments.batches import Failure, run_batch
from simulations.experiments.registry import registered
from simulations.experiments.tasks import Task
from spectheory.errors import SettingError, WorkerError
from spectheory.processes import begin, fresh_processes, processors

Maker = Callable[[], Executor]


def process_pool(workers: int | None = None) -> ProcessPoolExecutor:
    """Processes that share nothing with this one but its files, leave keyboard interrupts to the run, and end with it
    however it ends.
    """
    if workers is not None and workers < 1:
        raise SettingError(f"workers is {workers}", limit="must be >= 1", remedy="leave it out for all processors")
    return ProcessPoolExecutor(workers or processors(), mp_context=fresh_processes(PRELOADED), initializer=begin)


class Pool:
    """An executor that is made anew when it breaks: the caller's own, one from a function, or None for processes."""

    def __init__(self, executor: Executor | Maker | None, workers: int | None) -> None:
        if workers is not None and executor is not None:
            raise SettingError("workers and an executor are given", limit="one of them", remedy="leave one out")
        self._given = executor if isinstance(executor, Executor) else None
        self._make: Maker = executor if callable(executor) else lambda: process_pool(workers)
        self._executor = self._given or self._make()

    def submit(self, task: Task, batch: int) -> Future[Tally | Failure]:
        """Have a batch run."""
        return self._executor.submit(run_batch, task, batch, registered(task.kind).run.__module__)

    def renew(self, lost: BrokenExecutor) -> None:
        """Put a fresh executor in the place of a broken one."""
        if self._given is not None:
            raise WorkerError(
                "a worker died and broke the executor",
                limit="one that was passed in cannot be renewed; finished batches are kept",
                remedy="pass a function that makes executors",
            ) from lost
        self.close()
        self._executor = self._make()

    def close(self, *, at_once: bool = False) -> None:
        """Drop what waits, and let what runs finish or kill its processes; the caller's executor is left alone."""
        if self._given is not None:
            return
        processes = list((getattr(self._executor, "_processes", None) or {}).values())
        self._executor.shutdown(wait=not at_once, cancel_futures=True)
        if at_once:
            for process in processes:
                process.kill()
