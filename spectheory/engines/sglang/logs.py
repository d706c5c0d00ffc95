"""Logs of SGLang: its answers, log-probabilities, log, benchmark and counters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.calls import Request, is_count, is_number
from spectheory.trace.counters import Counters
from spectheory.trace.importers.answers import Json, at, call_log, entries, histogram, one_length, request_of
from spectheory.trace.importers.base import Format, fields_of, text_of
from spectheory.trace.importers.logprobs import known_lists, scores, text_fields, top_list
from spectheory.trace.importers.prometheus import Metrics, Reads
from spectheory.trace.importers.rounded import NUMBER, longest_of
from spectheory.trace.scores import ScoredText

_INFO = ("meta_info", "choices.0.meta_info", "sglext.spec_tokens_details", "choices.0.sglext.spec_tokens_details")
_CALLS = "spec_verify_ct"
_ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_DRAFTED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")
_CAPPED = ("spec_cap_length", "spec_cap_lens_histogram")


def _requests(entry: Json) -> list[Request]:
    """Counts in a response of ``/generate``, or of the chat and completion routes; none where it has no calls.

    A cap changes the number of drafts from call to call, and the histogram does not say how many each had.
    """
    info = next((meta for place in _INFO if at(meta := at(entry, place), _CALLS) is not None), None)
    if not info or not info[_CALLS]:
        return []
    calls, drafted = info[_CALLS], at(info, *_DRAFTED)
    row = None if any(at(info, name) is not None for name in _CAPPED) else at(info, *_HISTOGRAM)
    if row is not None and sum(histogram(row)) != calls:
        raise ValueError(f"its histogram counts {sum(histogram(row))} calls, {_CALLS} is {calls}")
    counts = {"calls": calls, "total_accepted": at(info, *_ACCEPTED), "total_drafted": drafted}
    return [request_of(entry, **counts, by_drafted=one_length(row, calls, drafted) if drafted else {})]


_SCORED, _TOPS = "meta_info.input_token_logprobs", "meta_info.input_top_logprobs"


def _text(entry: Json) -> ScoredText:
    """Positions are ``[logprob, id, text]``, the first without a value."""
    logs, tokens, strings = zip(*at(entry, _SCORED), strict=True)
    return ScoredText(
        log_probs=logs,
        tokens=tokens,
        strings=strings if None not in strings else (),
        prompt=at(entry, "prompt_tokens") or 0,
        tops=known_lists(top_list((token, log) for log, token, _ in row or ()) for row in at(entry, _TOPS) or ()),
        **{**text_fields(entry), "ended": False},
    )


_LENGTH = "accept_length"
_BIASED = "SGLang's mean counts the prompt's token and the cut last call: biased by about one token per request."


def _read_bench(path: Path) -> Counters:
    """The one run of a file, or its last one: each is a mean of its own, without counts that could be added."""
    runs = [(where, entry) for where, entry in entries(path).items() if entry.get(_LENGTH) is not None]
    if not runs:
        raise TextError(f"{path} has no {_LENGTH}", limit="a run with speculation says it", remedy="serve with a draft")
    (where, run), others = runs[-1], len(runs) - 1
    length, tokens = run[_LENGTH], run.get("total_output_tokens")
    if not is_number(length) or not 1 <= length <= 1024:
        raise TextError(
            f"{where} has {_LENGTH} {length!r}", limit="tokens per call are 1 to 1024", remedy="run it again"
        )
    remarks = (_BIASED, *((f"{others} earlier runs of the file are left out.",) if others else ()))
    known = {name: run[name] for name in ("backend", "request_rate", "max_concurrency", "completed") if name in run}
    return Counters(
        mean_length=float(length),
        tokens=tokens if type(tokens) is int and tokens >= 0 else None,
        engine="sglang",
        remarks=remarks,
        provenance=known,
    )


_SWEPT = ("batch_size", "steps", "topk", "num_draft_tokens")


def _read_sweep(path: Path) -> Counters:
    """Tokens per call by k: the mean over batch sizes of the runs that draft chains.

    With topk 1 the server verifies `steps` drafts, whatever num_draft_tokens says.
    """
    rows = [(where, [entry[name] for name in _SWEPT], entry["acc_length"]) for where, entry in entries(path).items()]
    for where, values, length in rows:
        if not all(map(is_count, values)) or not (length is None or (is_number(length) and 1 <= length <= 1025)):
            raise TextError(
                f"{where} has {values} and acc_length {brief(length)}",
                limit=f"needs whole numbers {', '.join(_SWEPT)}, and tokens per call of 1 to steps + 1",
                remedy="remove the line",
            )
    chains: dict[int, list[float]] = {}
    for _, (_, steps, topk, _), length in rows:
        if topk == 1 and steps and length is not None:
            chains.setdefault(steps, []).append(float(length))
    if not chains:
        raise TextError(
            f"{path} has no run of a chain with its length",
            limit="trees (topk above 1) give no lengths by k",
            remedy="run bench_speculative.py with --topk 1 too",
        )
    lengths = tuple((k, math.fsum(each) / len(each)) for k, each in sorted(chains.items()))
    apart = max(max(each) - min(each) for each in chains.values())
    trees, sizes = sum(values[2] > 1 for _, values, _ in rows), {values[0] for _, values, _ in rows}
    return Counters(
        k=lengths[-1][0],
        mean_length=lengths[-1][1],
        lengths=lengths,
        engine="sglang",
        remarks=(
            _BIASED,
            f"Lengths are means over batch sizes {', '.join(map(str, sorted(sizes)))}, which differ by up to "
            f"{apart:.3g} at one k.",
            *([f"{trees} runs of trees are left out."] if trees else []),
        ),
    )


_FIELDS = {
    "requests": r"#running-req: (\d+)",
    "length": rf"accept len: ({NUMBER})(?![\d.]*\.)",
    "rate": rf"accept rate: ({NUMBER})(?![\d.]*\.)",
}
_DIGITS = 2
_WEIGHTED = "Each line is weighted by its running requests: the steps between two lines are taken as equally many."
_COUNTED = "Means of the last steps: no counts, no survival, no noise. They count the prompt's token and the last call."
_BONUS_IN_RATE = "Its accept rate is accept length / (k + 1): the recovered or bonus token counts in it."


def _read_log(path: Path) -> Counters:
    """The mean of all lines with an accept length."""
    lines = [(n, line) for n, line in enumerate(text_of(path).split("\n"), 1) if "accept len:" in line]
    if not lines:
        raise TextError(f"{path} has no accept len", limit="needs Decode batch lines", remedy="serve with speculation")
    rows = [_row(line, f"{path} line {number}") for number, line in lines]
    weight = sum(row["requests"] for row in rows)
    if not weight:
        raise TextError(f"{path} has no running request", limit="needs lines under load", remedy="log while it serves")
    length = math.fsum(row["requests"] * row["length"] for row in rows) / weight
    settings = {longest_of(row["length"], row["rate"], _DIGITS) for row in rows} - {(None, False)}
    k, bonus = settings.pop() if len(settings) == 1 else (None, False)
    return Counters(
        k=k,
        mean_length=length,
        engine="sglang",
        remarks=(_COUNTED, *([_WEIGHTED] if len(rows) > 1 else []), *([_BONUS_IN_RATE] if bonus else [])),
        provenance={"lines": len(rows)},
    )


def _row(line: str, where: str) -> dict[str, float]:
    row = {name: float(value) for name, value in fields_of(line, _FIELDS, where).items()}
    if row["rate"] > 1 or row["length"] < 1:
        raise TextError(
            f"{where} has accept len {row['length']:g} and accept rate {row['rate']:g}",
            limit="a length is at least 1, a rate in 0..1 and no percentage",
            remedy="check the line",
        )
    return row


def _accepted(totals: Mapping[str, Any], total: Reads, gauge: Reads) -> dict[str, Any]:
    """Accepted tokens: those of the output less one for each call and each request; and k, where it says it."""
    accepted = (totals["tokens"] or 0) - (totals["calls"] or 0) - int(total("num_requests_total") or 0)
    steps = gauge("spec_num_steps")
    return {"accepted": max(accepted, 0), "k": int(steps) if steps else None}


REQUESTS = (
    Format(
        "sglang-requests",
        lambda head: f'"{_CALLS}"'.encode() in head,
        lambda path: call_log(path, "sglang-requests", _requests, engine="sglang", prefill_emits_token=True),
        title="SGLang's responses with `meta_info`",
        gives="calls, accepted and drafted tokens of each request, and its calls by accepted tokens",
        lacks="drafts per call: an adaptive length or a tree is read as a chain of one length",
    ),
)
SCORES = (
    Format(
        "sglang-logprobs",
        lambda head: b'"input_token_logprobs"' in head,
        lambda path: scores(path, "sglang-logprobs", _text),
        title="SGLang's `input_token_logprobs`",
        gives="with the log of the other model a trace: two numbers per token, and lists of top tokens",
        lacks="how the text was drawn, and where its output begins, unless it is added",
    ),
)
TOTALS = (
    Format(
        "sglang-bench",
        lambda head: b'"accept_length"' in head and b'"request_throughput"' in head,
        _read_bench,
        title="SGLang's `bench_serving --output-file`, the last run of a file",
        gives="tokens per call, a mean",
        lacks="counts, survival by position, k",
    ),
    Format(
        "sglang-sweep",
        lambda head: all(f'"{name}"'.encode() in head for name in (*_SWEPT, "acc_length")),
        _read_sweep,
        title="SGLang's `bench_speculative.py`, a line for each setting",
        gives="tokens per call at each k of the chains, means",
        lacks="counts, survival by position; trees and times of steps are not read",
    ),
    Format(
        "sglang-log",
        lambda head: b"accept len:" in head,
        _read_log,
        title="SGLang's log, `Decode batch` lines",
        gives="tokens per call; k where length and rate agree on one",
        lacks="counts, survival by position, texts",
    ),
)
METRICS = (
    Metrics(
        "sglang",
        "sglang:",
        {"calls": "spec_verify_calls_total", "tokens": "generation_tokens_total"},
        remarks=(
            "SGLang counts calls and output tokens: accepted tokens are tokens less calls less one for each request, "
            "which the prompt's own pass emits.",
            "The cut last call of a text makes tokens per call too low, by less than one call in a request.",
        ),
        needs="spec_verify_calls_total",
        derived=_accepted,
    ),
    Metrics(
        "sglang",
        "sglang:",
        gauges={"mean_length": "spec_accept_length", "rate": "spec_accept_rate"},
        remarks=("Gauges of the last interval: no counts, no survival, no noise.", _BIASED),
    ),
)
"""Of versions from 0.5.23 on, and older ones."""
