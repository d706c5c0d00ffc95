"""What a log format says of itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from spectheory.errors import TextError
from spectheory.files import MOST_BYTES, read_text
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters
from spectheory.trace.record import Trace

Evidence: TypeAlias = Trace | CallLog | Counters
"""What a log holds: statistics of texts, calls of requests, or totals."""


@dataclass(frozen=True)
class Format:
    """A log format.

    `name` is how ``--format`` takes it (lower case, hyphens), `recognises` says whether the first bytes of a file (1
    MiB at most) are of this format, `read` returns what the file holds, or raises an error of one line. `title` says
    which tool writes it where, `gives` in a few words what follows from such a log, `lacks` what does not.
    """

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[Path], Evidence]
    title: str = ""
    gives: str = ""
    lacks: str = ""


def text_of(path: Path, *, most: int = MOST_BYTES) -> str:
    """The text of a log; an error of one line if it cannot be read."""
    try:
        return read_text(path, encoding="utf-8-sig", most=most)
    except (OSError, UnicodeDecodeError) as error:
        raise TextError(
            f"{path} cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})",
            limit="needs a text file",
            remedy="check the path",
        ) from error


def objects_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON file: one, a list of them, or one per line."""
    text = text_of(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = [_parsed(line, f"{path} line {number}") for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    objects = found if isinstance(found, list) else [found]
    if not all(isinstance(each, dict) for each in objects):
        raise TextError(f"{path} holds other JSON than objects", limit="needs objects", remedy="export the log again")
    return objects


def _parsed(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TextError(
            f"{where} is not JSON ({error})", limit="needs a whole object per line", remedy="remove a line that was cut"
        ) from error
