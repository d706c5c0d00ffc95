"""A table as a page shows it: its cells as they are written, what they sort by, what its columns mean."""

from __future__ import annotations

import math
from typing import Any

from spectheory.reports.meanings import meanings
from spectheory.reports.table import Cell, Table


class Shown:
    """A table for the template."""

    def __init__(self, table: Table) -> None:
        self.title, self.columns, self.notes = table.title, table.columns, table.notes
        self.rows = [
            [(text, _key(cell), isinstance(cell, Cell) and cell.best) for text, cell in zip(texts, row, strict=True)]
            for texts, row in zip(table.texts, table.rows, strict=True)
        ]
        self.meanings = [line.strip() for line in meanings(table) if not line.rstrip().endswith(":")]


def _key(cell: Any) -> Any:
    value = cell.value if isinstance(cell, Cell) else cell
    key = getattr(value, "best", value)
    if isinstance(key, float) and math.isinf(key):
        return "Infinity" if key > 0 else "-Infinity"  # as scripts read it
    return "" if key is None else key
