"""Our own files: traces, call logs and counters, as `spectheory measure`, `import` and `validate` write them."""

from __future__ import annotations

from spectheory.trace.calls import MARK as CALLS_MARK
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import MARK as COUNTERS_MARK
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format
from spectheory.trace.record import Trace

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
    title="calls.jsonl of `spectheory import` or `validate`",
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
