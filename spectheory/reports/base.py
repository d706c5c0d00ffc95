"""A report: the answer of any command, for a terminal and as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectheory.answers.base import Part, plain
from spectheory.reports.table import Drawing, Table

ANSWER_SCHEMA = 1
"""Version of every answer whose content states none of its own."""


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

    content: Part | Mapping[str, Any]
    pieces: Sequence[Table | Drawing]
    headline: str
    notes: Sequence[str] = ()
    brief: Brief | None = None

    def as_dict(self) -> dict[str, Any]:
        """The answer as one JSON-ready object."""
        told = {"headline": self.headline, "notes": list(self.notes)}
        return {"schema": ANSWER_SCHEMA} | dict(plain(self.content)) | told
