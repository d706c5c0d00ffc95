"""LM Studio: the `stats` of its server's and its SDK's answers, JSON or JSON lines."""

from __future__ import annotations

from pathlib import Path
from reprlib import repr as brief
from typing import Any

from spectheory.engines.llamacpp.logs import CALLS_BY_DIFFERENCE
from spectheory.errors import TextError
from spectheory.trace.calls import is_count
from spectheory.trace.counters import Counters
from spectheory.trace.importers.answers import Json, at, entries
from spectheory.trace.importers.base import Format

_PLACES = {
    "tokens": ("stats.predicted_tokens_count", "stats.predictedTokensCount", "usage.completion_tokens"),
    "drafted": ("stats.total_draft_tokens_count", "stats.totalDraftTokensCount"),
    "accepted": ("stats.accepted_draft_tokens_count", "stats.acceptedDraftTokensCount"),
    "ignored": ("stats.ignored_draft_tokens_count", "stats.ignoredDraftTokensCount"),
}
"""Where each count stands: in answers of the server, and in those of the SDK."""


def _read_stats(path: Path) -> Counters:
    """The sum over all answers with drafts."""
    drafted = [entry for entry in entries(path).values() if at(entry, *_PLACES["drafted"]) is not None]
    if not drafted:
        raise TextError(f"{path} has no draft tokens", limit="needs stats of speculation", remedy="name a draft model")
    counts = [_counts(entry, path) for entry in drafted]
    totals: dict[str, Any] = {name: sum(each[name] for each in counts) for name in counts[0]}
    return Counters(
        **totals, engine="lm-studio", remarks=(CALLS_BY_DIFFERENCE,), provenance={"responses": len(drafted)}
    )


def _counts(entry: Json, path: Path) -> dict[str, int]:
    counts = {name: at(entry, *places) for name, places in _PLACES.items()}
    counts["ignored"] = counts["ignored"] or 0
    if not all(map(is_count, counts.values())) or counts["accepted"] > min(counts["drafted"], counts["tokens"]):
        raise TextError(
            f"{path} has stats {brief(counts)}",
            limit="needs whole numbers, accepted <= drafted and tokens",
            remedy="save the whole answer",
        )
    tokens, drafted, accepted = counts["tokens"], counts["drafted"] - counts["ignored"], counts["accepted"]
    calls = max(tokens - accepted - 1, 0)
    return {"calls": calls, "drafted": max(drafted, accepted), "accepted": accepted, "tokens": tokens}


TOTALS = (
    Format(
        "lm-studio",
        lambda head: b"draft_tokens_count" in head or b"DraftTokensCount" in head,
        _read_stats,
        title="LM Studio's answers with `stats`, JSON or JSON lines",
        gives="drafted and accepted tokens, calls by difference",
        lacks="survival by position, k; texts are not read",
    ),
)
