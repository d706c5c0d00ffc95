"""Requests of onnxruntime-genai with its speculative statistics: ``{"ids": [...], "stats": {...}}``."""

from __future__ import annotations

from spectheory.trace.calls import Request
from spectheory.trace.importers.answers import Json, at, call_log, request_of
from spectheory.trace.importers.base import Format


def _requests(entry: Json) -> list[Request]:
    """Its rounds are calls; the prompt's pass emits no token."""
    stats = entry["stats"]
    queued = stats["draft_tokens_accepted"] + stats["correction_tokens"] + stats["bonus_tokens"]
    if queued != stats["tokens_queued"]:
        raise ValueError(
            f"accepted, recovered and bonus tokens are {queued}, tokens_queued is {stats['tokens_queued']}"
        )
    counts = {"total_accepted": stats["draft_tokens_accepted"], "total_drafted": stats["draft_tokens_proposed"]}
    return [request_of(entry, calls=stats["rounds"], **counts)]


REQUESTS = (
    Format(
        "onnxruntime-requests",
        lambda head: b'"draft_tokens_proposed"' in head,
        lambda path: call_log(
            path,
            "onnxruntime-requests",
            _requests,
            k=lambda entry: at(entry, "stats.effective_k"),
            engine="onnxruntime-genai",
            prefill_emits_token=False,
            counts_past_end=True,
        ),
        title="onnxruntime-genai's statistics, as JSON",
        gives="calls, accepted and drafted tokens of each request, with its ids",
        lacks="calls by accepted tokens: its histogram stays zero; counts hold accepted tokens past the end",
    ),
)
