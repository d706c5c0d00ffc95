"""Where the command line writes: answers to stdout, everything else to stderr."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.table import Column, Table
from rich.text import Text
from rich.tree import Tree

from spectheory.cli.encoding import writable
from spectheory.errors import OutputError
from spectheory.reports.base import columns_kept
from spectheory.reports.table import GAP, total

UNLIMITED = 1 << 20
"""A width that no table reaches."""


class _Stream(Console):
    """A console that writes what the encoding of its stream has, and plainer characters for the rest."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Every string that is printed passes here: lines, titles, cells."""
        return super().render_str(writable(text, getattr(self.file, "encoding", None)), **how)

    def on_broken_pipe(self) -> None:
        """Leave it to the caller, who knows the exit status."""
        raise BrokenPipeError


class _Answers(_Stream):
    """Stdout: fitted to the width of a terminal, and not wrapped where a file or a program reads it."""

    def __init__(self) -> None:
        super().__init__()
        self._width = None  # rich takes COLUMNS for a width; it is one on a terminal alone, where it is read again

    @property
    def endless(self) -> bool:
        """Whether lines may have any length."""
        return self._width is None and not self.file.isatty()

    @property
    def options(self) -> ConsoleOptions:
        """Those of the terminal; without one, no line is too long."""
        return super().options.update(max_width=UNLIMITED) if self.endless else super().options

    def print(self, *objects: Any, **how: Any) -> None:
        """Print lines, tables and trees."""
        for each in objects or ("",):
            if isinstance(each, Table):
                self._print_table(each)
            elif isinstance(each, Tree) and (needed := self._width_of(each)) > self.options.max_width:
                self._line(f"The drawing does not fit: it needs {needed} columns.", style="dim")
            else:
                self._line(each, **how)

    def _print_table(self, table: Table) -> None:
        """Words wrap, numbers stay whole, and columns that do not fit are named: dim ones are left out first, then from
        the right, never the first one.
        """
        width, widths = self.options.max_width, [self._widths_of(column) for column in table.columns]
        least = [lowest for lowest, _ in widths]
        kept = columns_kept(least, [column.style == "dim" for column in table.columns], width)
        shown = Table(box=None, pad_edge=False, padding=(0, 0, 0, GAP))
        for place, wide in zip(kept, _shares([widths[i] for i in kept], width), strict=True):
            column = table.columns[place]
            shown.add_column(column.header, justify=column.justify, style=column.style, overflow="fold", width=wide)
        for cells in zip(*(table.columns[i].cells for i in kept), strict=True):
            shown.add_row(*cells)
        if table.title:
            self._line(table.title, style="bold", highlight=False)
        self._line(shown)
        headings = [str(column.header).replace("-\n", "-") for column in table.columns]  # as broken after a hyphen
        left_out = [" ".join(each.split()) or "the unnamed one" for i, each in enumerate(headings) if i not in kept]
        if left_out:
            said = f"Columns left out: {', '.join(left_out)} (all need a terminal {total(least)} wide)."
            self._line(said, style="dim", highlight=False, markup=False)

    def _widths_of(self, column: Column) -> tuple[int, int]:
        """The least width that cuts nothing, and that on one line. Words wrap at blanks; numbers, which stand on the
        right, and columns marked so do not. Headings always may.
        """
        options = self.options.update(max_width=UNLIMITED)
        header, *cells = (self.measure(each, options=options) for each in (column.header, *column.cells))
        whole = column.no_wrap or column.justify == "right"
        least = [cell.maximum if whole else cell.minimum for cell in cells]
        return max([header.minimum, *least]), max([header.maximum, *(cell.maximum for cell in cells)])

    def _line(self, each: Any, **how: Any) -> None:
        super().print(each, soft_wrap=self.endless, **how)

    def _width_of(self, tree: Tree) -> int:
        return self.measure(tree, options=self.options.update(max_width=UNLIMITED)).maximum


def _shares(widths: Sequence[tuple[int, int]], most: int) -> list[int]:
    """Natural widths of columns, of which the widest that can give way do so until all fit."""
    shares = [natural for _, natural in widths]
    while total(shares) > most:
        spare = [i for i, (least, _) in enumerate(widths) if shares[i] > least]
        if not spare:
            break
        shares[max(spare, key=shares.__getitem__)] -= 1
    return [max(1, min(share, most)) for share in shares]


class _Remarks(_Stream):
    """Stderr: where it is full or nobody reads it, remarks are lost and the work goes on."""

    def print(self, *objects: Any, **how: Any) -> None:
        """Print a remark if it can be written."""
        with suppress(OSError):
            super().print(*objects, **how)


answers = _Answers()
remarks = _Remarks(stderr=True, soft_wrap=True, highlight=False)


def remark(said: str) -> None:
    """Print a sentence as it is, whatever is in it."""
    remarks.print(said, markup=False)


def ready_folder(folder: Path) -> Path:
    """Make `folder` and check that it can be written, before any work is done for it."""
    probe = folder / ".spectheory-probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({error.strerror})",
            limit="needs a writable folder",
            remedy="choose another --out",
        ) from error
    return folder
