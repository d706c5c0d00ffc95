"""Logs of llama.cpp: answers of its server, log-probabilities, timings, its log and its counters."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from reprlib import repr as brief
from typing import Any

import numpy as np

from spectheory.engines.llamacpp.bench import SPEC_BENCH
from spectheory.errors import TextError
from spectheory.trace.calls import MOST_COUNTED, Request, is_count, is_number
from spectheory.trace.counters import Counters
from spectheory.trace.importers.answers import Json, at, call_log, entries, request_of
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.logprobs import known_lists, refuse_speculated, scores, text_fields, top_list
from spectheory.trace.importers.prometheus import POSITION, SPECULATION, Metrics
from spectheory.trace.importers.rounded import NUMBER, calls_of, shares_of
from spectheory.trace.scores import ScoredText


def _requests(entry: Json) -> list[Request]:
    """The prompt's pass emits a token, so calls = tokens - 1 - accepted; no request without drafts.

    That is one too few for a text whose last call accepted tokens past its end: llama.cpp does not count calls per
    request.
    """
    timings = entry["timings"]
    if "draft_n" not in timings:
        return []
    accepted = timings["draft_n_accepted"]
    counts = {"total_accepted": accepted, "total_drafted": timings["draft_n"]}
    calls = timings["predicted_n"] - 1 - accepted
    return [request_of(entry, calls=calls, seconds=timings["predicted_ms"] / 1000, **counts)]


def _text(entry: Json) -> ScoredText:
    """A text that was made without a draft model.

    With ``post_sampling_probs`` the server gives probabilities under its settings, otherwise raw log-probabilities.
    """
    if at(entry, "timings.draft_n"):
        refuse_speculated(entry)
    content = at(entry, "completion_probabilities")
    after = "prob" in content[0]
    tops = (each.get("top_probs" if after else "top_logprobs") or () for each in content)
    return ScoredText(
        log_probs=tuple(_log(each, after) for each in content),
        tokens=tuple(each["id"] for each in content),
        tops=known_lists(top_list((other["id"], _log(other, after)) for other in row) for row in tops),
        **{**text_fields(entry), "processed": after},
    )


def _log(each: Json, after: bool) -> Any:
    """The natural logarithm; a probability of zero has minus infinity."""
    if not after:
        return each["logprob"]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(each["prob"]))


_TIMED = ("predicted_n", "draft_n", "draft_n_accepted")
CALLS_BY_DIFFERENCE = (
    "Calls are output tokens less accepted ones less the prompt's own: calls without drafts are among them, and each "
    "accepted token past the end of a text is a call too few."
)


def _read_timings(path: Path) -> Counters:
    """The sum over all responses with drafts."""
    timings = [record.get("timings", record) for record in entries(path).values()]
    drafted = [each for each in timings if isinstance(each, dict) and "draft_n" in each]
    if not drafted:
        raise TextError(f"{path} has no draft_n", limit="needs timings of speculation", remedy="serve with a draft")
    counts = [_counts(each, path) for each in drafted]
    totals: dict[str, Any] = {name: sum(each[name] for each in counts) for name in counts[0]}
    plain = len(timings) - len(drafted)
    return Counters(
        **totals,
        seconds=_seconds(drafted),
        engine="llama.cpp",
        remarks=(CALLS_BY_DIFFERENCE, *([f"{plain} responses without drafts are left out."] if plain else ())),
        provenance={"responses": len(drafted)},
    )


def _counts(timings: dict[str, Any], path: Path) -> dict[str, int]:
    values = [timings.get(name) for name in _TIMED]
    if not all(map(is_count, values)):
        raise TextError(
            f"{path} has timings {', '.join(f'{n} {brief(v)}' for n, v in zip(_TIMED, values, strict=True))}",
            limit="needs whole numbers",
            remedy="save the whole response",
        )
    tokens, drafted, accepted = (int(timings[name]) for name in _TIMED)
    if accepted > drafted or tokens < accepted + (accepted > 0):
        raise TextError(
            f"{path} has timings of {tokens} tokens, {drafted} drafted and {accepted} accepted",
            limit="accepted <= drafted, and fewer than the tokens",
            remedy="check the file for mixed responses",
        )
    return {"calls": max(tokens - accepted - 1, 0), "drafted": drafted, "accepted": accepted, "tokens": tokens}


def _seconds(timings: list[dict[str, Any]]) -> float | None:
    """Time of all outputs; None where one does not say."""
    times = [each.get("predicted_ms") for each in timings]
    known = [time for time in times if is_number(time) and 0 <= time < MOST_COUNTED]
    return sum(known) / 1000 if len(known) == len(times) else None


_REQUEST = re.compile(rf"draft acceptance(?: rate)? = ({NUMBER}|nan) \( *(\d+) accepted / *(\d+) generated\)(.*)")
_LENGTH = re.compile(rf"mean (?:acceptance )?len(?:gth)? = +({NUMBER})(?:,|\s|$)")
_SHARES = re.compile(rf"acceptance rate per position = \(({NUMBER}(?:, {NUMBER})*)\)")
_STATISTICS = re.compile(
    r"statistics +(\S+): .*#gen drafts = +(\d+).*#gen tokens = +(\d+), #acc tokens = +(\d+)"
    r"(?:.*dur\(b,g,a\) = [\d.]+, (\d+\.\d+), [\d.]+ ms)?"
)
_LENGTH_DIGITS, _SHARE_DIGITS, _RATE_DIGITS = 2, 3, 5
_NO_DRAFTS = "llama.cpp does not count calls without drafts."
_NOTHING = "A request accepted nothing: its number of calls, and with it that of all, does not follow."
_NO_CALLS = "This form of the line has no number of calls: tokens per call does not follow."
_APPROXIMATE = "The number of calls follows from rounded means: it may be off by a few."


def _read_log(path: Path) -> Counters:
    """The sum of all requests in a log; of statistics alone their last line."""
    lines = list(enumerate(text_of(path).split("\n"), 1))
    requests = [_request(line, f"{path} line {n}") for n, line in lines if "draft acceptance" in line]
    statistics = [match for _, line in lines if (match := _STATISTICS.search(line))]
    if len(named := {match[1].rstrip(":") for match in statistics}) > 1:
        raise TextError(
            f"{path} has statistics of {', '.join(sorted(named))}",
            limit="one way to draft at a time",
            remedy="keep the lines of one",
        )
    last = _run(statistics[-1]) if statistics else None
    if not requests:
        if last is None:
            raise TextError(f"{path} has no draft acceptance", limit="needs such lines", remedy="log the whole run")
        return last
    depth = max(each.k or 0 for each in requests)
    whole = Counters.join([_as_deep(each, depth) for each in requests])
    same = last is not None and (last.drafted, last.accepted) == (whole.drafted, whole.accepted)
    return last if last is not None and same and whole.calls is None else whole


def _request(line: str, where: str) -> Counters:
    match = _REQUEST.search(line)
    if match is None:
        raise TextError(f"{where} is cut", limit="needs accepted and generated", remedy="remove a line that was cut")
    accepted, drafted = int(match[2]), int(match[3])
    if drafted and abs(float(match[1]) - accepted / drafted) > 10.0**-_RATE_DIGITS:
        raise TextError(
            f"{where} says {match[1]}, its counts {accepted / drafted:.5f}",
            limit="accepted / generated, a fraction",
            remedy="check the line for other counts",
        )
    length, shares = _LENGTH.search(match[4]), _SHARES.search(match[4])
    if length is None:
        return Counters(drafted=drafted, accepted=accepted, engine="llama.cpp", remarks=(_NO_CALLS,))
    printed = [float(share) for share in shares[1].split(",")] if shares else []
    calls, certain = calls_of(accepted, float(length[1]), _LENGTH_DIGITS, drafted, len(printed) or None)
    survival, rounding = shares_of(printed, _SHARE_DIGITS, calls, accepted)
    return Counters(
        calls,
        drafted,
        accepted,
        survival,
        len(printed) or None,
        rounding=rounding,
        engine="llama.cpp",
        remarks=(_NO_DRAFTS, *(() if certain else (_APPROXIMATE if accepted else _NOTHING,))),
    )


def _as_deep(counters: Counters, depth: int) -> Counters:
    """The same with a survival of so many positions: a request that drafted less accepted nothing beyond."""
    if not depth:
        return counters
    missing = depth - len(counters.survival)
    return replace(counters, k=depth, survival=(*counters.survival, *[0.0] * missing)) if counters.k else counters


def _run(match: re.Match[str]) -> Counters:
    """Statistics since the start of the server; a draft that was generated is a call."""
    calls, drafted, accepted = (int(match[i]) for i in (2, 3, 4))
    shares = re.search(rf"#acc rate/pos = \(({NUMBER}(?:, {NUMBER})*)\)", match.string)
    printed = [float(share) for share in shares[1].split(",")] if shares else []
    survival, rounding = shares_of(printed, _SHARE_DIGITS, calls, accepted)
    return Counters(
        calls,
        drafted,
        accepted,
        survival,
        len(printed) or None,
        draft_seconds=float(match[5]) / 1000 if match[5] else None,
        rounding=rounding,
        engine="llama.cpp",
        remarks=(_NO_DRAFTS,),
        provenance={"drafter": match[1]},
    )


REQUESTS = (
    Format(
        "llama.cpp-requests",
        lambda head: b'"draft_n"' in head and (b'"choices"' in head or b'"tokens_predicted"' in head),
        lambda path: call_log(
            path,
            "llama.cpp-requests",
            _requests,
            engine="llama.cpp",
            prefill_emits_token=True,
            provenance={"calls": "tokens - 1 - accepted tokens; a last call that was cut may be missing"},
        ),
        title="responses of llama.cpp's server with `timings`",
        gives="accepted and drafted tokens of each request, and its ids where log-probabilities were asked for",
        lacks="calls of each request, other than as tokens - 1 - accepted; log-probabilities: those of calls are "
        "set to 0",
    ),
)
SCORES = (
    Format(
        "llama.cpp-logprobs",
        lambda head: b'"completion_probabilities"' in head,
        lambda path: scores(path, "llama.cpp-logprobs", _text),
        title="llama.cpp's `completion_probabilities`",
        gives="with the log of the other model a trace: two numbers per token, and lists of top tokens",
        lacks="given texts: this server scores what it generates alone",
    ),
)
TOTALS = (
    Format(
        "llama.cpp-timings",
        lambda head: b'"draft_n_accepted"' in head,
        _read_timings,
        title="llama.cpp's `timings` alone, JSON or JSON lines",
        gives="drafted and accepted tokens, calls by difference, seconds",
        lacks="survival by position, k; texts are not read",
    ),
    Format(
        "llama.cpp-log",
        lambda head: re.search(rb"draft acceptance(?: rate)? = |statistics +\S+: #calls", head) is not None,
        _read_log,
        title="llama.cpp's log, lines of `draft acceptance`; requests are summed",
        gives="drafted and accepted tokens; calls and survival by position as far as the version prints them",
        lacks="texts; in older versions calls",
    ),
    SPEC_BENCH,
)
METRICS = (
    Metrics(
        "llama.cpp",
        "llamacpp:",
        {**SPECULATION, "tokens": "tokens_predicted_total", "seconds": "tokens_predicted_seconds_total"},
        POSITION,
        remarks=(_NO_DRAFTS,),
    ),
)
