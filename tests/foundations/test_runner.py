"""Work on worker processes: all of it is done, in any order; their cores, and the interrupts that they do not hear."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spectheory.errors import WorkerError
from spectheory.processes import allowed_cores, begin, share_of, starting_on
from spectheory.runner import Seat, Spread


def process() -> Executor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=begin)


def square(n: int) -> int:
    return n * n


def deadly(folder: Path, n: int) -> int:
    """Kills its worker as often as the folder has files, at one number."""
    for death in folder.iterdir() if n == 3 else ():
        death.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return n * n


def spread(seats: list[Seat], function: Callable[..., int] = square) -> Spread[int]:
    def blame(works: list[int], codes: list[int]) -> WorkerError:
        return WorkerError(f"died with {works} by {codes}", limit="kept", remedy="look")

    return Spread(seats, lambda n: (function, n), lambda n: n, blame)


def taken(due: deque[int]) -> Callable[[], int | None]:
    return lambda: due.popleft() if due else None


def results(work: Spread[int], due: deque[int]) -> Iterator[tuple[int, int]]:
    return ((n, future.result()) for n, future in work.results(taken(due)))


@pytest.mark.parametrize(("seats", "room"), [(1, 1), (1, 4), (3, 1)])
def test_all_is_done_and_more_may_come(seats: int, room: int) -> None:
    """Work that a result brings is done too."""
    places, due = [Seat(lambda: ThreadPoolExecutor(room), lambda: room) for _ in range(seats)], deque(range(9))
    values = {}
    for n, value in results(spread(places), due):
        values[n] = value
        if n < 9:
            due.append(n + 100)
    assert values == {n: n * n for n in [*range(9), *range(100, 109)]}


def test_no_more_is_under_way_than_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room that comes later is used, and none at first is waited for."""
    monkeypatch.setattr("spectheory.runner._LOOK", 0.01)
    room, flying = iter([0, 0, 1, 1, 2, *[3] * 99]), list[Future[int]]()

    class Counting(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            flying.append(super().submit(fn, *args, **kwargs))
            return flying[-1]

    last = [0]

    def now() -> int:
        last[0] = next(room, 3)
        assert sum(not future.done() for future in flying) <= 3
        return last[0]

    seat = Seat(lambda: Counting(1), now)
    assert dict(results(spread([seat]), deque(range(20)))) == {n: n * n for n in range(20)}


def test_a_death_costs_its_own_work_alone(tmp_path: Path) -> None:
    """Each seat is renewed by itself; the third death with one piece of work ends the run, by name and cause."""
    for deaths in (2, 3):
        for death in range(deaths):
            (tmp_path / str(death)).touch()
        seats = [Seat(process, lambda: 1), Seat(process, lambda: 1)]
        work = spread(seats, partial(deadly, tmp_path))
        with closing(work):
            if deaths == 2:
                assert sorted(results(work, deque(range(6)))) == [(n, n * n) for n in range(6)]
            else:
                with pytest.raises(WorkerError, match=r"died with \[3\] by \[-9\]"):
                    dict(results(work, deque(range(6))))
            work.close(at_once=True)
        assert not list(tmp_path.iterdir())
    assert not multiprocessing.active_children()


def test_a_broken_executor_that_was_given_ends_the_run() -> None:
    class Broken(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise BrokenExecutor("dead")

    with pytest.raises(WorkerError, match="pass a function that makes executors"):
        dict(results(spread([Seat(Broken(1), lambda: 1)]), deque([1])))
    with pytest.raises(WorkerError, match=r"died with \[\] by \[\]"):
        dict(results(spread([Seat(lambda: Broken(1), lambda: 1)]), deque([1])))


def test_what_was_finished_is_not_lost_with_an_interrupt() -> None:
    """The result that was given out last, and those that finish in the grace."""
    work = spread([Seat(lambda: ThreadPoolExecutor(1), lambda: 4)])
    for n, _ in work.results(taken(deque(range(9)))):
        if n == 2:
            break
    work.drain(None)
    assert {n for n, _ in work.finished()} >= {2}
    assert all(future.result() == n * n for n, future in work.finished())
    work.close(at_once=True)


linux = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are chosen on Linux alone")


@linux
def test_a_process_keeps_to_the_cores_it_was_started_on() -> None:
    first, before = min(allowed_cores()), allowed_cores()
    code = "import os, signal; print(os.sched_getaffinity(0), signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with starting_on([first]):
        started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert started.stdout.strip() == f"{{{first}}} {{{signal.SIGINT!r}}}"
    assert allowed_cores() == before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_an_interruption_meanwhile_is_not_lost() -> None:
    before = allowed_cores()

    def start() -> None:
        with starting_on(sorted(before)[:1]):
            signal.raise_signal(signal.SIGINT)  # to this thread, where it is blocked

    with pytest.raises(KeyboardInterrupt):
        start()
    assert allowed_cores() == before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize(("workers", "cores"), [(1, 5), (2, 5), (3, 8), (8, 8), (5, 2)])
def test_every_core_has_a_worker_and_shares_are_even(workers: int, cores: int) -> None:
    shares = [share_of(i, workers, range(cores)) for i in range(workers)]
    assert {core for share in shares for core in share} == set(range(cores))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    if workers <= cores:
        assert sum(map(len, shares)) == cores
