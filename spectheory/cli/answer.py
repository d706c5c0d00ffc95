"""How every answer is shown: its headline, tables and notes for a reader, or one JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from spectheory.cli.console import answers, remarks
from spectheory.errors import MissingExtraError, load_extra
from spectheory.files import write_whole
from spectheory.reports import Report
from spectheory.reports.render import for_terminal


def show(
    report: Report, *, as_json: bool, file: Path | None = None, figures: Callable[[], list[Path]] = lambda: []
) -> None:
    """Write the report to a file as JSON, with its figures, if a file is named; then print it to stdout.

    Files come first, so that they are there even if nobody reads the output to its end.
    """
    written = _written(report, file, figures) if file else []
    if as_json:
        print(_text(report))
    else:
        answers.print(report.headline, style="bold", highlight=False, markup=False)
        for piece in report.pieces:
            answers.print(for_terminal(piece), highlight=False)
            _dim(piece.notes)
        _dim(report.notes)
    if written:
        remarks.print(f"written: {', '.join(map(str, written))}", markup=False)


def _text(report: Report) -> str:
    return json.dumps(report.as_dict(), indent=2, allow_nan=False)


def _dim(lines: Sequence[str]) -> None:
    for line in lines:
        answers.print(line, style="dim", highlight=False, markup=False)


def _written(report: Report, file: Path, figures: Callable[[], list[Path]]) -> list[Path]:
    """Write the report as JSON, and its figures if matplotlib is installed."""
    write_whole(file, lambda partial: partial.write_text(_text(report) + "\n"))
    return [file, *figures_beside(figures)]


def figures_beside(write: Callable[[], list[Path]]) -> list[Path]:
    """Write figures and return their files; without matplotlib there are none, and a remark says what is missing."""
    try:
        load_extra("matplotlib", extra="plots")
    except MissingExtraError as error:
        remarks.print(f"figures are left out: {error}", markup=False)
        return []
    return write()
