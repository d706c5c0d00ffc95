"""How far long work is: a bar on a terminal; elsewhere a line on stderr now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from types import ModuleType

from rich.console import RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn

from spectheory.cli.console import remark, remarks

EVERY = 10.0
"""Seconds between two lines."""


class Bar(Progress):
    """A progress bar with something above it, which goes when the bar goes."""

    above: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """What stands above, then the bar."""
        return [*([self.above] if self.above else []), *super().get_renderables()]

    def put(self, above: RenderableType) -> None:
        """Replace what stands above the bar."""
        self.above = above
        self.refresh()


@contextmanager
def progress() -> Iterator[Bar]:
    """A progress bar on stderr; a line every :data:`EVERY` seconds where that is no terminal."""
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=remarks,
        transient=True,
        disable=not remarks.is_terminal,
    )
    with _lines(lambda: map(_line, bar.tasks)), bar:
        yield bar


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on stderr beside `what`, which cannot say how far it is; the same lines without a terminal."""
    began, spinner = time.perf_counter(), "line" if remarks.options.ascii_only else "dots"
    with (
        _lines(lambda: [f"{what}: {time.perf_counter() - began:.0f} s so far"]),
        remarks.status(escape(what), spinner=spinner) if remarks.is_terminal else nullcontext(),
    ):
        yield


def loading_torch(module: str) -> ModuleType:
    """Import a module that imports torch, which takes seconds; a terminal says so at once."""
    with working("loading torch"):
        return import_module(module)


def _line(task: Task) -> str:
    """How far a task is, and how much longer it takes at its present pace."""
    count = f"{task.completed:.0f} of {task.total:.0f}, " if task.total else ""
    left = f", about {task.time_remaining:.0f} s left" if task.time_remaining else ""
    return f"{task.description}: {count}{task.elapsed or 0:.0f} s so far{left}"


@contextmanager
def _lines(state: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Print what `state` says every :data:`EVERY` seconds, unless a terminal shows it."""
    if remarks.is_terminal:
        yield
        return
    over = threading.Event()

    def say() -> None:
        while not over.wait(EVERY):
            for line in state():
                remark(line)

    teller = threading.Thread(target=say, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
