"""SGLang's log: ``Decode batch`` lines with a mean accept length of the last steps."""

from __future__ import annotations

import math
import re
from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import longest_of

FIELDS = {
    "requests": r"#running-req: (\d+)",
    "length": r"accept len: ([\d.]+)",
    "rate": r"accept rate: ([\d.]+)",
}
DIGITS = 2
WEIGHTED = "Each line is weighted by its running requests: the steps between two lines are taken as equally many."
COUNTED = "Means of the last steps: no counts, no survival, no noise. They count the prompt's token and the last call."
BONUS_IN_RATE = "Its accept rate is accept length / (k + 1): the recovered or bonus token counts in it."


def read_sglang_log(path: Path) -> Counters:
    """The mean of all lines with an accept length."""
    lines = [(n, line) for n, line in enumerate(text_of(path).split("\n"), 1) if "accept len:" in line]
    if not lines:
        raise TextError(f"{path} has no accept len", limit="needs Decode batch lines", remedy="serve with speculation")
    rows = [_row(line, f"{path} line {number}") for number, line in lines]
    weight = sum(row["requests"] for row in rows)
    if not weight:
        raise TextError(f"{path} has no running request", limit="needs lines under load", remedy="log while it serves")
    length = math.fsum(row["requests"] * row["length"] for row in rows) / weight
    found = {longest_of(row["length"], row["rate"], DIGITS) for row in rows} - {(None, False)}
    k, bonus = found.pop() if len(found) == 1 else (None, False)
    return Counters(
        k=k,
        mean_length=length,
        engine="sglang",
        remarks=(COUNTED, *([WEIGHTED] if len(rows) > 1 else []), *([BONUS_IN_RATE] if bonus else [])),
        provenance={"lines": len(rows)},
    )


def _row(line: str, where: str) -> dict[str, float]:
    found = {name: re.search(pattern, line) for name, pattern in FIELDS.items()}
    if cut := [name for name, match in found.items() if match is None]:
        raise TextError(f"{where} has no {cut[0]}", limit="needs a whole line", remedy="remove a line that was cut")
    row = {name: float(match[1]) for name, match in found.items() if match}
    if row["rate"] > 1 or row["length"] < 1:
        raise TextError(
            f"{where} has accept len {row['length']:g} and accept rate {row['rate']:g}",
            limit="a length is at least 1, a rate in 0..1 and no percentage",
            remedy="check the line",
        )
    return row


SGLANG_LOG = Format(
    "sglang-log",
    lambda head: b"accept len:" in head,
    read_sglang_log,
    title="SGLang's log, `Decode batch` lines",
    gives="tokens per call; k where length and rate agree on one",
    lacks="counts, survival by position, texts",
)
