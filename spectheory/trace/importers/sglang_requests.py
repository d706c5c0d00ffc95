"""Acceptance of each request in SGLang's responses: ``meta_info``, under its new, aliased and older names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.acceptance import histogram, one_length
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, at
from spectheory.trace.importers.responses import call_log, request_of

PLACES = ("meta_info", "choices.0.meta_info", "sglext.spec_tokens_details", "choices.0.sglext.spec_tokens_details")
CALLS = "spec_verify_ct"
ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
DRAFTED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")
CAPPED = ("spec_cap_length", "spec_cap_lens_histogram")
NAME = "sglang-requests"


def read_sglang_requests(path: Path) -> CallLog:
    """Read responses of ``/generate``, or of the chat and completion routes; those without calls are left out."""
    return call_log(path, NAME, _requests, engine="sglang", prefill_emits_token=True)


def _requests(entry: Json) -> list[Request]:
    info = next((found for place in PLACES if at(found := at(entry, place), CALLS) is not None), None)
    return [request_of(entry, **_counts(info))] if info and info[CALLS] else []


def _counts(info: Json) -> dict[str, Any]:
    """Totals of a request, and its calls by accepted tokens where every call had as many drafts.

    A cap changes the number of drafts from call to call, and the histogram does not say how many each had.
    """
    calls, drafted = info[CALLS], at(info, *DRAFTED)
    row = None if any(at(info, name) is not None for name in CAPPED) else at(info, *HISTOGRAM)
    if row is not None and sum(histogram(row)) != calls:
        raise ValueError(f"its histogram counts {sum(histogram(row))} calls, {CALLS} is {calls}")
    counts = {"calls": calls, "total_accepted": at(info, *ACCEPTED), "total_drafted": drafted}
    return {**counts, "by_drafted": one_length(row, calls, drafted) if drafted else {}}


SGLANG_REQUESTS = Format(
    NAME,
    lambda head: f'"{CALLS}"'.encode() in head,
    read_sglang_requests,
    title="SGLang's responses with `meta_info`",
    gives="calls, accepted and drafted tokens of each request, and its calls by accepted tokens",
    lacks="drafts per call: an adaptive length or a tree is read as a chain of one length",
)
