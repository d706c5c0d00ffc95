"""The texts of a trace put in the order of a log's requests, found by their token ids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spectheory.errors import TextError, TraceError
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog

_ONE = 1e-9
"""Two temperatures closer than this are the same setting."""


def matched(trace: Trace, log: CallLog) -> Trace:
    """The trace with one text per request, in their order; a request whose output is no text of it is refused."""
    if not log.requests:
        raise TextError("the log has no request", limit="needs one at least", remedy="check the log")
    for request in log.requests:
        if not request.output:
            raise TextError(
                f"request {request.id!r} has no output token ids",
                limit="texts are judged by their ids",
                remedy="log them (vLLM: return_token_ids), or judge the counters alone",
            )
    if "token" not in trace.columns:
        raise TraceError(
            "the trace has no token ids", limit="texts are matched by them", remedy="measure the pair again"
        )
    places: dict[tuple[int, ...], int] = {}
    ends = np.cumsum(trace.lengths)
    for number, (end, length) in enumerate(zip(ends.tolist(), trace.lengths.tolist(), strict=True)):
        places.setdefault(tuple(trace.columns["token"][end - length : end].tolist()), number)
    order = [_place(places, trace, number, request.output) for number, request in enumerate(log.requests)]
    for request, place in zip(log.requests, order, strict=True):
        if place is None:
            raise TextError(
                f"request {request.id!r}: its output is no text of the trace",
                limit="the trace must be of these very token ids, by one tokenizer",
                remedy="give the pair with --target and --draft",
            )
    found = [place for place in order if place is not None]
    if found == list(range(len(trace.texts))):
        return trace
    rows = np.concatenate([np.arange(ends[place] - trace.lengths[place], ends[place]) for place in found])
    columns = {name: column[rows] for name, column in trace.columns.items()}
    texts = tuple(replace(trace.texts[place], id=r.id) for place, r in zip(found, log.requests, strict=True))
    return Trace(columns, texts, trace.provenance)


def _place(places: dict[tuple[int, ...], int], trace: Trace, number: int, output: tuple[int, ...]) -> int | None:
    """The text of the same number if it is this one, so that two prompts may have one output; or else any."""
    if number < len(trace.texts):
        end = int(trace.lengths[: number + 1].sum())
        if tuple(trace.columns["token"][end - trace.texts[number].tokens : end].tolist()) == output:
            return number
    return places.get(output)


def check_settings(trace: Trace, log: CallLog) -> None:
    """Refuse a trace that was read under other sampling settings than the log's."""
    stated, read = log.sampling, trace.sampling
    if stated is None or read is None or stated.temperature == 0:
        return
    differing = [
        name
        for name in ("temperature", "top_k", "top_p", "min_p")
        if abs((getattr(stated, name) or 0) - (getattr(read, name) or 0)) > _ONE
    ]
    if differing:
        name = differing[0]
        raise TraceError(
            f"{name} is {getattr(read, name)} in the trace and {getattr(stated, name)} in the log",
            limit="both must have the settings that made the text",
            remedy="read the texts again under the log's settings",
        )
