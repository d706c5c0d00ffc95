"""llama.cpp's log: a line for each request, in any of its three forms, and statistics of the whole run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import calls_of, shares_of

REQUEST = re.compile(r"draft acceptance(?: rate)? = ([\d.]+|nan) \( *(\d+) accepted / *(\d+) generated\)(.*)")
LENGTH = re.compile(r"mean (?:acceptance )?len(?:gth)? = +([\d.]+)")
SHARES = re.compile(r"acceptance rate per position = \(([\d., ]+)\)")
STATISTICS = re.compile(
    r"statistics +(\S+): .*#gen drafts = +(\d+).*#gen tokens = +(\d+), #acc tokens = +(\d+)"
    r"(?:.*dur\(b,g,a\) = [\d.]+, ([\d.]+), [\d.]+ ms)?"
)
LENGTH_DIGITS, SHARE_DIGITS, RATE_DIGITS = 2, 3, 5
NO_DRAFTS = "llama.cpp does not count calls without drafts."
NOTHING = "A request accepted nothing: its number of calls, and with it that of all, does not follow."
NO_CALLS = "This form of the line has no number of calls: tokens per call does not follow."
APPROXIMATE = "The number of calls follows from rounded means: it may be off by a few."


def read_llama_log(path: Path) -> Counters:
    """The sum of all requests in a log; of statistics alone their last line."""
    lines = list(enumerate(text_of(path).split("\n"), 1))
    requests = [_request(line, f"{path} line {n}") for n, line in lines if "draft acceptance" in line]
    statistics = [match for _, line in lines if (match := STATISTICS.search(line))]
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
    whole = Counters.joined([_as_deep(each, depth) for each in requests])
    same = last is not None and (last.drafted, last.accepted) == (whole.drafted, whole.accepted)
    return last if last is not None and same and whole.calls is None else whole


def _request(line: str, where: str) -> Counters:
    match = REQUEST.search(line)
    if match is None:
        raise TextError(f"{where} is cut", limit="needs accepted and generated", remedy="remove a line that was cut")
    accepted, drafted = int(match[2]), int(match[3])
    if drafted and abs(float(match[1]) - accepted / drafted) > 10.0**-RATE_DIGITS:
        raise TextError(
            f"{where} says {match[1]}, its counts {accepted / drafted:.5f}",
            limit="accepted / generated, a fraction",
            remedy="check the line for other counts",
        )
    length, shares = LENGTH.search(match[4]), SHARES.search(match[4])
    if length is None:
        return Counters(drafted=drafted, accepted=accepted, engine="llama.cpp", remarks=(NO_CALLS,))
    printed = [float(share) for share in shares[1].split(",")] if shares else []
    calls, certain = calls_of(accepted, float(length[1]), LENGTH_DIGITS, drafted, len(printed) or None)
    survival, rounding = shares_of(printed, SHARE_DIGITS, calls, accepted)
    return Counters(
        calls, drafted, accepted, survival, len(printed) or None, rounding=rounding, engine="llama.cpp",
        remarks=(NO_DRAFTS, *(() if certain else (APPROXIMATE if accepted else NOTHING,))),
    )  # fmt: skip


def _as_deep(counters: Counters, depth: int) -> Counters:
    """The same with a survival of so many positions: a request that drafted less accepted nothing beyond."""
    if not depth:
        return counters
    missing = depth - len(counters.survival)
    return replace(counters, k=depth, survival=(*counters.survival, *[0.0] * missing)) if counters.k else counters


def _run(match: re.Match[str]) -> Counters:
    """Statistics since the start of the server; a draft that was generated is a call."""
    calls, drafted, accepted = (int(match[i]) for i in (2, 3, 4))
    shares = re.search(r"#acc rate/pos = \(([\d., ]+)\)", match.string)
    printed = [float(share) for share in shares[1].split(",")] if shares else []
    survival, rounding = shares_of(printed, SHARE_DIGITS, calls, accepted)
    return Counters(
        calls,
        drafted,
        accepted,
        survival,
        len(printed) or None,
        draft_seconds=float(match[5]) / 1000 if match[5] else None,
        rounding=rounding,
        engine="llama.cpp",
        remarks=(NO_DRAFTS,),
        provenance={"drafter": match[1]},
    )


LLAMA_LOG = Format(
    "llama.cpp-log",
    lambda head: re.search(rb"draft acceptance(?: rate)? = |statistics +\S+: #calls", head) is not None,
    read_llama_log,
    title="llama.cpp's log, lines of `draft acceptance`; requests are summed",
    gives="drafted and accepted tokens; calls and survival by position as far as the version prints them",
    lacks="texts; in older versions calls",
)
