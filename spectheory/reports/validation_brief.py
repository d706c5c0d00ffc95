"""What a validation shows first: whether counts agree, and the fastest shape of each rule in 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from spectheory.intervals import Interval
from spectheory.prediction.over_prompts import FEW, few_prompts
from spectheory.reports.base import Brief
from spectheory.reports.brief import narrowed, short, verdict
from spectheory.reports.table import Column, Row, Table, Value

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
        Column("measured"),
        Column("predicted"),
    ]
    rows: list[Row] = [
        [found["temperature"], *_row(list(records))]
        for found in content["temperatures"]
        for _, records in groupby(sorted(found["settings"], key=_rule), key=_rule)
    ]
    return Table("The fastest shape of each rule: speed-up over plain decoding", columns, rows)


def _rule(record: Content) -> str:
    return str(record["rule"])


def _row(records: Sequence[Content]) -> list[Value]:
    fastest = max(records, key=lambda record: record["speedup"]["measured"]["best"])
    speedup, tokens = fastest["speedup"], fastest["tokens_per_call"]["best"]
    predicted = Interval(**speedup["predicted"]) if speedup["predicted"] else None
    measured = Interval(**speedup["measured"])
    return [short(_rule(fastest)), _largest(records), fastest["shape"], tokens, measured, predicted]


def _largest(records: Sequence[Content]) -> Value:
    """The largest |z| of the comparisons that decide; infinite where certain calls differ."""
    deciding = [one for one in (record["expected"] for record in records) if one.get("decides", True)]
    if any(one["z"] is None for one in deciding):
        return "inf"
    return max((abs(float(one["z"])) for one in deciding), default=None)
