"""llama.cpp: the ``timings`` of its server's responses, JSON or JSON lines."""

from __future__ import annotations

from pathlib import Path
from reprlib import repr as brief
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.calls import MOST_COUNTED, is_count, is_number
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import entries

NAMES = ("predicted_n", "draft_n", "draft_n_accepted")
CALLS = (
    "Calls are output tokens less accepted ones less the prompt's own: calls without drafts are among them, and each "
    "accepted token past the end of a text is a call too few."
)


def read_llama_timings(path: Path) -> Counters:
    """The sum over all responses with drafts."""
    timings = [record.get("timings", record) for record in entries(path).values()]
    drafted = [each for each in timings if isinstance(each, dict) and "draft_n" in each]
    if not drafted:
        raise TextError(f"{path} has no draft_n", limit="needs timings of speculation", remedy="serve with a draft")
    counts = [_counts(each, path) for each in drafted]
    totals: dict[str, Any] = {name: sum(each[name] for each in counts) for name in counts[0]}
    plain = len(timings) - len(drafted)
    return Counters(
        **totals,
        seconds=_seconds(drafted),
        engine="llama.cpp",
        remarks=(CALLS, *([f"{plain} responses without drafts are left out."] if plain else ())),
        provenance={"responses": len(drafted)},
    )


def _counts(timings: dict[str, Any], path: Path) -> dict[str, int]:
    values = [timings.get(name) for name in NAMES]
    if not all(map(is_count, values)):
        raise TextError(
            f"{path} has timings {', '.join(f'{n} {brief(v)}' for n, v in zip(NAMES, values, strict=True))}",
            limit="needs whole numbers",
            remedy="save the whole response",
        )
    tokens, drafted, accepted = (int(timings[name]) for name in NAMES)
    if accepted > drafted or tokens < accepted + (accepted > 0):
        raise TextError(
            f"{path} has timings of {tokens} tokens, {drafted} drafted and {accepted} accepted",
            limit="accepted <= drafted, and fewer than the tokens",
            remedy="check the file for mixed responses",
        )
    return {"calls": max(tokens - accepted - 1, 0), "drafted": drafted, "accepted": accepted, "tokens": tokens}


def _seconds(timings: list[dict[str, Any]]) -> float | None:
    """Time of all outputs; None where one does not say."""
    times = [each.get("predicted_ms") for each in timings]
    known = [time for time in times if is_number(time) and 0 <= time < MOST_COUNTED]
    return sum(known) / 1000 if len(known) == len(times) else None


LLAMA_TIMINGS = Format(
    "llama.cpp-timings",
    lambda head: b'"draft_n_accepted"' in head,
    read_llama_timings,
    title="llama.cpp's `timings` alone, JSON or JSON lines",
    gives="drafted and accepted tokens, calls by difference, seconds",
    lacks="survival by position, k; texts are not read",
)
