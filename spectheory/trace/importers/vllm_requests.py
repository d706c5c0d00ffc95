"""Acceptance of each request as vLLM's server returns it (``--per-request-spec-decode-metrics``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.acceptance import STEPS, counts_of
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, at
from spectheory.trace.importers.responses import call_log, request_of

RECORD = (
    "metrics.speculative_decoding",
    "choices.0.metrics.speculative_decoding",
    "speculative_decoding",
    "to_dict",
)
"""Where the record stands: in a response, alone, or in a dump of its own dictionary."""
NAME = "vllm-requests"


def read_vllm_requests(path: Path) -> CallLog:
    """Read responses, a list of them or one a line; those without the record (no call had drafts) are left out."""
    past = {"prefill_emits_token": True, "counts_past_end": True}
    return call_log(path, NAME, _requests, k=lambda each: at(_record(each), "num_spec_tokens"), engine="vllm", **past)


def _record(entry: Json) -> Any:
    return entry if STEPS in entry else at(entry, *RECORD)


def _requests(entry: Json) -> list[Request]:
    record = _record(entry)
    return [] if record is None else [request_of(entry, **counts_of(record))]


VLLM_REQUESTS = Format(
    NAME,
    lambda head: f'"{STEPS}"'.encode() in head,
    read_vllm_requests,
    title="vLLM's responses, served with `--per-request-spec-decode-metrics`",
    gives="calls, accepted and drafted tokens of each request; with the setting detailed, of each call",
    lacks="calls without drafts (n-gram and suffix drafts count none); counts hold accepted tokens past the end",
)
