"""What a log format says of itself, and the formats of our own files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from spectheory.errors import TextError
from spectheory.files import MOST_BYTES, read_text
from spectheory.trace.calls import MARK as CALLS_MARK
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import MARK as COUNTERS_MARK
from spectheory.trace.counters import Counters
from spectheory.trace.record import Trace
from spectheory.trace.scores import Scores

Evidence: TypeAlias = Trace | CallLog | Counters | Scores
"""What a log holds: statistics of texts, calls of requests, totals, or log-probabilities of one model."""


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


def fields_of(line: str, patterns: Mapping[str, str], where: str) -> dict[str, str]:
    """What stands in a line of a log at each pattern's group; a line that lacks one is refused."""
    matches = {name: re.search(pattern, line) for name, pattern in patterns.items()}
    if cut := [name for name, match in matches.items() if match is None]:
        raise TextError(f"{where} has no {cut[0]}", limit="needs a whole line", remedy="remove a line that was cut")
    return {name: match[1] for name, match in matches.items() if match}


TRACE = Format(
    "trace",
    lambda head: head.startswith(b"PAR1"),
    Trace.open,
    title="trace.parquet of `spectheory measure` or `import`",
    gives="exact predictions",
)


CALL_LOG = Format(
    "calls",
    lambda head: CALLS_MARK.encode() in head.partition(b"\n")[0],
    CallLog.read,
    title="calls.jsonl of `spectheory import` or `validate --engine`, a file in calls-T of `validate`",
    gives="calls of each request, and its text where token ids are there",
    lacks="probabilities: the pair must read the text",
)


COUNTERS = Format(
    "counters",
    lambda head: f'"spectheory": "{COUNTERS_MARK}"'.encode() in head[:200],
    Counters.read,
    title="counters.json of `spectheory import`",
    gives="readings of totals",
    lacks="texts, so nothing is judged",
)
