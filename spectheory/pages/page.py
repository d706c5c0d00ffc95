"""A report and its charts as one file, which needs no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from spectheory import __version__
from spectheory.errors import load_extra
from spectheory.files import write_whole
from spectheory.pages.chart import Chart
from spectheory.pages.coloured import Coloured
from spectheory.reports.base import Report
from spectheory.reports.table import Cell, Drawing, Table

_HERE = Path(__file__).parent


def write_page(
    report: Report, file: Path, *, title: str, charts: Sequence[Chart] = (), texts: Sequence[Coloured] = ()
) -> None:
    """Write the page; it appears when whole. Everything that is not ours is escaped."""
    page = _template().render(
        title=title,
        version=__version__,
        report=report,
        tables=[_Shown(piece) for piece in report.pieces if isinstance(piece, Table)],
        drawings=[piece for piece in report.pieces if isinstance(piece, Drawing)],
        charts=charts,
        texts=texts,
        specs=_safe({chart.name: chart.spec for chart in charts}),
        answer=_safe(report.as_dict()),
        style=(_HERE / "page.css").read_text(),
        script=(_HERE / "page.js").read_text(),
        library=_library() if charts else "",
    )
    write_whole(file, lambda partial: partial.write_text(page, encoding="utf-8"))


class _Shown:
    """A table with its cells as they are written, and what they are sorted by."""

    def __init__(self, table: Table) -> None:
        self.title, self.columns, self.notes = table.title, table.columns, table.notes
        self.rows = [
            [(text, _key(cell), isinstance(cell, Cell) and cell.best) for text, cell in zip(texts, row, strict=True)]
            for texts, row in zip(table.texts, table.rows, strict=True)
        ]


def _key(cell: Any) -> Any:
    value = cell.value if isinstance(cell, Cell) else cell
    return getattr(value, "best", value)


def _safe(data: Any) -> str:
    """JSON for a script element: no end tag can stand in it."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def _template() -> Any:
    jinja = load_extra("jinja2", extra="report")
    return jinja.Environment(autoescape=True, undefined=jinja.StrictUndefined).from_string(
        (_HERE / "page.html").read_text()
    )


@cache
def _library() -> str:
    """The code that draws specifications, to stand in the page."""
    return str(load_extra("vl_convert", extra="report").javascript_bundle())
