"""Our own counters, as `spectheory import` writes them."""

from __future__ import annotations

from spectheory.trace.counters import MARK, Counters
from spectheory.trace.importers.base import Format

COUNTERS = Format(
    "counters",
    lambda head: f'"spectheory": "{MARK}"'.encode() in head[:200],
    Counters.read,
    title="counters.json of `spectheory import`",
    gives="readings of totals",
    lacks="texts, so nothing is judged",
)
