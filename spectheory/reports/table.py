"""Tables and drawings as data: typed columns, rows of values, notes. ``render`` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spectheory.intervals import Interval

GAP = 2
"""Blanks between columns."""


@dataclass(frozen=True)
class Cell:
    """A value with a mark before or after it; the best one of a table is set off."""

    value: Value
    before: str = ""
    after: str = ""
    best: bool = False


Value = Interval | float | int | str | None
"""What a cell holds: words and whole numbers as they are, other numbers rounded, None as "-"."""
Row = Sequence[Value | Cell]


@dataclass(frozen=True)
class Column:
    """A column: its heading, the unit written after each number, and how many digits follow the point.

    ``words`` may wrap and ``names`` may not; both stand on the left, ``numbers`` on the right. Columns `aside` are for
    comparison: they are dim, and the first to be left out where a terminal is narrow. `meaning` defines the column.
    """

    heading: str
    unit: str = ""
    digits: int = 2
    kind: Literal["numbers", "words", "names"] = "numbers"
    signed: bool = False
    aside: bool = False
    meaning: str = ""

    def text(self, cell: Value | Cell) -> str:
        """What stands in a cell."""
        if isinstance(cell, Cell):
            return f"{cell.before}{self.text(cell.value)}{cell.after}"
        if cell is None or isinstance(cell, str | int):
            return "-" if cell is None else str(cell)
        if not self.signed:
            return f"{number(cell, self.digits)}{self.unit}"
        if isinstance(cell, Interval):
            return f"{'+' if cell.best >= 0 else ''}{cell.short(self.digits)}{self.unit}"
        return f"{cell:+.{self.digits}f}{self.unit}"


@dataclass(frozen=True)
class Table:
    """A title, columns, a row of cells for each line, and notes that stand below."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    @property
    def texts(self) -> list[list[str]]:
        """The cells as they are written."""
        return [[column.text(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.rows]


@dataclass(frozen=True)
class Drawing:
    """A rooted tree: the words at the root, what follows them, and a name and a value for each node by its path."""

    title: str
    legend: str
    nodes: Mapping[tuple[int, ...], tuple[str, str]]
    notes: Sequence[str] = ()


def number(value: Interval | float, digits: int = 2) -> str:
    """A number with its interval if that is statistical; never a negative zero."""
    return value.short(digits) if isinstance(value, Interval) else f"{round(value, digits) + 0.0:.{digits}f}"
