"""Worker processes: the cores that they run on, how they end, and when they are given up."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import forkserver, parent_process, resource_tracker
from multiprocessing.context import BaseContext

DEATHS = 3
"""Work that was with the workers in so many breakdowns is not tried again."""
WHY_WORKERS_DIE = 'check the memory, and that the script has `if __name__ == "__main__":`'

_loaded: list[str] = []
"""Modules that later workers are forked with."""


def allowed_cores() -> frozenset[int]:
    """Numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def processors() -> int:
    """How many cores this process may use."""
    return len(allowed_cores())


def share_of(worker: int, workers: int, cores: Sequence[int]) -> Sequence[int]:
    """The cores of one of several workers: neighbours, and one that it shares where there are more workers than cores.

    Examples
    --------
    >>> [share_of(i, 2, [0, 1, 4, 5, 6]) for i in range(2)]
    [[0, 1], [4, 5, 6]]
    >>> [share_of(i, 3, [0, 1]) for i in range(3)]
    [[0], [1], [0]]
    """
    if workers > len(cores):
        return [cores[worker % len(cores)]]
    return cores[worker * len(cores) // workers : (worker + 1) * len(cores) // workers]


@contextlib.contextmanager
def starting_on(cores: Sequence[int]) -> Iterator[None]:
    """Processes that this thread starts meanwhile keep to these cores (on Linux) and hear no keyboard interrupts.

    An interruption of this process is raised at the end, or at once where it has other threads.
    """
    with _deaf():
        if not hasattr(os, "sched_setaffinity"):
            yield
            return
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would end the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def prepare(*modules: str) -> None:
    """Begin to load modules for the workers of later pools, in a process beside this one; once in a process.

    Workers are forked from it with the modules loaded (:func:`fresh_processes`), which must start no threads of Python.
    Nothing happens but on Linux.
    """
    _loaded[:] = modules
    if sys.platform == "linux":
        _serve()


def fresh_processes(*modules: str) -> BaseContext:
    """How workers are started: forked from a process that has loaded what :func:`prepare` was given, else `modules`,
    and has nothing else of this one; where forking is not safe, each is a new interpreter.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    _loaded[:] = _loaded or modules
    _serve()
    return multiprocessing.get_context("forkserver")


def _serve() -> None:
    """Start the process that workers are forked from, unless it runs."""
    forkserver.set_forkserver_preload(_loaded)
    with _deaf():
        forkserver.ensure_running()


def begin() -> None:
    """Make this process a worker: keyboard interrupts are left to its parent, and it ends with it however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker of a run that is killed would otherwise finish its work, or wait for more forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
