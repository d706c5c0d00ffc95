"""What a reader must know of how latencies were measured: a busy machine, too little time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectheory.cost import LatencyTable
from spectheory.cost.table import LOOP_ROUNDS, PASS_ROUNDS

BUSY = 0.5
"""Cores of other processes from which latencies count as those of a busy machine."""
_WHAT = {PASS_ROUNDS: "passes", LOOP_ROUNDS: "the decoding loop"}
"""Keys of a table's provenance, and what was measured in these rounds."""


def timing_notes(table: LatencyTable) -> list[str]:
    """One sentence if other processes ran meanwhile, or if the time was over before all intervals were narrow enough.

    Examples
    --------
    >>> from spectheory.intervals import Interval
    >>> ended = {"stopped": "budget", "seconds": 62.0, "others": 1.71, "widths": {"target 64": 0.12}}
    >>> second = Interval.exact(1.0)
    >>> timing_notes(LatencyTable({1: second}, {}, 64, {"pass_rounds": ended}))[0]
    'Latencies: other processes used up to 1.7 cores; the time was over after 62 s, with intervals up to 12% wide.'
    """
    found = {what: ended for key, what in _WHAT.items() if isinstance(ended := table.provenance.get(key), Mapping)}
    busiest = max((ended.get("others") or 0.0 for ended in found.values()), default=0.0)
    said = [f"other processes used up to {busiest:.1f} cores"] if busiest > BUSY else []
    cut = {what: ended for what, ended in found.items() if ended.get("stopped") == "budget"}
    if cut:
        said.append(_cut_short(cut))
    return [f"Latencies: {'; '.join(said)}."] if said else []


def _cut_short(cut: Mapping[str, Mapping[str, Any]]) -> str:
    """When the time was over, and how wide intervals then were."""
    seconds = sum(ended["seconds"] for ended in cut.values())
    widest = max((width for ended in cut.values() for width in ended.get("widths", {}).values()), default=None)
    wide = f", with intervals up to {widest:.0%} wide" if widest is not None else ""
    of = "" if "passes" in cut else f" for {' and '.join(cut)}"
    return f"the time{of} was over after {seconds:.0f} s{wide}"
