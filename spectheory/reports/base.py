"""A report: the answer of any command, for a terminal and as one JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.intervals import Interval
from spectheory.reports.table import Drawing, Table

ANSWER_SCHEMA = 1
"""Version of every answer whose content states none of its own; ``reports/schemas`` describes them."""


@dataclass(frozen=True)
class Brief:
    """What is printed first: a verdict of two lines, tables of 80 columns, and notes that change the reading."""

    verdict: Sequence[str]
    pieces: Sequence[Table]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Report:
    """The answer in one sentence (`headline`), in tables and drawings (`pieces`), and as data (`content`).

    `notes` are what a reader must know to trust the numbers, one sentence each. `brief` is what to show first, if that
    is not all.
    """

    content: Mapping[str, Any]
    pieces: Sequence[Table | Drawing]
    headline: str
    notes: Sequence[str] = ()
    brief: Brief | None = None

    def as_dict(self) -> dict[str, Any]:
        """The answer as one JSON-ready object."""
        return dict(
            plain({"schema": ANSWER_SCHEMA, **self.content, "headline": self.headline, "notes": list(self.notes)})
        )


def plain(value: Any) -> Any:
    """`value` in JSON's types: intervals become objects, arrays lists, and what is not finite null."""
    if isinstance(value, Interval):
        return plain(value.as_dict()) if math.isfinite(value.best) else None
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
