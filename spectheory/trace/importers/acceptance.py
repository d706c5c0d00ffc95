"""The record of acceptance that vLLM gives with a response, and AIPerf keeps of it: counts of one request."""

from __future__ import annotations

from typing import Any

from spectheory.errors import TextError
from spectheory.trace.calls import MOST_DRAFTS
from spectheory.trace.importers.entries import Json, at

STEPS, ACCEPTED, DRAFTED = "num_spec_steps", "num_accepted_draft_tokens", "num_draft_tokens"


def counts_of(record: Json) -> dict[str, Any]:
    """Counts of a request: totals, calls by accepted tokens, and every call where the record is detailed."""
    counts: dict[str, Any] = {
        "calls": record[STEPS],
        "total_accepted": record[ACCEPTED],
        "total_drafted": record[DRAFTED],
        "accepted": tuple(record.get("per_step_accepted") or ()),
        "drafted": tuple(record.get("per_step_drafted") or ()),
        "by_drafted": _by_drafted(record),
    }
    pooled = histogram(record.get("acceptance_histogram"))
    if len(counts["accepted"]) == counts["calls"] and pooled and pooled != histogram(_tally(counts["accepted"])):
        raise TextError(
            "per_step_accepted and acceptance_histogram differ",
            limit="both count the same calls",
            remedy="check the log for torn or mixed lines",
        )
    return counts


def histogram(row: Any) -> tuple[int, ...]:
    """Calls by accepted tokens, 0 first and without zeros at the end, from a list or a sparse mapping."""
    if isinstance(row, dict):
        sparse = {int(accepted): count for accepted, count in row.items()}
        if outside := [accepted for accepted in sparse if not 0 <= accepted <= MOST_DRAFTS]:
            raise ValueError(f"{outside[0]} accepted tokens in a call, 0..{MOST_DRAFTS} are possible")
        row = [sparse.get(i, 0) for i in range(max(sparse, default=-1) + 1)]
    found = list(row or ())
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


def _tally(accepted: tuple[int, ...]) -> dict[int, int]:
    return {each: accepted.count(each) for each in set(accepted)}


def _by_drafted(record: Json) -> dict[int, tuple[int, ...]]:
    """Calls by drafted and accepted tokens; one row if every call drafted as many."""
    by_length = at(record, "acceptance_histogram_by_draft_length")
    if by_length:
        return {int(k): histogram(row) for k, row in by_length.items() if histogram(row)}
    return one_length(record.get("acceptance_histogram"), record[STEPS], record[DRAFTED], record.get("num_spec_tokens"))


def one_length(row: Any, calls: int, drafted: int, longest: int | None = None) -> dict[int, tuple[int, ...]]:
    """Calls by accepted tokens under the one number of drafts that every call had; empty if there were several.

    Without the `longest` chain, calls are taken to have had as many if their number divides the drafted tokens.
    """
    each, rest = divmod(drafted, calls) if calls else (0, 1)
    if not row or rest or len(histogram(row)) > each + 1 or each != (longest or each):
        return {}
    return {each: histogram(row)}
