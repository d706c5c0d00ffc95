"""A report: the same answer as tables for the terminal and as one JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.intervals import Interval

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree as Drawing


@dataclass(frozen=True)
class Report:
    """An answer in both forms.

    Attributes
    ----------
    content : mapping
        The JSON object; :func:`plain` makes it so.
    pieces : sequence
        Tables and trees for the terminal, in order.
    headline : str
        The answer in one sentence.
    notes : sequence of str
        What a reader must know to trust the numbers, one sentence each.
    """

    content: Mapping[str, Any]
    pieces: Sequence[Table | Drawing]
    headline: str
    notes: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """The answer as one JSON-ready object."""
        return dict(plain({**self.content, "headline": self.headline, "notes": list(self.notes)}))


def plain(value: Any) -> Any:
    """`value` in what JSON knows: intervals as objects, arrays as lists, and null for what is not finite."""
    if isinstance(value, Interval):
        return plain(value.as_dict()) if math.isfinite(value.best) else None
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number(value: Interval | float | None, digits: int = 2) -> str:
    """A value for a table, with its interval if that is statistical; "-" if there is none."""
    if value is None:
        return "-"
    if not isinstance(value, Interval):
        return f"{value:.{digits}f}"
    return value.short(digits)


def table(title: str, columns: Sequence[str], *, words: int = 0) -> Table:
    """An empty table whose first `words` columns hold words, which may wrap, and the others numbers."""
    from rich.table import Table

    empty = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 0, 0, 2))
    for place, name in enumerate(columns):
        empty.add_column(name, justify="left" if place < words else "right")
    return empty
