"""Where the command line writes: answers to stdout, everything else to stderr."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from spectheory.cli.encoding import writable
from spectheory.cli.fitting import UNLIMITED, fitted
from spectheory.errors import OutputError


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
        fit = fitted(table, self, self.options.max_width)
        if table.title:
            self._line(table.title, style="bold", highlight=False)
        self._line(fit.table)
        if fit.left_out:
            self._line(
                f"Columns left out: {', '.join(fit.left_out)} (all need a terminal {fit.needed} wide).",
                style="dim",
                highlight=False,
                markup=False,
            )

    def _line(self, each: Any, **how: Any) -> None:
        super().print(each, soft_wrap=self.endless, **how)

    def _width_of(self, tree: Tree) -> int:
        return self.measure(tree, options=self.options.update(max_width=UNLIMITED)).maximum


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
