"""Responses of llama.cpp's server: ids, and the drafted and accepted tokens of its ``timings``."""

from __future__ import annotations

from pathlib import Path

from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json
from spectheory.trace.importers.responses import call_log, request_of

NAME = "llama.cpp-requests"


def read_llama_requests(path: Path) -> CallLog:
    """Read responses, a list of them or one a line; those without drafts are left out.

    The prompt's pass emits a token, so calls = tokens - 1 - accepted. That is one too few for a text whose last call
    accepted tokens past its end: llama.cpp does not count calls per request.
    """
    provenance = {"calls": "tokens - 1 - accepted tokens; a last call that was cut may be missing"}
    return call_log(path, NAME, _requests, engine="llama.cpp", prefill_emits_token=True, provenance=provenance)


def _requests(entry: Json) -> list[Request]:
    timings = entry["timings"]
    if "draft_n" not in timings:
        return []
    accepted = timings["draft_n_accepted"]
    counts = {"total_accepted": accepted, "total_drafted": timings["draft_n"]}
    calls = timings["predicted_n"] - 1 - accepted
    return [request_of(entry, calls=calls, seconds=timings["predicted_ms"] / 1000, **counts)]


LLAMA_REQUESTS = Format(
    NAME,
    lambda head: b'"draft_n"' in head and (b'"choices"' in head or b'"tokens_predicted"' in head),
    read_llama_requests,
    title="responses of llama.cpp's server with `timings`",
    gives="accepted and drafted tokens of each request, and its ids where log-probabilities were asked for",
    lacks="calls of each request, other than as tokens - 1 - accepted; log-probabilities: those of calls are set to 0",
)
