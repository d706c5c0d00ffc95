"""Requests of onnxruntime-genai with its speculative statistics: ``{"ids": [...], "stats": {...}}``."""

from __future__ import annotations

from pathlib import Path

from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, at
from spectheory.trace.importers.responses import call_log, request_of

NAME = "onnxruntime-requests"


def read_onnxruntime_requests(path: Path) -> CallLog:
    """Read requests, a list of them or one a line. Its rounds are calls; the prompt's pass emits no token."""
    return call_log(
        path,
        NAME,
        _requests,
        k=lambda entry: at(entry, "stats.effective_k"),
        engine="onnxruntime-genai",
        prefill_emits_token=False,
        counts_past_end=True,
    )


def _requests(entry: Json) -> list[Request]:
    stats = entry["stats"]
    queued = stats["draft_tokens_accepted"] + stats["correction_tokens"] + stats["bonus_tokens"]
    if queued != stats["tokens_queued"]:
        raise ValueError(
            f"accepted, recovered and bonus tokens are {queued}, tokens_queued is {stats['tokens_queued']}"
        )
    counts = {"total_accepted": stats["draft_tokens_accepted"], "total_drafted": stats["draft_tokens_proposed"]}
    return [request_of(entry, calls=stats["rounds"], **counts)]


ONNXRUNTIME_REQUESTS = Format(
    NAME,
    lambda head: b'"draft_tokens_proposed"' in head,
    read_onnxruntime_requests,
    title="onnxruntime-genai's statistics, as JSON",
    gives="calls, accepted and drafted tokens of each request, with its ids",
    lacks="calls by accepted tokens: its histogram stays zero; counts hold accepted tokens past the end",
)
