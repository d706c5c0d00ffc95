"""How long work is stopped from outside."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TypeVar

from spectheory.cli.statuses import Status

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds after an interruption within which another one is the same."""


class Interrupted(Exception):
    """An interruption; the message says what was kept."""


@contextmanager
def terminations_interrupt() -> Iterator[None]:
    """A request to terminate is taken as an interruption: what is finished is kept, and the workers end.

    More of them while this is done are as one; one that comes :data:`PATIENCE` seconds later ends the process at once.
    An error after one is the interruption too: modules that are being loaded make an ``ImportError`` of it.
    """
    first = math.inf

    def interrupt(*_: object) -> None:
        nonlocal first
        now = time.monotonic()
        if first == math.inf:
            first = now
            raise KeyboardInterrupt
        if now - first > PATIENCE:
            with suppress(OSError):
                os.write(2, b"spectheory: interrupted again; ended at once\n")
            os._exit(Status.INTERRUPTED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {kind: signal.signal(kind, interrupt) for kind in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except Exception as error:
        if first < math.inf and not isinstance(error, Interrupted):
            raise KeyboardInterrupt from error
        raise
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def ignore_further() -> None:
    """Let what is left of the process, a line and the interpreter's end, pass undisturbed."""
    if threading.current_thread() is threading.main_thread():
        for kind in (signal.SIGTERM, signal.SIGINT):
            signal.signal(kind, signal.SIG_IGN)


def handled() -> None:
    """Tell the interpreter that an interruption was caught, so that it ends with the status it is given.

    One that passes through code run from a string, as dataclasses and named tuples are made, leaves a mark by which
    ``python -m`` ends as if nobody had caught it. The next such code clears the mark.
    """
    exec("")


def _interruptible(work: Callable[[], T]) -> T:
    """What `work` returns, from a thread beside: signals would wait for a kernel that the main thread runs.

    An interruption leaves the thread behind; it ends with the process.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done.result()
