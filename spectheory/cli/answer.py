"""How every answer is shown: headline, tables and notes for a reader, one JSON object, or a page for a browser."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.answers import Part, plain
from spectheory.cli.console import answers, remark
from spectheory.deployment import EngineSettings
from spectheory.errors import OutputError, load_extra
from spectheory.files import strip_control_characters, write_whole
from spectheory.reports import Report
from spectheory.reports.base import ANSWER_SCHEMA
from spectheory.reports.meanings import meanings
from spectheory.reports.table import Drawing, Table, for_terminal

if TYPE_CHECKING:
    from spectheory.pages import Part as PagePart


SUFFIXES = (".html", ".htm")


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
        from spectheory.pages.page import drawing_code

        drawing_code()
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


MORE = "More: --all (every table and note), --explain (what the columns mean)"
"""Where to look further: the last line of a brief answer."""


def show(
    report: Report,
    question: Any,
    name: str = "",
    *,
    figures: Callable[[Path], list[Path]] = lambda folder: [],
    last: Callable[[], Report] | None = None,
    title: str = "",
    parts: Callable[[], Sequence[PagePart]] = tuple,
) -> None:
    """Show an answer as the options of a command say: ``json``, and those it has of ``out``, ``report``, ``all`` and
    ``explain``.

    Of a named answer the JSON and the `figures` are written to the folder `out`; the page `report` has a `title`, and
    `parts` above the tables. A command without ``all`` prints every table.

    `last` is a long last step: the report with further pieces, which are printed below the first ones. Files are all
    written even if nobody reads the output to its end. One JSON object is printed, when all of it is known.
    """
    reader, out, page = _Reader(), getattr(question, "out", None), getattr(question, "report", None)
    how = {"all": getattr(question, "all", True), "explain": getattr(question, "explain", False)}
    file = out / f"{name}.json" if out and name else None
    if file:
        _write(report, file)
    if not question.json:
        reader.show(lambda: _print(report, **how))
    elif last is None:
        reader.show(lambda: print(_text(report)))
    if not (file or page):
        reader.stay()
    written: list[Path] = [file, *figures(file.parent)] if file else []
    whole = report
    if last is not None:
        whole = last()
        if file:
            _write(whole, file)
        further = whole.pieces[len(report.pieces) :]
        reader.show(lambda: print(_text(whole)) if question.json else _print_pieces(further, **how))
    if page:
        from spectheory.pages import write_page

        write_page(whole, page, title=title, parts=parts())
        written.append(page)
    if written:
        remark(f"written: {', '.join(map(str, written))}")
    reader.stay()


class _Reader:
    """Whoever reads stdout: files are written even if the reader leaves."""

    def __init__(self) -> None:
        self._left: BrokenPipeError | None = None

    def show(self, say: Callable[[], None]) -> None:
        """Print at once what `say` prints."""
        try:
            say()
            sys.stdout.flush()
        except BrokenPipeError as error:
            self._left = error

    def stay(self) -> None:
        """End here if the reader left."""
        if self._left:
            raise self._left


def _print(report: Report, *, all: bool, explain: bool) -> None:
    brief = None if all else report.brief
    for line in brief.verdict if brief else [report.headline]:
        answers.print(line, style="bold", highlight=False, markup=False)
    _print_pieces(brief.pieces if brief else report.pieces, all=all, explain=explain)
    _paste(report.settings, all=all)
    _dim([*brief.notes, MORE] if brief else report.notes)


def _paste(engines: Sequence[EngineSettings], *, all: bool) -> None:
    """Settings as they stand, since lines to be pasted are not wrapped: the first, or all with their remarks."""
    for settings in engines if all else [each for each in engines[:1] if each.pays]:
        without = "" if settings.candidate.prediction.rule.uses_draft else ", no draft model"
        name = f"{settings.engine} {settings.version}{without}"
        where = f"{name}, {settings.needs}" if settings.needs else name
        answers.print(f"\n{name}" if all else f"To run it ({where}):", style="bold", highlight=False)
        if not settings.pays and all:
            answers.print("Does not pay under this engine's rule; the fastest setting would be:", highlight=False)
        print(strip_control_characters(settings.paste))
        _dim(settings.remarks if all else [])


def _print_pieces(pieces: Sequence[Table | Drawing], *, all: bool, explain: bool) -> None:
    for piece in pieces:
        answers.print(for_terminal(piece), highlight=False)
        _dim(piece.notes if all else [])
        if explain and isinstance(piece, Table):
            _dim(meanings(piece))


def _text(report: Report) -> str:
    return _json(report.as_dict())


def print_json(content: Part | Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> None:
    """Print an answer that is no report as one JSON object; `default` writes what JSON has no type for."""
    answer = plain(content) if isinstance(content, Part) else content
    print(_json({"schema": ANSWER_SCHEMA, **answer}, default))


def _json(content: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> str:
    return json.dumps(content, indent=2, allow_nan=False, default=default)


def _dim(lines: Sequence[str]) -> None:
    for line in lines:
        answers.print(line, style="dim", highlight=False, markup=False)


def _write(report: Report, file: Path) -> None:
    """Write the report as JSON."""
    write_whole(file, lambda partial: partial.write_text(_text(report) + "\n"))
