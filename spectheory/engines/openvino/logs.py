"""Requests of OpenVINO GenAI with its extended metrics: ``{"ids": [...], "stats": {...}, "main_raw": {...}}``."""

from __future__ import annotations

from spectheory.trace.calls import Request
from spectheory.trace.importers.answers import Json, at, call_log, ids_at, request_of
from spectheory.trace.importers.base import Format

_SIZES = "main_raw.m_batch_sizes"


def _k(entry: Json) -> int:
    """Drafts of a call: all but the last, which is not counted, have as many; otherwise those of the longest pass."""
    calls, drafted = len(at(entry, _SIZES)) - 1, entry["stats"]["get_num_draft_tokens"]
    equal = calls > 1 and drafted % (calls - 1) == 0
    return drafted // (calls - 1) if equal else max(at(entry, _SIZES)) - 1


def _requests(entry: Json) -> list[Request]:
    """Ids, and the tokens of each pass of the target.

    The first pass is the prompt's and emits a token, every later one is a call. A call outputs its accepted drafts and
    one token more, so accepted = tokens - 1 - calls. OpenVINO's own count leaves the last call out and must agree with
    this to that call. The passes' tokens are calls' accepted tokens where they add up to the text; at temperatures
    above 0 they hold tokens that were dropped, and calls are known in number alone.
    """
    first, *sizes = at(entry, _SIZES)
    tokens, calls, stats = len(ids_at(entry, "ids")), len(sizes), entry["stats"]
    accepted = tokens - first - calls
    in_last = accepted - stats["get_num_accepted_tokens"]
    if not (first == 1 and 0 <= in_last <= _k(entry)):
        raise ValueError(f"{calls} calls and {stats['get_num_accepted_tokens']} accepted tokens, {tokens} output")
    each = tuple(size - 1 for size in sizes) if first + sum(sizes) == tokens else ()
    return [request_of(entry, calls=calls, total_accepted=accepted, accepted=each)]


REQUESTS = (
    Format(
        "openvino-requests",
        lambda head: b'"m_batch_sizes"' in head,
        lambda path: call_log(
            path,
            "openvino-requests",
            _requests,
            k=_k,
            engine="openvino-genai",
            prefill_emits_token=True,
            counts_past_end=False,
        ),
        title="OpenVINO GenAI's extended metrics, as JSON",
        gives="calls and accepted tokens of each request, with its ids; at temperature 0 of each call",
        lacks="drafted tokens of the last call, and above temperature 0 accepted tokens of each call",
    ),
)
