"""What a log format says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spectheory.trace.record import Trace


@dataclass(frozen=True)
class Format:
    """A log format that is read as a trace.

    Attributes
    ----------
    name : str
        What it is, as errors list it: "JSON lines of log-probabilities".
    recognises : callable
        Whether the first bytes of a file (64 KiB at most) are of this format.
    read : callable
        The trace in a file; what is wrong with the file is an error of one line.
    """

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[Path], Trace]
