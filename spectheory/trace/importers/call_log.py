"""Our own call log, as `spectheory import` and `spectheory validate --engine` write it."""

from __future__ import annotations

from spectheory.trace.calls import MARK, CallLog
from spectheory.trace.importers.base import Format

CALL_LOG = Format(
    "calls",
    lambda head: MARK.encode() in head.partition(b"\n")[0],
    CallLog.read,
    title="calls.jsonl of `spectheory import` or `validate`",
    gives="calls of each request, and its text where token ids are there",
    lacks="probabilities: the pair must read the text",
)
