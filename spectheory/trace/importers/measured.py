"""Our own trace, as `spectheory measure` writes it."""

from __future__ import annotations

from spectheory.trace.importers.base import Format
from spectheory.trace.record import Trace

TRACE = Format(
    "trace",
    lambda head: head.startswith(b"PAR1"),
    Trace.open,
    title="trace.parquet of `spectheory measure` or `import`",
    gives="exact predictions",
)
