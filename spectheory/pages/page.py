"""A report and its charts as one file, which needs no network."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from spectheory import __version__
from spectheory.answers import plain
from spectheory.errors import OutputError, load_extra
from spectheory.files import strip_control_characters, write_whole
from spectheory.pages.parts import Part, Shown
from spectheory.pages.vega import VegaChart
from spectheory.plots.style import PALETTE
from spectheory.reports.base import Report
from spectheory.reports.table import Table

_HERE = Path(__file__).parent
LARGEST = 32_000_000
"""Bytes of a page that browsers still open at once; beyond it a page is refused."""


def write_page(report: Report, file: Path, *, title: str, parts: Sequence[Part] = ()) -> None:
    """Write the page; it appears when whole. Everything that is not ours is escaped.

    Raises
    ------
    OutputError
        If the answer is too large for a page.
    """
    specs = {part.name: part.spec for part in parts if isinstance(part, VegaChart)}
    provenance = report.as_dict().get("provenance")
    page = _template().render(
        title=title,
        version=__version__,
        report=report,
        parts=parts,
        tables=[Shown(piece) for piece in report.pieces if isinstance(piece, Table)],
        provenance=json.dumps(plain(provenance), indent=1, ensure_ascii=False) if provenance else "",
        specs=_safe(specs),
        answer=_safe(report.as_dict()),
        palette=PALETTE,
        style=(_HERE / "page.css").read_text(encoding="utf-8"),
        script=(_HERE / "page.js").read_text(encoding="utf-8"),
        library=library() if specs else "",
    )
    content = page.encode(errors="replace")  # halves of letters, which a token may hold
    if (size := len(content)) > LARGEST:
        raise OutputError(
            f"the report takes {size / 1e6:.0f} MB",
            limit=f"a page holds {LARGEST / 1e6:.0f} MB",
            remedy="ask for fewer rules or a smaller --k-max, or use --json",
        )
    write_whole(file, lambda partial: partial.write_bytes(content))


def _safe(data: Any) -> str:
    """JSON for a script element: no end tag can stand in it."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def _template() -> Any:
    jinja = load_extra("jinja2", extra="report")
    return jinja.Environment(
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: strip_control_characters(value) if type(value) is str else value,
    ).from_string((_HERE / "page.html").read_text(encoding="utf-8"))


@cache
def library() -> str:
    """The code that draws specifications, to stand in the page.

    It is made in a process of its own: where the address space is limited, what makes it ends by a trap.
    """
    load_extra("vl_convert", extra="report")
    code = "import sys, vl_convert; sys.stdout.write(vl_convert.javascript_bundle())"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False)
    if made.returncode or not made.stdout:
        raise OutputError(
            f"the charts of a page cannot be made (vl-convert ended with status {made.returncode})",
            limit="it reserves some 70 GB of address space",
            remedy="raise the limit (ulimit -v), or leave --report out",
        )
    return made.stdout
