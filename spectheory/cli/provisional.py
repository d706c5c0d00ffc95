"""The provisional answer: in place above the bar on a terminal, elsewhere once on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from spectheory.cli.console import remarks
from spectheory.cli.progress import Bar
from spectheory.measure import Progress
from spectheory.reports import Report
from spectheory.reports.table import for_terminal
from spectheory.trace import Trace

Brief = Callable[[Trace, float | None], Report]
"""A short answer from a provisional trace, with the seconds that the rest takes, if they are known."""


class Pace:
    """How long the prompts that are left will take, if they take as long as those measured so far."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._state: Progress | None = None

    def at(self, state: Progress) -> None:
        """Note how far the measurement is."""
        self._state = state

    @property
    def left(self) -> float | None:
        """Seconds; None before a prompt was measured here."""
        state = self._state
        if state is None or state.done == state.resumed:
            return None
        return (time.monotonic() - self._began) / (state.done - state.resumed) * (state.total - state.done)


def show_briefly(bar: Bar, pace: Pace, brief: Brief) -> Callable[[Trace], None]:
    """What shows the short answer of each stage; without a terminal that of the first stage alone."""
    told = False

    def show(trace: Trace) -> None:
        nonlocal told
        if remarks.is_terminal:
            bar.put(Group(*_lines(brief(trace, pace.left))))
        elif not told:
            for line in _lines(brief(trace, pace.left)):
                remarks.print(line)
        told = True

    return show


def _lines(report: Report) -> list[RenderableType]:
    """Headline, tables and notes; what is shown in place is wrapped here, since the bar cuts long lines."""
    wrapped = partial(Text, no_wrap=False, overflow="fold") if remarks.is_terminal else Text
    notes = [wrapped(note, style="dim") for note in report.notes]
    return [wrapped(report.headline, style="bold"), *map(for_terminal, report.pieces), *notes]
