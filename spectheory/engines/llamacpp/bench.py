"""``llama-spec-bench`` of ik_llama.cpp: its Markdown table, and its JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spectheory.errors import TextError
from spectheory.files import parsed_json
from spectheory.trace.calls import is_count
from spectheory.trace.counters import Counters
from spectheory.trace.importers.answers import at
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import SLACK

_JSON = '"row_type"'
_NO_DRAFTS = "Rounds without drafts are not counted."
_NO_POSITIONS = (
    "The table has no whole shares by position: they are cut after four, or drafts varied in number. JSON lines have "
    "all (--output-format jsonl)."
)
_DIGITS, _WHOLE = 3, 0.05
"""Digits of a printed share; and the most drafts missing, over calls, up to which shares are taken from the table."""


def _read(path: Path) -> Counters:
    """The sum of all tasks and repeats."""
    text = text_of(path)
    rows = list(_of_json(text, path) if _JSON in text else _of_table(text, path))
    if not rows:
        raise TextError(
            f"{path} has no run with drafts",
            limit="needs rows with rounds and accepted tokens",
            remedy="run with --spec-type",
        )
    if len(stages := sorted({stage for stage, _ in rows})) > 1:
        raise TextError(
            f"{path} has drafts of {', '.join(stages)}",
            limit="one way to draft at a time",
            remedy="keep the lines of one",
        )
    counts = [each for _, each in rows]
    k = max(each.k or 0 for each in counts)
    deep = ((*each.survival, *[0.0] * (k - len(each.survival))) if each.survival else () for each in counts)
    parts = [replace(each, k=k or None, survival=shares) for each, shares in zip(counts, deep, strict=True)]
    whole = Counters.join(parts)
    return replace(whole, remarks=(_NO_DRAFTS, *([] if whole.survival else [_NO_POSITIONS])))


def _counters(calls: int, drafted: int, accepted: int, **known: Any) -> Counters:
    return Counters(calls, drafted, accepted, engine="ik_llama.cpp", **known)


def _of_json(text: str, path: Path) -> Iterator[tuple[str, Counters]]:
    """Each stage of each attempt; lines of the backend stand between, and a summary of all attempts at the end."""
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{path} line {number}"
        entry = parsed_json(line, where) if _JSON in line else {}
        if at(entry, "row_type") != "attempt":
            continue
        for stage in at(entry, "stages", "speculative.stages") or ():
            counts = [_count(stage, *names, where=where) for names in _COUNTS]
            by_position = stage.get("accepted_by_position") or []
            if not all(map(is_count, by_position)):
                raise _torn(where, "accepted_by_position")
            calls = counts[0]
            if calls:
                survival = tuple(count / calls for count in by_position)
                yield str(stage.get("type", "")), _counters(*counts, survival=survival, k=len(survival) or None)


_COUNTS = (("drafts", "num_drafts"), ("draft_tokens",), ("accepted", "accepted_tokens"))
"""What calls, drafted and accepted tokens are called: in compact lines, and in detailed ones."""


def _count(stage: Mapping[str, Any], *names: str, where: str) -> int:
    value = next((stage[name] for name in names if name in stage), None)
    if not is_count(value):
        raise _torn(where, names[0])
    return value


def _of_table(text: str, path: Path) -> Iterator[tuple[str, Counters]]:
    """Each row with drafts."""
    names: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.lstrip().startswith("|") or not line.rstrip().endswith("|") or set(line) <= set("|-: "):
            names = names if line.strip() else []
        elif not names:
            names = cells
        elif "pos accept" in names:
            row = dict(zip(names, cells, strict=False))
            if row.get("rounds", "-") not in ("-", "0"):
                yield row.get("stage", ""), _row(row, f"{path} line {number}")


def _row(row: Mapping[str, str], where: str) -> Counters:
    of_drafts = re.fullmatch(r"(\d+)/(\d+)", row.get("accepted", ""))
    if not of_drafts or not row["rounds"].isdecimal() or not re.fullmatch(r"[\d.]+", row.get("a.len", "")):
        raise _torn(where, "rounds, accepted and a.len")
    calls, accepted, drafted = int(row["rounds"]), int(of_drafts[1]), int(of_drafts[2])
    length, half = float(row["a.len"]), 0.005 + SLACK
    if calls and abs(1 + accepted / calls - length) > half:
        raise TextError(
            f"{where} has a.len {length:g}, its counts {1 + accepted / calls:.4g}",
            limit="1 + accepted / rounds",
            remedy="check the row for other counts",
        )
    shares = [float(share) / 100 for share in re.findall(r"([\d.]+)%(?= |$)", row.get("pos accept", ""))]
    missing = len(shares) * calls - drafted
    if not shares or row["pos accept"].count(" ") >= len(shares) or not 0 <= missing <= _WHOLE * calls:
        return _counters(calls, drafted, accepted)
    # A share is of the calls that drafted this position: of all but `missing` ones at most.
    rounding = 0.5 * 10.0**-_DIGITS + missing / calls
    return _counters(calls, drafted, accepted, survival=tuple(shares), k=len(shares), rounding=rounding)


def _torn(where: str, what: str) -> TextError:
    return TextError(f"{where} has no whole {what}", limit="needs whole numbers", remedy="remove a line that was cut")


SPEC_BENCH = Format(
    "llama-spec-bench",
    lambda head: (
        re.search(rb"^\| *task *\| *run *\| *stage *\|", head, re.M) is not None
        or (_JSON.encode() in head and b'"accepted_by_position"' in head)
    ),
    _read,
    title="`llama-spec-bench` of ik_llama.cpp: its table, or its JSON lines; tasks are summed",
    gives="calls, drafted and accepted tokens; survival by position from JSON lines, and from a table of up to four",
    lacks="texts; calls without drafts; of several stages each must be read alone",
)
