"""How a report of the theory commands is shown: tables for a reader, or one JSON object."""

from __future__ import annotations

import json

from spectheory.cli.console import answers
from spectheory.reports import Report


def show(report: Report, *, as_json: bool) -> None:
    """Print the report to stdout."""
    if as_json:
        print(json.dumps(report.as_dict(), indent=2, allow_nan=False))
        return
    for piece in report.pieces:
        answers.print(piece, highlight=False)
    answers.print(report.headline, style="bold", highlight=False, markup=False)
    for note in report.notes:
        answers.print(note, style="dim", highlight=False, markup=False)
