"""``spectheory validate --of``: finished validations of several pairs as one page with its figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from spectheory.cli.answer import figures_beside
from spectheory.cli.console import answers, ready_folder, remarks
from spectheory.cli.options import PairOptions
from spectheory.cli.statuses import Status
from spectheory.cli.validate_options import ValidateOptions
from spectheory.errors import SettingError, TraceError, reason_of
from spectheory.files import read_text, write_whole
from spectheory.reports import SCHEMA, headline, page

ANSWER = "validation.json"


def run_joined(folders: Sequence[Path], question: ValidateOptions, pair: PairOptions) -> int:
    """Show finished validations together; options of decoding are refused, since nothing is decoded."""
    _check_alone(question, pair)
    return join(folders, question.out)


def join(folders: Sequence[Path], out: Path) -> int:
    """Write ``validation.md`` and the figures of the validations in `folders`; the status says whether all agree.

    Raises
    ------
    SettingError
        If a folder is named twice.
    TraceError
        If a folder holds no finished validation of this version.
    OutputError
        If the folder cannot be written.
    """
    twice = next((folder for i, folder in enumerate(folders) if folder.resolve() in _resolved(folders[:i])), None)
    if twice is not None:
        raise SettingError(f"--of {twice} is given twice", limit="each validation counts once", remedy="leave one out")
    ready_folder(out)
    found = [_read(folder / ANSWER) for folder in folders]
    text = page(found)
    write_whole(out / "validation.md", lambda partial: partial.write_text(text))
    written = [out / "validation.md", *figures_beside(lambda: _figures(found, out))]
    for folder, one in zip(folders, found, strict=True):
        answers.print(f"{folder}: {headline(one)}", highlight=False, markup=False)
    remarks.print(f"written: {', '.join(map(str, written))}", markup=False)
    return Status.DISAGREEMENT if any(one["disagreements"] for one in found) else Status.DONE


def _check_alone(question: ValidateOptions, pair: PairOptions) -> None:
    """Refuse options of decoding where nothing is decoded.

    Raises
    ------
    SettingError
        If there are any.
    """
    defaults = ValidateOptions(out=question.out, of=question.of)
    idle = [
        f"--{field.name.replace('_', '-')}"
        for given, default in ((question, defaults), (pair, PairOptions()))
        for field in fields(given)
        if getattr(given, field.name) != getattr(default, field.name)
    ]
    if idle:
        raise SettingError(
            f"{', '.join(idle)} given with --of",
            limit="finished validations are shown as they are",
            remedy="give --of and --out alone",
        )


def _figures(found: Sequence[dict[str, Any]], out: Path) -> list[Path]:
    from spectheory.plots.validation import write_figure, write_pairs_figure

    return [*write_figure(found, out / "validation"), *write_pairs_figure(found, out / "validation-pairs")]


def _resolved(folders: Sequence[Path]) -> set[Path]:
    return {folder.resolve() for folder in folders}


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(read_text(path))
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {brief(content['schema'])}")
        page([content])  # reads all that is shown
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(
            f"{path} is no finished validation ({reason_of(error)})",
            limit=f"needs what this version writes, schema {SCHEMA}",
            remedy="run spectheory validate --out into that folder first",
        ) from error
    return content
