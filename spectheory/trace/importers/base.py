"""What a log format says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spectheory.trace.record import Trace


@dataclass(frozen=True)
class Format:
    """A log format that is read as a trace.

    `name` is how errors list it ("JSON lines of log-probabilities"), `recognises` says whether the first bytes of a
    file (64 KiB at most) are of this format, `read` returns the trace in a file, or raises an error of one line.
    """

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[Path], Trace]
