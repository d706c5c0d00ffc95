"""Acceptance of each request in AIPerf's ``profile_export.jsonl``, of any engine that it reads."""

from __future__ import annotations

from pathlib import Path

from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.acceptance import counts_of
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, at, entries
from spectheory.trace.importers.responses import call_log, request_of

RECORD = "spec_decode_acceptance"
PLACES = (RECORD, f"metrics.{RECORD}.value", f"metrics.{RECORD}", f"metadata.{RECORD}")
NAME = "aiperf"


def read_aiperf(path: Path) -> CallLog:
    """Read a record per line; lines without acceptance (failed or plain requests) are left out.

    The records name the engine; under vLLM the prompt's pass emits the first token, of others this is not known.
    """
    engines = {str(at(record, "engine")) for each in entries(path).values() if (record := at(each, *PLACES))}
    engine = engines.pop() if len(engines) == 1 else ""
    prefill = True if engine == "vllm" else None
    return call_log(path, NAME, _requests, engine=engine, prefill_emits_token=prefill)


def _requests(entry: Json) -> list[Request]:
    record = at(entry, *PLACES)
    if record is None:
        return []
    return [request_of({**entry, "completion_tokens": record.get("completion_tokens")}, **counts_of(record))]


AIPERF = Format(
    NAME,
    lambda head: f'"{RECORD}"'.encode() in head,
    read_aiperf,
    title="AIPerf's `profile_export.jsonl`",
    gives="calls, accepted and drafted tokens of each request, of any engine; of each call where the engine gives them",
    lacks="token ids: which rule runs is not told from such a log alone",
)
