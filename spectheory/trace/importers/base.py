"""What a log format says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters
from spectheory.trace.record import Trace
from spectheory.trace.scores import Scores

Evidence: TypeAlias = Trace | CallLog | Counters | Scores
"""What a log holds: statistics of texts, calls of requests, totals, or log-probabilities of one model."""


@dataclass(frozen=True)
class Format:
    """A log format.

    `name` is how errors list it ("JSON lines of log-probabilities"), `recognises` says whether the first bytes of a
    file (64 KiB at most) are of this format, `read` returns what the file holds, or raises an error of one line.
    `gives` says in a sentence what follows from such a log, `lacks` what does not.
    """

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[Path], Evidence]
    gives: str = ""
    lacks: str = ""
