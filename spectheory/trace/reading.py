"""One door for evidence: a trace from whatever holds one."""

from __future__ import annotations

from pathlib import Path

from spectheory.errors import TraceError
from spectheory.trace.importers import FORMATS
from spectheory.trace.record import TRACE_FILE, Trace

_PARQUET = b"PAR1"
_LOOKED_AT = 1 << 16
"""Bytes by which a format recognises its files."""


def trace_file(path: Path) -> Path:
    """The file that holds the trace: of a folder that of the measurement in it."""
    return path / TRACE_FILE if path.is_dir() else path


def read_any(path: Path) -> Trace:
    """A trace from a folder of ``spectheory measure``, a Parquet file, or a log of any format in ``FORMATS``.

    A log is recognised by its content, whatever its name.
    """
    file = trace_file(Path(path))
    try:
        with file.open("rb") as opened:
            head = opened.read(_LOOKED_AT)
    except OSError:
        return Trace.read(file)  # says why it cannot be read
    if head.startswith(_PARQUET):
        return Trace.read(file)
    for each in FORMATS.values():
        if each.recognises(head):
            return each.read(file)
    if file.suffix == ".parquet":
        return Trace.read(file)  # says that it is torn
    what = "is of an unknown format" if head else "is empty"
    raise TraceError(
        f"{file} {'holds zero bytes, which no text has' if bytes(1) in head else what}",
        limit=f"readable are a folder of spectheory measure, its Parquet file, {', '.join(FORMATS)}",
        remedy="check the path, or convert the log to one of these",
    )
