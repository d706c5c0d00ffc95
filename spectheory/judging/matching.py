"""The texts of a trace put in the order of a log's requests: joined by id, or else by prompt and output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spectheory.errors import TextError, TraceError
from spectheory.trace import TextInfo, Trace
from spectheory.trace.calls import CallLog, Request

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
    ends = np.cumsum(trace.lengths)
    rows = [slice(end - n, end) for end, n in zip(ends.tolist(), trace.lengths.tolist(), strict=True)]
    places: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(rows):
        places.setdefault(tuple(trace.columns["token"][row].tolist()), []).append(number)
    twins: dict[tuple[int, ...], list[Request]] = {}
    for request in log.requests:
        twins.setdefault(request.output, []).append(request)
    found = [_place(trace, rows, places.get(r.output, []), twins[r.output], r) for r in log.requests]
    if found == list(range(len(trace.texts))):
        return trace
    order = np.concatenate([np.arange(rows[place].start, rows[place].stop) for place in found])
    columns = {name: column[order] for name, column in trace.columns.items()}
    texts = tuple(replace(trace.texts[place], id=r.id) for place, r in zip(found, log.requests, strict=True))
    return Trace(columns, texts, trace.provenance)


def _place(
    trace: Trace, rows: Sequence[slice], places: Sequence[int], twins: Sequence[Request], request: Request
) -> int:
    """The text of a request, of the places and requests with its output: by its id, or the only one it can be."""
    fitting = [place for place in places if _same_length(trace.texts[place], request)]
    if not fitting:
        raise TextError(
            f"request {request.id!r}: its output is no text of the trace",
            limit="the trace must be of these very token ids after these prompts, by one tokenizer",
            remedy="give the pair with --target and --draft",
        )
    named = [place for place in fitting if trace.texts[place].id == request.id]
    if len(named) == 1 and sum(other.id == request.id for other in twins) == 1:
        return named[0]
    alike = all(_equal(trace, rows[fitting[0]], rows[place]) for place in fitting[1:])
    if alike and (len(fitting) > 1 or all(other.prompt == request.prompt for other in twins)):
        return fitting[0]
    raise TextError(
        f"request {request.id!r}: its output is that of {max(len(fitting), len(twins))} texts after different prompts",
        limit="a request is found by its id, or by a prompt and output that no other has",
        remedy="give the texts of the trace the ids of the requests, or the pair with --target and --draft",
    )


def _same_length(text: TextInfo, request: Request) -> bool:
    """Whether the prompts can be the same, as far as their lengths are known."""
    return text.prompt_tokens is None or not request.prompt or text.prompt_tokens == len(request.prompt)


def _equal(trace: Trace, one: slice, other: slice) -> bool:
    """Whether every column has the same numbers in two places."""
    return all(np.array_equal(column[one], column[other]) for column in trace.columns.values())


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
