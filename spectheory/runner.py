"""One loop for work that is spread: calls go to executors, and their results come back in whatever order they finish.

An executor is any of ``concurrent.futures``: processes of this machine, or Dask's ``client.get_executor()``. Work that
was lost with a worker is done again by a fresh one; only work that was there in several breakdowns is given up.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from spectheory.errors import WorkerError
from spectheory.processes import DEATHS

W = TypeVar("W")
Maker = Callable[[], Executor]

_LOOK = 1.0
"""Seconds after which the room of the executors is looked at again, though nothing has finished."""


class Seat:
    """An executor and how many calls it takes at a time.

    A function that makes executors is called again when a worker's death breaks one. An executor that is passed in
    stays the caller's, and cannot be renewed.
    """

    def __init__(self, executor: Executor | Maker, room: Callable[[], int]) -> None:
        self.room = room
        self._make = None if isinstance(executor, Executor) else executor
        self._executor = executor if isinstance(executor, Executor) else executor()
        self._processes: list[BaseProcess] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a function called."""
        future = self._executor.submit(function, *arguments)
        self._processes = list((getattr(self._executor, "_processes", None) or {}).values())
        return future

    def renew(self, lost: BrokenExecutor) -> None:
        """Put a fresh executor in the place of a broken one."""
        if self._make is None:
            raise WorkerError(
                "a worker died and broke the executor",
                limit="one that was passed in cannot be renewed; finished work is kept",
                remedy="pass a function that makes executors",
            ) from lost
        self.close()
        self._executor = self._make()

    def exit_codes(self) -> list[int]:
        """How processes of a broken executor ended, as far as they failed."""
        until = time.monotonic() + 1.0  # another thread that waits for them may not have noted it yet
        while any(process.exitcode is None for process in self._processes) and time.monotonic() < until:
            time.sleep(0.01)
        return [code for process in self._processes if (code := process.exitcode)]

    def close(self, *, at_once: bool = False) -> None:
        """Drop what waits, and let what runs finish or kill its processes; the caller's executor is left alone."""
        if self._make is None:
            return
        for process in self._processes if at_once else ():
            process.kill()
        self._executor.shutdown(wait=not at_once or bool(self._processes), cancel_futures=True)


class Spread(Generic[W]):
    """Work under way on the executors of `seats`.

    - ``call``: the function and arguments that do a piece of work.
    - ``key``: what identifies a piece of work.
    - ``blame``: the error that names work with which workers died again and again (none: before they took any), and how
      the last processes ended.
    """

    def __init__(
        self,
        seats: Sequence[Seat],
        call: Callable[[W], tuple[Any, ...]],
        key: Callable[[W], Hashable],
        blame: Callable[[list[W], list[int]], WorkerError],
    ) -> None:
        self._seats, self._call, self._key, self._blame = seats, call, key, blame
        self._flying: dict[Future[Any], tuple[W, Seat]] = {}
        self._again: deque[W] = deque()
        self._latest: list[tuple[W, Future[Any]]] = []
        self._breakdowns: Counter[Hashable] = Counter()
        self._useless = 0

    def results(self, due: Callable[[], W | None]) -> Iterator[tuple[W, Future[Any]]]:
        """Do all the work that `due` gives, in its order, until it gives None and all is done.

        Of pieces that finish together the one that was submitted first comes first. `due` is asked for more before a
        result is given out, whose keeping takes time.
        """
        while self._fill(due):
            if not self._flying:
                time.sleep(_LOOK / 10)  # until an executor has room
            finished = wait(self._flying, _LOOK, FIRST_COMPLETED).done
            ended = [(future, *self._flying[future]) for future in self._flying if future in finished]
            broken = {
                seat: lost
                for future, _, seat in ended
                if isinstance(lost := (None if future.cancelled() else future.exception()), BrokenExecutor)
            }
            for seat, lost in broken.items():
                self._broken(seat, lost)
            for future, work, _ in ended:
                if self._flying.pop(future, None):  # neither lost nor cancelled meanwhile
                    self._latest = [(work, future)]
                    self._fill(due)
                    yield work, future
                    self._latest = []

    def cancel(self, needless: Callable[[W], bool]) -> None:
        """Drop work that has not begun."""
        for future, (work, _) in list(self._flying.items()):
            if needless(work) and future.cancel():
                del self._flying[future]
        self._again = deque(work for work in self._again if not needless(work))

    def drain(self, seconds: float | None) -> None:
        """Drop what has not begun, and let what runs finish if it does so in time; None: however long it takes."""
        self.cancel(lambda _: True)
        wait(self._flying, seconds)

    def finished(self) -> list[tuple[W, Future[Any]]]:
        """What is finished and was not given out, or last."""
        flying = [(work, future) for future, (work, _) in self._flying.items()]
        return [(work, future) for work, future in [*self._latest, *flying] if _succeeded(future)]

    def close(self, *, at_once: bool = False) -> None:
        """End the executors."""
        for seat in self._seats:
            seat.close(at_once=at_once)

    def _fill(self, due: Callable[[], W | None]) -> bool:
        """Submit work where there is room; whether any is under way or waits."""
        for seat in self._seats:
            for _ in range(seat.room() - sum(other is seat for _, other in self._flying.values())):
                work = self._again.popleft() if self._again else due()
                if work is None:
                    break
                try:
                    self._flying[seat.submit(*self._call(work))] = work, seat
                except BrokenExecutor as lost:
                    self._again.appendleft(work)
                    self._broken(seat, lost)
                    break
        if not self._flying and not self._again and (work := due()) is not None:
            self._again.append(work)
        return bool(self._flying or self._again)

    def _broken(self, seat: Seat, lost: BrokenExecutor) -> None:
        """Replace a broken executor, unless the work that it had was there in too many breakdowns."""
        ours = [(future, work) for future, (work, of) in self._flying.items() if of is seat]
        gone = [(future, work) for future, work in ours if not _succeeded(future)]
        self._useless = 0 if ours else self._useless + 1  # it took no work
        self._breakdowns.update(self._key(work) for _, work in gone)
        suspects = [work for _, work in gone if self._breakdowns[self._key(work)] >= DEATHS]
        for future, _ in gone:
            del self._flying[future]
        if suspects or self._useless >= DEATHS:
            raise self._blame(suspects, seat.exit_codes()) from lost
        self._again.extendleft(work for _, work in reversed(gone))
        seat.renew(lost)


def _succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
