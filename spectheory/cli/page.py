"""``--report FILE``: the answer as one page to open in a browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spectheory.errors import OutputError, load_extra
from spectheory.reports import Report

if TYPE_CHECKING:
    from spectheory.pages import Chart, Coloured


@dataclass(frozen=True)
class Page:
    """Where the page goes, its title, and what it shows beside the tables of the answer."""

    file: Path
    title: str
    charts: Callable[[], Sequence[Chart]] = tuple
    texts: Callable[[], Sequence[Coloured]] = tuple

    def write(self, report: Report) -> Path:
        """Write the page."""
        from spectheory.pages import write_page

        write_page(report, self.file, title=self.title, charts=self.charts(), texts=self.texts())
        return self.file


def ready_page(file: Path) -> None:
    """Check that a page can be made and written, before any work is done for it."""
    for module in ("jinja2", "altair", "vl_convert"):
        load_extra(module, extra="report")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8"):
            pass
        if not file.stat().st_size:
            file.unlink()
    except OSError as error:
        raise OutputError(
            f"{file} cannot be written ({error.strerror})",
            limit="needs a writable file",
            remedy="choose another --report",
        ) from error
