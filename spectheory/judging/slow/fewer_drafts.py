"""Calls draft fewer tokens than was set."""

from __future__ import annotations

from spectheory.judging.slow.case import Case, Found, Reason

_FEWER = 0.9
"""Below this share of k the drafts of a call are fewer than was set; ends of texts take less."""


def _look(case: Case) -> Found | None:
    """The mean number of drafts, or the positions that were counted, are less than k."""
    counts = case.counters
    if counts is None or case.k is None:
        return None
    drafted = counts.mean_drafted or (float(len(counts.survival)) or None)
    if drafted is None or drafted >= _FEWER * case.k:
        return None
    said = (
        f"calls draft {drafted:.2f} tokens, k = {case.k} was set: a schedule, a confidence threshold or the engine "
        "itself ends them early"
    )
    return Found(FEWER.name, said, of_data=True)


FEWER = Reason("fewer drafts than set", "calls draft fewer tokens than k", _look)
