"""vLLM's log: a line of speculative metrics every few seconds, each of its own interval."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import TextError
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import NUMBER, calls_of, calls_within, half_unit, shares_of

MARK = "SpecDecoding metrics:"
FIELDS = {
    "length": rf"Mean acceptance length: ({NUMBER}),",
    "accepted": r"Accepted: (\d+) tokens",
    "drafted": r"Drafted: (\d+) tokens",
    "shares": rf"Per-position acceptance rate: ({NUMBER}(?:, {NUMBER})*), Avg",
    "rate": rf"Avg Draft acceptance rate: ({NUMBER})%",
}
LENGTH_DIGITS, SHARE_DIGITS = 2, 3
MOST_DRAFTED = 10**7
"""Drafted tokens of one line, which is of ten seconds."""
PAST_END = "vLLM counts accepted tokens past the end of a text."
NO_DRAFTS = "Calls without drafts (n-gram, suffix) are not counted."
BETWEEN = "Calls drafted a variable number of tokens; their number follows from rounded shares: between {} and {}."


@dataclass(frozen=True)
class _Line:
    """What one line prints, and every number of `calls` that fits it."""

    accepted: int
    drafted: int
    shares: tuple[float, ...]
    calls: NDArray[np.int64]

    @property
    def full(self) -> int | None:
        """The calls if each drafted all k tokens, where that fits."""
        calls = self.drafted // len(self.shares)
        return calls if calls * len(self.shares) == self.drafted and calls in self.calls else None

    def counters(self, calls: int) -> Counters:
        """The counts, if there were so many calls."""
        shares, rounding = shares_of(self.shares, SHARE_DIGITS, calls, self.accepted)
        k = len(shares)
        return Counters(calls, self.drafted, self.accepted, shares, k, rounding=rounding, engine="vllm")


def read_vllm_log(path: Path) -> Counters:
    """The sum of all intervals in a log.

    If every line fits calls of k drafts each, these are the calls. Else drafts vary in number (n-gram, suffix, drafts
    cut short), and each line says an interval of calls: the one nearest to what its shares add up to is taken.
    """
    found = [(n, line) for n, line in enumerate(text_of(path).split("\n"), 1) if MARK in line]
    if not found:
        raise TextError(f"{path} has no {MARK!r}", limit="vLLM logs it with speculation", remedy="log at level INFO")
    lines = [_line(line, f"{path} line {number}") for number, line in found]
    full = [line.full for line in lines if line.full is not None]
    varied = len(full) < len(lines)
    calls = _nearest(lines) if varied else full
    total = Counters.joined([line.counters(n) for line, n in zip(lines, calls, strict=True)])
    ends = [sum(int(pick(line.calls)) for line in lines) for pick in (np.min, np.max)]
    return replace(total, remarks=(PAST_END, NO_DRAFTS, *([BETWEEN.format(*ends)] if varied else [])))


def _nearest(lines: Sequence[_Line]) -> list[int]:
    """Of each line the fitting number of calls nearest to accepted / sum of shares; without any, by drafts per call."""
    told = [line for line in lines if line.accepted]
    calls = [float(line.accepted / sum(line.shares)) if sum(line.shares) else float(line.calls.max()) for line in told]
    drafts = sum(line.drafted for line in told) / sum(calls) if told else float(len(lines[0].shares))
    meant = iter(calls)
    each = [next(meant) if line.accepted else line.drafted / drafts for line in lines]
    return [int(line.calls[abs(line.calls - n).argmin()]) for line, n in zip(lines, each, strict=True)]


def _line(line: str, where: str) -> _Line:
    found = {name: re.search(pattern, line) for name, pattern in FIELDS.items()}
    if cut := [name for name, match in found.items() if match is None]:
        raise TextError(f"{where} has no {cut[0]}", limit="needs a whole line", remedy="remove a line that was cut")
    value = {name: match[1] for name, match in found.items() if match}
    shares = tuple(float(share) for share in value["shares"].split(","))
    accepted, drafted, length = int(value["accepted"]), int(value["drafted"]), float(value["length"])
    if drafted > MOST_DRAFTED:
        raise TextError(
            f"{where} has {drafted:.3g} drafted tokens", limit=f"at most {MOST_DRAFTED:g}", remedy="check the line"
        )
    calls = calls_within(accepted, drafted, (length, LENGTH_DIGITS), (shares, SHARE_DIGITS))
    if not len(calls):
        guess, _ = calls_of(accepted, length, LENGTH_DIGITS, drafted, len(shares))  # says what is wrong, or the next
        Counters(guess, drafted, accepted, shares, len(shares), rounding=half_unit(SHARE_DIGITS))
        raise TextError(
            f"{where}: a mean length of {length:g}, its shares and {accepted} accepted tokens fit no number of calls",
            limit="length = 1 + accepted / calls, and each share is a count over calls",
            remedy="remove the line if it is damaged",
        )
    return _Line(accepted, drafted, shares, calls)


VLLM_LOG = Format(
    "vllm-log",
    lambda head: MARK.encode() in head,
    read_vllm_log,
    title="vLLM's log, lines of `SpecDecoding metrics`; intervals are summed",
    gives="calls, drafted and accepted tokens, survival by position",
    lacks="requests, texts; calls without drafts",
)
