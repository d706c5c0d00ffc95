"""What a log holds, what follows from it and what does not, and what to run next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spectheory.answers.counts import ImportJson
from spectheory.reports.base import Report
from spectheory.reports.table import Column, Row, Table
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters, pooled
from spectheory.trace.importers import Format
from spectheory.trace.reading import Whole
from spectheory.trace.record import Trace
from spectheory.trace.text_info import LEFT_OUT


def import_report(evidence: Whole, formats: Sequence[Format], written: Path) -> Report:
    """What was imported from files of these formats, and where it was written."""
    names = ", ".join(dict.fromkeys(each.name for each in formats))
    facts, table, remarks = _held(evidence)
    lacks = [f"Does not follow: {each.lacks}." for each in dict.fromkeys(formats) if each.lacks]
    gives = [f"Follows: {each.gives}." for each in dict.fromkeys(formats) if each.gives]
    steps = _next(evidence, written.parent)
    content = ImportJson.view(
        facts,
        format=names,
        kind=type(evidence).__name__.lower(),
        gives=gives,
        lacks=lacks,
        remarks=remarks,
        written=str(written),
        next=steps,
    )
    said = ", ".join(f"{name} {value}" for name, value in facts.items() if value not in (None, "", [], ()))
    notes = [*gives, *lacks, *remarks, f"Written: {written}. Next: {'; '.join(steps)}."]
    return Report(content, [table] if table else [], f"{names}: {said}", notes)


def _held(evidence: Whole) -> tuple[dict[str, Any], Table | None, list[str]]:
    """Facts in words and numbers, a table of positions, and remarks."""
    if isinstance(evidence, Trace):
        left_out = evidence.provenance.get(LEFT_OUT)
        of = {"requests left out": left_out} if left_out else {}
        columns = sorted(evidence.columns)
        return {"texts": len(evidence.texts), **of, "tokens": len(evidence), "columns": columns}, None, []
    counters = pooled(evidence) if isinstance(evidence, CallLog) else evidence
    length = counters.length
    facts: dict[str, Any] = {"engine": counters.engine, "version": counters.version}
    if isinstance(evidence, CallLog):
        facts |= {"requests": len(evidence), "with token ids": sum(bool(each.output) for each in evidence.requests)}
        facts |= {"temperature": evidence.temperature}
    facts |= {name: getattr(counters, name) for name in ("k", "calls", "drafted", "accepted", "tokens")}
    facts["tokens per call"] = None if length is None else round(length, 4)
    table = _positions(counters) if counters.survival else None
    return facts, table, [*counters.remarks, *counters.biases]


def _positions(counters: Counters) -> Table:
    above = (1.0, *counters.survival)
    rows: list[Row] = [
        [i, None if counters.calls is None else round(share * counters.calls), share, share / over if over else None]
        for i, (share, over) in enumerate(zip(counters.survival, above, strict=False), 1)
    ]
    columns = [Column("position"), Column("accepted"), Column("share of calls", digits=3), Column("hazard", digits=3)]
    note = "hazard: the share over that of the position before."
    return Table("Accepted by position", columns, rows, (note,))


def _next(evidence: Whole, folder: Path) -> list[str]:
    if isinstance(evidence, Trace):
        return [f"spectheory predict {folder}"]
    texts = isinstance(evidence, CallLog) and all(each.output and each.prompt for each in evidence.requests)
    judge = [f"spectheory judge {folder} --target TARGET --draft DRAFT"] if texts else []
    return [*judge, f"spectheory predict {folder} --c RATIO"]
