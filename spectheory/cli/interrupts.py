"""How long work is stopped from outside."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """An interruption; the message says what was kept."""


@contextmanager
def terminations_interrupt() -> Iterator[None]:
    """A request to terminate is taken as an interruption: what is finished is kept, and the workers end."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def handled() -> None:
    """Tell the interpreter that an interruption was caught, so that it ends with the status it is given.

    One that passes through code run from a string, as dataclasses and named tuples are made, leaves a mark by which
    ``python -m`` ends as if nobody had caught it. The next such code clears the mark.
    """
    exec("")


def interruptible(work: Callable[[], T]) -> T:
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
