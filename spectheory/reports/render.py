"""Tables and drawings written out: for a terminal by rich, and as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spectheory.reports.table import GAP, Cell, Drawing, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.tree import Tree as RichTree

_LONG_WORD = 12
"""Letters of a word in a heading; a longer one is broken after a hyphen."""


def for_terminal(piece: Table | Drawing) -> RichTable | RichTree:
    """A table or a drawing for a terminal."""
    return _drawing(piece) if isinstance(piece, Drawing) else _table(piece)


def _table(table: Table) -> RichTable:
    from rich.markup import escape
    from rich.table import Table as RichTable

    made = RichTable(title=escape(table.title), box=None, pad_edge=False, padding=(0, 0, 0, GAP))
    for column in table.columns:
        left = column.kind != "numbers"
        made.add_column(
            escape(broken(column.heading)),
            justify="left" if left else "right",
            no_wrap=column.kind == "names",
            style="dim" if column.aside else "",
        )
    for row, texts in zip(table.rows, table.texts, strict=True):
        best = [isinstance(cell, Cell) and cell.best for cell in row]
        cells = zip(map(escape, texts), best, strict=True)
        made.add_row(*(f"[bold green]{text}[/]" if is_best else text for text, is_best in cells))
    return made


def broken(heading: str) -> str:
    """A heading with its long words broken after a hyphen."""
    return re.sub(rf"\S{{{_LONG_WORD + 1},}}", lambda word: word[0].replace("-", "-\n", 1), heading)


def _drawing(drawing: Drawing) -> RichTree:
    from rich.tree import Tree as RichTree

    root = RichTree(f"{drawing.title}  [dim]{drawing.legend}[/]", guide_style="dim")
    branches: dict[tuple[int, ...], RichTree] = {(): root}
    for path, (name, value) in sorted(drawing.nodes.items()):
        branches[path] = branches[path[:-1]].add(f"[bold]{name}[/]  {value}")
    return root


def markdown(table: Table) -> str:
    """A table in Markdown, without title and notes."""
    head = [column.heading for column in table.columns]
    ruler = ["---:" if column.kind == "numbers" else "---" for column in table.columns]
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (head, *table.texts)]
    return "\n".join(f"| {line} |" for line in (lines[0], " | ".join(ruler), *lines[1:]))
