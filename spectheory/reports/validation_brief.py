"""What a validation shows first: whether counts agree, and the fastest shape of each rule in 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from spectheory.prediction.over_prompts import FEW, few_prompts
from spectheory.reports.base import Brief
from spectheory.reports.brief import narrowed, short, verdict
from spectheory.reports.table import Cell, Column, Row, Table, Value

Content = Mapping[str, Any]


def validation_brief(content: Content, agreement: str, notes: Sequence[str]) -> Brief:
    """The `agreement` of counts, how far speed-ups miss, and a row for each temperature and rule."""
    miss = content["median_miss"]
    speed = "" if miss is None else f"Speed-ups, measured against predicted: median miss {miss:.1f}%"
    prompts = few_prompts(content["provenance"].get("prompts", FEW))
    return Brief(verdict(agreement, speed), [narrowed(_table(content))], [*notes, *prompts])


def _table(content: Content) -> Table:
    columns = [
        Column("T", digits=1),
        Column("rule", kind="names"),
        Column("largest |z|"),
        Column("fastest shape", kind="words", meaning="shape with the largest measured speed-up"),
        Column("tokens per call", meaning="tokens per call of that shape, counted"),
        Column("measured", "x", meaning="speed-up over plain decoding that was timed"),
        Column("predicted", "x", meaning="speed-up that the trace and the latencies predict"),
    ]
    rows = [row for found in content["temperatures"] for row in _rows(found)]
    return Table("The fastest shape of each rule, the fastest rule first", columns, rows)


def _rows(found: Content) -> list[Row]:
    """The rules at one temperature."""
    by_rule = [list(records) for _, records in groupby(sorted(found["settings"], key=_rule), key=_rule)]
    by_rule.sort(key=lambda records: -max(map(_measured, records)))
    return [
        [found["temperature"], *(Cell(value, best=i == 0) for value in _row(records))]
        for i, records in enumerate(by_rule)
    ]


def _rule(record: Content) -> str:
    return str(record["rule"])


def _measured(record: Content) -> float:
    return float(record["speedup"]["measured"]["best"])


def _row(records: Sequence[Content]) -> list[Value]:
    fastest = max(records, key=_measured)
    predicted, tokens = fastest["speedup"]["predicted"], fastest["tokens_per_call"]["best"]
    speedups = [_measured(fastest), predicted["best"] if predicted else None]
    return [short(_rule(fastest)), _largest(records), fastest["shape"], tokens, *speedups]


def _largest(records: Sequence[Content]) -> Value:
    """The largest |z| of the comparisons that decide; infinite where certain calls differ."""
    deciding = [one for one in (record["expected"] for record in records) if one.get("decides", True)]
    if any(one["z"] is None for one in deciding):
        return "inf"
    return max((abs(float(one["z"])) for one in deciding), default=None)
