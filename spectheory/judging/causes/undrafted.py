"""Calls without drafts that are not counted."""

from __future__ import annotations

from dataclasses import replace

from spectheory.judging.causes.base import Cause, Context, Finding, by_counting


def explains(context: Context) -> Finding | None:
    """Counts fit without the calls that have one token to go, for which nothing is drafted; none of them is listed."""
    if context.calls is not None and (context.calls.drafted == 0).any():
        return None
    sentence = "calls without drafts (one token to go) are not counted, so tokens per call are overstated"
    return by_counting(context, replace(context.counting, skips_undrafted=True), UNDRAFTED.name, sentence)


UNDRAFTED = Cause("calls without drafts", "calls that draft nothing are not counted", explains, True)
