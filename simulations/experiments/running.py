"""The loop of a run: submit what is due, keep what is finished, start again after a worker died."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field

from simulations.counts.tally import Tally
from simulations.experiments.appending import ResultsWriter
from simulations.experiments.batches import Failure
from simulations.experiments.pools import Pool
from simulations.experiments.stopping import Stop
from simulations.experiments.tasks import Task
from spectheory.errors import OutputError, WorkerError
from spectheory.processes import DEATHS, WHY_WORKERS_DIE

Progress = Callable[[Task, Tally], None]

GRACE = 3.0
"""Seconds that running batches have to finish after an interruption."""


@dataclass
class Advance:
    """How far a task is: finished batches `ready` to be counted, and the `tally` of the first ones without a gap."""

    task: Task
    stop: Stop
    ready: dict[int, Tally] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    done: bool = False

    def count(self) -> bool:
        """Count the batches whose turn it is; returns whether there were any."""
        before = self.tally.size
        while not self.done and self.tally.size in self.ready:
            self.tally += self.ready.pop(self.tally.size)
            self.done = self.stop.met(self.tally)
        return self.tally.size > before

    def due(self) -> Iterator[int]:
        """Batches not finished that the rule may still need, first to last."""
        end = 0 if self.done else self.stop.batches(self.task)
        return (batch for batch in range(self.tally.size, end) if batch not in self.ready)


class Run:
    """A run of several tasks."""

    def __init__(
        self, advances: list[Advance], pool: Pool, in_flight: int, file: ResultsWriter | None, progress: Progress | None
    ) -> None:
        self.advances, self.pool, self.in_flight, self.file = advances, pool, in_flight, file
        self.progress: Progress = progress or (lambda task, tally: None)
        self._flying: dict[Future[Tally | Failure], tuple[Advance, int]] = {}
        self._breakdowns: Counter[tuple[str, int]] = Counter()
        self._useless = 0

    def finish(self) -> dict[Task, Tally]:
        """Bring every task to its end; whatever happens, finished batches are kept."""
        try:
            for advance in self.advances:
                self._count(advance)
            while not all(advance.done for advance in self.advances):
                try:
                    self._submit()
                    self._harvest()
                except BrokenExecutor as lost:
                    self._recover(lost)
            wait(self._flying)  # what runs beyond the need is kept too
        except OutputError:
            self.pool.close(at_once=True)
            raise
        except BaseException as error:
            self._cut_off(None if isinstance(error, Exception) else GRACE)
            raise
        self.pool.close()
        self._keep_finished()
        return {advance.task: advance.tally for advance in self.advances}

    def _submit(self) -> None:
        """Fill the free places with what is due, the first tasks first."""
        flying = {(advance.task.id, batch) for advance, batch in self._flying.values()}
        for advance in self.advances:
            for batch in advance.due():
                if len(self._flying) >= self.in_flight:
                    return
                if (advance.task.id, batch) not in flying:
                    self._flying[self.pool.submit(advance.task, batch)] = advance, batch

    def _harvest(self) -> None:
        """Wait for a batch; keep and count those that are finished, first submitted first."""
        finished = wait(self._flying, return_when=FIRST_COMPLETED).done
        for future in [future for future in self._flying if future in finished]:
            self._keep(future)
        self._cancel(future for future, (advance, _) in self._flying.items() if advance.done)

    def _keep(self, future: Future[Tally | Failure]) -> None:
        advance, batch = self._flying[future]
        what = f"batch {batch} of {advance.task.kind} (task {advance.task.id[:12]}, seed {advance.task.seed})"
        try:
            outcome = future.result()
        except BrokenExecutor:
            raise
        except Exception as error:
            outcome = Failure(f"{type(error).__name__}: {error}")
        if isinstance(outcome, Failure):
            del self._flying[future]
            raise WorkerError(
                f"{what} failed ({outcome.error})", limit="finished batches are kept", remedy="correct it and run again"
            )
        if self.file is not None:
            self.file.add(advance.task, batch, outcome)
        del self._flying[future]
        advance.ready[batch] = outcome
        self._count(advance)

    def _count(self, advance: Advance) -> None:
        if advance.count():
            self.progress(advance.task, advance.tally)

    def _recover(self, lost: BrokenExecutor) -> None:
        """Keep what was finished before the executor broke; the rest is due again, in a fresh one."""
        for future in list(self._flying):
            if future.done() and not future.cancelled() and future.exception() is None:
                self._keep(future)
        self._useless = 0 if self._flying else self._useless + 1  # it took no batch
        for advance, batch in self._flying.values():
            self._breakdowns[advance.task.id, batch] += 1
        suspects = [batch for (_, batch), times in self._breakdowns.items() if times >= DEATHS]
        self._flying.clear()
        if suspects or self._useless >= DEATHS:
            raise WorkerError(
                f"workers died {DEATHS} times with the batches {suspects[:8] or 'yet to come'}",
                limit="finished batches are kept",
                remedy=WHY_WORKERS_DIE,
            ) from lost
        self.pool.renew(lost)

    def _cancel(self, futures: Iterable[Future[Tally | Failure]]) -> None:
        for future in list(futures):
            if future.cancel():
                del self._flying[future]

    def _cut_off(self, seconds: float | None) -> None:
        """Drop what waits, let what runs finish if it does so in time, and end the workers."""
        try:
            self._cancel(self._flying)
            wait(self._flying, seconds)
        finally:  # at once, after a second interruption
            self.pool.close(at_once=True)
            self._keep_finished()

    def _keep_finished(self) -> None:
        for future, (advance, batch) in self._flying.items():
            finished = future.done() and not future.cancelled() and future.exception() is None
            if finished and self.file is not None and isinstance(tally := future.result(), Tally):
                self.file.add(advance.task, batch, tally)
