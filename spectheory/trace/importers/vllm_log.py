"""vLLM's log: a line of speculative metrics every few seconds, each of its own interval."""

from __future__ import annotations

import re
from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import calls_of, shares_of

MARK = "SpecDecoding metrics:"
FIELDS = {
    "length": r"Mean acceptance length: ([\d.]+)",
    "accepted": r"Accepted: (\d+) tokens",
    "drafted": r"Drafted: (\d+) tokens",
    "shares": r"Per-position acceptance rate: ([\d., ]+), Avg",
    "rate": r"Avg Draft acceptance rate: ([\d.]+)%",
}
LENGTH_DIGITS, SHARE_DIGITS = 2, 3
PAST_END = "vLLM counts accepted tokens past the end of a text."
NO_DRAFTS = "Calls without drafts (n-gram, suffix) are not counted."
APPROXIMATE = "The number of calls follows from a rounded mean: it may be off by a few."


def read_vllm_log(path: Path) -> Counters:
    """The sum of all intervals in a log."""
    lines = [(n, line) for n, line in enumerate(text_of(path).split("\n"), 1) if MARK in line]
    if not lines:
        raise TextError(f"{path} has no {MARK!r}", limit="vLLM logs it with speculation", remedy="log at level INFO")
    return Counters.joined([_interval(line, f"{path} line {number}") for number, line in lines])


def _interval(line: str, where: str) -> Counters:
    found = {name: re.search(pattern, line) for name, pattern in FIELDS.items()}
    if cut := [name for name, match in found.items() if match is None]:
        raise TextError(f"{where} has no {cut[0]}", limit="needs a whole line", remedy="remove a line that was cut")
    value = {name: match[1] for name, match in found.items() if match}
    printed = [float(share) for share in value["shares"].split(",")]
    accepted, drafted, k = int(value["accepted"]), int(value["drafted"]), len(printed)
    calls, certain = calls_of(accepted, float(value["length"]), LENGTH_DIGITS, drafted, k)
    shares, rounding = shares_of(printed, SHARE_DIGITS, calls, accepted)
    return Counters(
        calls, drafted, accepted, shares, k, rounding=rounding, engine="vllm",
        remarks=(PAST_END, NO_DRAFTS, *(() if certain else (APPROXIMATE,))),
    )  # fmt: skip


VLLM_LOG = Format(
    "vllm-log",
    lambda head: MARK.encode() in head,
    read_vllm_log,
    title="vLLM's log, lines of `SpecDecoding metrics`; intervals are summed",
    gives="calls, drafted and accepted tokens, survival by position",
    lacks="requests, texts; calls without drafts",
)
