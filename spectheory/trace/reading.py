"""One door for evidence: a trace from whatever holds one."""

from __future__ import annotations

from pathlib import Path

from spectheory.errors import SettingError, TraceError
from spectheory.trace.calls import CALLS_FILE, CallLog
from spectheory.trace.counters import COUNTERS_FILE
from spectheory.trace.importers import FORMATS, Evidence, Format
from spectheory.trace.record import TRACE_FILE, Trace

_PARQUET = b"PAR1"
_LOOKED_AT = 1 << 16
"""Bytes by which a format recognises its files."""


def evidence_file(path: Path) -> Path:
    """The file that holds what a folder of ``measure`` or ``import`` has; a file is itself."""
    if not path.is_dir():
        return path
    found = [path / name for name in (TRACE_FILE, CALLS_FILE, COUNTERS_FILE) if (path / name).exists()]
    return found[0] if found else path / TRACE_FILE


def trace_file(path: Path) -> Path:
    """The file that holds the trace: of a folder that of the measurement in it."""
    return path / TRACE_FILE if path.is_dir() else path


def read_any(path: Path) -> Trace:
    """A trace from a folder of ``spectheory measure``, a Parquet file, or a log of any format in ``FORMATS``.

    A log is recognised by its content, whatever its name. One that holds calls or totals alone is refused.
    """
    found = read_evidence(path)
    if isinstance(found, Trace):
        return found
    raise TraceError(
        f"{path} holds {'calls' if isinstance(found, CallLog) else 'totals'} of an engine",
        limit="this needs a trace: statistics of texts",
        remedy="pass it to spectheory judge or predict",
    )


def read_evidence(path: Path, format: str | None = None) -> Evidence:
    """What a file holds, of the format named, or else recognised by its content."""
    file = evidence_file(Path(path))
    if format is not None:
        return _named(format).read(file)
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


def _named(name: str) -> Format:
    if name not in FORMATS:
        raise SettingError(
            f"format {name!r} is unknown", limit=f"there are {', '.join(FORMATS)}", remedy="name one, or leave it out"
        )
    return FORMATS[name]
