"""``spectheory validations``: finished validations of several pairs as one page with its figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from spectheory.cli.console import answers, ready_folder, remark
from spectheory.cli.options import ValidationsOptions
from spectheory.cli.statuses import Status
from spectheory.errors import FOREIGN, SettingError, TraceError, reason_of
from spectheory.files import read_text, write_whole
from spectheory.plots.validation import write_figure, write_pairs_figure
from spectheory.reports import SCHEMA, headline, page

ANSWER = "validation.json"


def run_validations(question: ValidationsOptions) -> int:
    """Write ``validation.md`` and the figures of finished validations; the status says whether all agree."""
    folders, out = question.folders, question.out
    places = [folder.resolve() for folder in folders]
    twice = next((folder for i, folder in enumerate(folders) if places[i] in places[:i]), None)
    if twice is not None:
        raise SettingError(f"{twice} is given twice", limit="each validation counts once", remedy="leave one out")
    ready_folder(out)
    contents = [_read(folder / ANSWER) for folder in folders]
    text = page(contents)
    write_whole(out / "validation.md", lambda partial: partial.write_text(text))
    written = [out / "validation.md", *_figures(contents, out)]
    for folder, one in zip(folders, contents, strict=True):
        answers.print(f"{folder}: {headline(one)}", highlight=False, markup=False)
    remark(f"written: {', '.join(map(str, written))}")
    return Status.DISAGREEMENT if any(one["disagreements"] for one in contents) else Status.DONE


def _figures(contents: Sequence[dict[str, Any]], out: Path) -> list[Path]:
    return [*write_figure(contents, out / "validation"), *write_pairs_figure(contents, out / "validation-pairs")]


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(read_text(path))
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {brief(content['schema'])}")
        page([content])  # reads all that is shown
    except (OSError, *FOREIGN) as error:
        raise TraceError(
            f"{path} is no finished validation ({reason_of(error)})",
            limit=f"needs what this version writes, schema {SCHEMA}",
            remedy="run spectheory validate --out into that folder first",
        ) from error
    return content
