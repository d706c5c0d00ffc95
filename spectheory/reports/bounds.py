"""Limits on tokens per call, a row for each number of nodes; footnotes say what each column claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectheory.intervals import Interval
from spectheory.limits.claims import LimitClaim, footnotes
from spectheory.reports.base import Report
from spectheory.reports.table import Cell, Column, Row, Table

DETERMINISTIC = "Drafts that do not sample: tokens per call"
SAMPLED = "Drafted chains (1 call), rank trees (T1): tokens per call"
RANKS = "Rank trees: tokens per call"
"""Titles of tables."""


@dataclass(frozen=True)
class BoundsAnswer:
    """Limits for several numbers of nodes, tokens per call with the recovered or bonus token.

    `source` is ``moments``, ``pmfs``, ``trace`` or ``ranks``, and `facts` say what the limits were computed from.
    `tables` have claims by key under titles; `rows` have values by nodes and key, None where there is none.
    """

    source: str
    facts: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, LimitClaim]]
    rows: Mapping[int, Mapping[str, Interval | float | None]]
    notes: Sequence[str] = ()


def bounds_report(answer: BoundsAnswer) -> Report:
    """A row per number of nodes, a footnote per claim."""
    claims = {key: claim for part in answer.tables.values() for key, claim in part.items()}
    most = any(_is_most(value, nodes) for nodes, row in answer.rows.items() for value in row.values())
    content = {
        "source": answer.source,
        **answer.facts,
        "unit": "tokens per call, recovered or bonus token counted",
        "rows": [{"nodes": nodes, **row} for nodes, row in answer.rows.items()],
        "columns": {key: claim.as_dict() for key, claim in claims.items()},
    }
    notes = [
        "Tokens per call count the recovered or bonus token: X + 1 for limits on X predicted tokens.",
        *(["* P + 1, the most that P nodes can give."] if most else []),
        *footnotes(claims.values()),
        *answer.notes,
    ]
    facts = ", ".join(f"{name} = {_fact(value)}" for name, value in answer.facts.items())
    pieces = [_table(title, part, answer) for title, part in answer.tables.items()]
    return Report(content, pieces, facts, notes, pieces[:1])


def _fact(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_fact(entry) for entry in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_most(value: Interval | float | None, nodes: int) -> bool:
    best = value.best if isinstance(value, Interval) else value
    return best is not None and best >= nodes + 1


def _table(title: str, claims: Mapping[str, LimitClaim], answer: BoundsAnswer) -> Table:
    """Values at the most that so many nodes can give are marked."""
    rows: list[Row] = [
        [nodes, *(Cell(row[key], after="*" if _is_most(row[key], nodes) else " ") for key in claims)]
        for nodes, row in answer.rows.items()
    ]
    return Table(title, [Column("P"), *(Column(claim.heading) for claim in claims.values())], rows)
