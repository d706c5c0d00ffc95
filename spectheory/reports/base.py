"""A report: the answer of any command, for a terminal and as one JSON object; and what every brief answer keeps to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spectheory.answers.base import Part, plain
from spectheory.deployment import EngineSettings
from spectheory.intervals import Interval
from spectheory.reports.table import Drawing, Table, total

ANSWER_SCHEMA = 1
"""Version of every answer whose content states none of its own."""
WIDTH = 80
"""Letters of a line of a brief answer."""
LONGEST_NAME = 18
"""Letters of the longest built-in rule."""
MOST_ROWS = 8
BEYOND = 2
"""Rows after the best k."""


@dataclass(frozen=True)
class Brief:
    """What is printed first: a verdict of two lines, tables of 80 columns, and notes that change the reading."""

    verdict: Sequence[str]
    pieces: Sequence[Table]
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, lines: Sequence[str], tables: Iterable[Table], notes: Sequence[str] = ()) -> Brief:
        """The lines that say something, and the tables as far as 80 columns hold them."""
        return cls([line for line in lines if line], [*map(narrowed, tables)], notes)


@dataclass(frozen=True)
class Report:
    """The answer in one sentence (`headline`), in tables and drawings (`pieces`), and as data (`content`).

    `notes` are what a reader must know to trust the numbers, one sentence each. `brief` is what to show first, if that
    is not all. `settings` are those to paste into engines: of the first one the brief answer shows the line.
    """

    content: Part
    pieces: Sequence[Table | Drawing]
    headline: str
    notes: Sequence[str] = ()
    brief: Brief | None = None
    settings: Sequence[EngineSettings] = ()

    def as_dict(self) -> dict[str, Any]:
        """The answer as one JSON-ready object."""
        words = {"headline": self.headline, "notes": list(self.notes)}
        return {"schema": ANSWER_SCHEMA} | plain(self.content) | words


def short(name: str, most: int = LONGEST_NAME) -> str:
    """A name of at most `most` letters.

    Examples
    --------
    >>> short("recursive-distinct"), short("my_package.rules:MyVerification")
    ('recursive-distinct', 'my_package.rule...')
    """
    return name if len(name) <= most else f"{name[: most - 3]}..."


def narrowed(table: Table) -> Table:
    """The table without the columns that 80 do not hold: those aside first, then from the right, never the first."""
    kept = columns_kept(table.widths, [column.aside for column in table.columns], WIDTH)
    rows = [[row[i] for i in kept] for row in table.rows]
    return replace(table, columns=[table.columns[i] for i in kept], rows=rows)


def columns_kept(widths: Sequence[int], aside: Sequence[bool], most: int) -> list[int]:
    """Which columns stay so that all take `most` letters: those aside go first, then from the right, never the first.

    Examples
    --------
    >>> columns_kept([4, 6, 6, 6], [False, False, True, False], 20)
    [0, 1, 3]
    """
    kept = list(range(len(widths)))
    while len(kept) > 1 and total([widths[i] for i in kept]) > most:
        kept.remove(([i for i in kept[1:] if aside[i]] or kept)[-1])
    return kept


def sizes_shown(sizes: Iterable[int], best: int) -> list[int]:
    """Numbers of drafts up to two beyond the best: all small ones, powers of two, and those around the best.

    Examples
    --------
    >>> sizes_shown(range(1, 33), 16)
    [1, 2, 3, 4, 5, 6, 7, 8, 14, 15, 16, 17, 18]
    """
    near = [size for size in sorted(set(sizes)) if size <= best + BEYOND]
    return [size for size in near if size <= MOST_ROWS or size & (size - 1) == 0 or size >= best - BEYOND]


def point(value: Interval, unit: str = "") -> str:
    """The value for a sentence: of bounds, whose middle is no estimate, both ends.

    Examples
    --------
    >>> point(Interval(1.5, 1.6, 1.75, "statistical"), "x"), point(Interval(1.4, 1.5, 1.7, "bound"))
    ('1.60x', '1.40 to 1.70')
    """
    return _ends(value, unit) if value.kind == "bound" and value.low < value.high else f"{value.best:.2f}{unit}"


def range_words(value: Interval, unit: str = "") -> str:
    """What is known of the error of a value, in words; empty for one that is exact.

    Examples
    --------
    >>> range_words(Interval(1.5, 1.6, 1.75, "statistical"), "x")
    '95%: 1.50x to 1.75x'
    >>> range_words(Interval(1.2, 1.4, 1.6, "estimate")), range_words(Interval.estimate(1.4))
    ('an estimate, 1.20 to 1.60', 'an estimate of unknown error')
    """
    if value.kind == "statistical":
        return f"95%: {_ends(value, unit)}"
    if value.kind == "estimate":
        return f"an estimate, {_ends(value, unit)}" if value.low < value.high else "an estimate of unknown error"
    return "certain bounds" if value.kind == "bound" else ""


def given_ratio(c: float, value: Interval, error: str) -> str:
    """What is known of a speed-up if c is right; `error` names the only error that its range holds.

    Examples
    --------
    >>> given_ratio(0.05, Interval(2.39, 2.4, 2.41, "statistical"), "prompts")
    'given c = 0.05: 2.39x to 2.41x (95% over prompts)'
    """
    if value.kind == "statistical":
        return f"given c = {c:g}: {_ends(value, 'x')} (95% over {error})"
    return f"given c = {c:g}: {range_words(value, 'x') or point(value, 'x')}"


def deviations(z: float | None, off: float) -> float:
    """A difference `off` in standard deviations; None in JSON is infinite, with its sign.

    Examples
    --------
    >>> deviations(1.5, 3.0), deviations(None, -2.0)
    (1.5, -inf)
    """
    return math.copysign(math.inf, off) if z is None else float(z)


def _ends(value: Interval, unit: str) -> str:
    return f"{value.low:.2f}{unit} to {value.high:.2f}{unit}"
