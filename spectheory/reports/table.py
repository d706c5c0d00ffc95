"""Tables and drawings as data: typed columns, rows of values, notes; how they are written, by rich and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from spectheory.intervals import Interval

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.tree import Tree as RichTree

GAP = 2
"""Blanks between columns."""
_LONG_WORD = 12
"""Letters of a word in a heading; a longer one is broken after a hyphen."""


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
    `at` is where an object has the value of its row: a dotted place, or a function; by default the heading in snake
    case.
    """

    heading: str
    unit: str = ""
    digits: int = 2
    kind: Literal["numbers", "words", "names"] = "numbers"
    signed: bool = False
    aside: bool = False
    meaning: str = ""
    at: str | Callable[[Any], Value | Cell] = ""

    def of(self, source: Any, *, best: bool = False) -> Value | Cell:
        """What an object, or a mapping, has in this column; None where it has nothing. The `best` is set off; a cell
        says so itself.

        Examples
        --------
        >>> Column("tokens per call").of({"tokens_per_call": 1.5}), Column("T", at="settings.temperature").of({})
        (1.5, None)
        """
        if callable(self.at):
            value = self.at(source)
        else:
            value = source
            for name in (self.at or "_".join(self.heading.split())).split("."):
                if value is not None:
                    value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
            value = Interval(**value) if isinstance(value, Mapping) else value
        return Cell(value, best=True) if best and not isinstance(value, Cell) else value

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

    @classmethod
    def of(
        cls, title: str, columns: Sequence[Column], sources: Iterable[Any], notes: Sequence[str] = (), best: Any = None
    ) -> Table:
        """A row for each source: what it has in every column; that of the `best` one is set off."""
        rows = [[column.of(each, best=each is best) for column in columns] for each in sources]
        return cls(title, columns, rows, notes)

    @property
    def texts(self) -> list[list[str]]:
        """The cells as they are written."""
        return [[column.text(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.rows]

    @property
    def markdown(self) -> str:
        """The table in Markdown, without title and notes."""
        head = [column.heading for column in self.columns]
        ruler = ["---:" if column.kind == "numbers" else "---" for column in self.columns]
        lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (head, *self.texts)]
        return "\n".join(f"| {line} |" for line in (lines[0], " | ".join(ruler), *lines[1:]))

    @property
    def widths(self) -> list[int]:
        """The least width of each column, where headings and words wrap."""
        widths, texts = [], self.texts
        for i, column in enumerate(self.columns):
            cells = [row[i] for row in texts]
            pieces = [word for cell in cells for word in cell.split()] if column.kind == "words" else cells
            widths.append(max(map(len, [*_broken(column.heading).split(), *pieces]), default=0))
        return widths

    @property
    def width(self) -> int:
        """The letters that it takes where headings and words wrap."""
        return total(self.widths)


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


def total(widths: Sequence[int]) -> int:
    """The letters that columns of these widths take, with the gaps between them."""
    return sum(widths) + GAP * (len(widths) - 1)


def _broken(heading: str) -> str:
    """A heading with its long words broken after a hyphen."""
    return re.sub(rf"\S{{{_LONG_WORD + 1},}}", lambda word: word[0].replace("-", "-\n", 1), heading)


def for_terminal(piece: Table | Drawing) -> RichTable | RichTree:
    """A table or a drawing for a terminal."""
    from rich.markup import escape
    from rich.table import Table as RichTable
    from rich.tree import Tree as RichTree

    if isinstance(piece, Drawing):
        root = RichTree(f"{piece.title}  [dim]{piece.legend}[/]", guide_style="dim")
        branches: dict[tuple[int, ...], RichTree] = {(): root}
        for path, (name, value) in sorted(piece.nodes.items()):
            branches[path] = branches[path[:-1]].add(f"[bold]{name}[/]  {value}")
        return root
    made = RichTable(title=escape(piece.title), box=None, pad_edge=False, padding=(0, 0, 0, GAP))
    for column in piece.columns:
        made.add_column(
            escape(_broken(column.heading)),
            justify="right" if column.kind == "numbers" else "left",
            no_wrap=column.kind == "names",
            style="dim" if column.aside else "",
        )
    for row, texts in zip(piece.rows, piece.texts, strict=True):
        best = [isinstance(cell, Cell) and cell.best for cell in row]
        cells = zip(map(escape, texts), best, strict=True)
        made.add_row(*(f"[bold green]{text}[/]" if is_best else text for text, is_best in cells))
    return made
