"""``--report FILE``: the answer as one page to open in a browser."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spectheory.errors import OutputError, load_extra
from spectheory.reports import Report

if TYPE_CHECKING:
    from spectheory.pages import Part

SUFFIXES = (".html", ".htm")


@dataclass(frozen=True)
class Page:
    """Where the page goes, its title, and what it shows above the tables of the answer."""

    file: Path
    title: str
    parts: Callable[[], Sequence[Part]]

    @classmethod
    def asked(cls, file: Path | None, title: str, parts: Callable[[], Sequence[Part]] = tuple) -> Page | None:
        """The page that was asked for, if one was."""
        return cls(file, title, parts) if file else None

    def write(self, report: Report) -> Path:
        """Write the page."""
        from spectheory.pages import write_page

        write_page(report, self.file, title=self.title, parts=self.parts())
        return self.file


def _limited() -> bool:
    """Whether this process may have so much address space and no more."""
    if sys.platform == "win32":
        return False
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def ready_page(file: Path | None) -> None:
    """Check that the page that is asked for can be made and written, before any work is done for it."""
    if file is None:
        return
    if file.suffix.lower() not in SUFFIXES and not file.is_dir():
        raise OutputError(
            f"--report {file} is no name of a page",
            limit="needs one that ends in .html or .htm, so that no trace or log is overwritten",
            remedy=f"write --report {file}.html",
        )
    for module in ("jinja2", "altair", "vl_convert", "markdown_it"):
        load_extra(module, extra="report")
    if _limited():
        from spectheory.pages.page import library

        library()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_fifo():
            raise OSError(errno.EINVAL, "is a pipe, which may have no reader")
        new = not file.exists()
        with file.open("a", encoding="utf-8"):
            pass
        if new:
            file.unlink()
    except OSError as error:
        raise OutputError(
            f"{file} cannot be written ({error.strerror})",
            limit="needs a writable file",
            remedy="choose another --report",
        ) from error
