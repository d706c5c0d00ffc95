"""The table of speculators' evaluation script: vLLM's counters, a row for each subset of the data."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from spectheory.errors import FOREIGN, TextError
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import SLACK, half_unit, shares_of
from spectheory.trace.importers.vllm_log import NO_DRAFTS, PAST_END

TOTALS = {"calls": "num_drafts", "drafted": "num_draft_tokens", "accepted": "num_accepted_tokens"}
LENGTH, SHARE = "acceptance_length", "acceptance_at_pos_"


def read_speculators(path: Path) -> Counters:
    """The sum of all subsets; each counts once, however many loads the table has of it."""
    rows = list(csv.DictReader(text_of(path).splitlines()))
    if not rows:
        raise TextError(f"{path} has no row", limit="needs a subset", remedy="run the evaluation again")
    digits = max((_digits(row[name]) for row in rows for name in row if _is_share(name)), default=0)
    subsets = {_counts(row): _subset(row, digits, f"{path} line {number}") for number, row in enumerate(rows, 2)}
    return Counters.joined(list(subsets.values()))


def _counts(row: dict[str, str]) -> tuple[str | None, ...]:
    """What a row counts: a sweep has a row for every load, each with the counts of the whole subset."""
    return tuple(row.get(name) for name in row if name in ("subset", *TOTALS.values()) or _is_share(name))


def _subset(row: dict[str, str], digits: int, where: str) -> Counters:
    try:
        calls, drafted, accepted = (int(float(row[name])) for name in TOTALS.values())
        length, shares = float(row[LENGTH]), [float(row[name]) for name in row if _is_share(name)]
        if not all(map(math.isfinite, (length, *shares))):
            raise ValueError("not finite")
    except FOREIGN as error:
        raise TextError(
            f"{where} is no whole row", limit=f"needs {', '.join(TOTALS.values())}, {LENGTH}", remedy="export it again"
        ) from error
    off = half_unit(min(_digits(row[LENGTH]), 6)) + SLACK
    if calls and abs(1 + accepted / calls - length) > off:
        raise TextError(
            f"{where} has a length of {length:g}, its counts {1 + accepted / calls:.6g}",
            limit="1 + accepted / drafts",
            remedy="check the row for other counts",
        )
    survival, rounding = shares_of(shares, digits, calls, accepted)
    return Counters(
        calls, drafted, accepted, survival, len(shares) or None, rounding=rounding, engine="vllm",
        remarks=(PAST_END, NO_DRAFTS),
    )  # fmt: skip


def _is_share(name: str | None) -> bool:
    return name is not None and name.startswith(SHARE)


def _digits(number: str | None) -> int:
    """Digits after the point as written."""
    return len((number or "").partition(".")[2])


SPECULATORS = Format(
    "speculators",
    lambda head: all(name.encode() in head.partition(b"\n")[0] for name in (*TOTALS.values(), LENGTH)),
    read_speculators,
    title="the CSV of speculators' evaluation of a draft in vLLM; subsets are summed",
    gives="calls, drafted and accepted tokens, survival by position",
    lacks="requests, texts; calls without drafts",
)
