"""Limits on tokens per call, a row for each number of nodes; footnotes say what each column claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spectheory.answers.theory import BoundsJson
from spectheory.intervals import Interval
from spectheory.limits.claims import IID_PMFS, LimitClaim, footnotes
from spectheory.prediction.whole_bounds import DETERMINISTIC, RANKS, SAMPLED, BoundsAnswer
from spectheory.reports.base import Brief, Report
from spectheory.reports.brief import narrowed, verdict
from spectheory.reports.meanings import claimed
from spectheory.reports.table import Cell, Column, Row, Table, number

WHICH = {
    DETERMINISTIC: "chosen without sampling",
    SAMPLED: "sampled in a chain",
    RANKS: "in a tree of i.i.d. ranks",
}
"""The drafts that the limits of each table are about."""


def bounds_report(answer: BoundsAnswer) -> Report:
    """A row per number of nodes, a footnote per claim."""
    claims = {key: claim for part in answer.tables.values() for key, claim in part.items()}
    most = any(_is_most(value, nodes) for nodes, row in answer.rows.items() for value in row.values())
    content = BoundsJson.view(
        answer.facts,
        source=answer.source,
        unit="tokens per call, recovered or bonus token counted",
        rows=[{"nodes": nodes, **row} for nodes, row in answer.rows.items()],
        columns=claims,
    )
    notes = [
        "Tokens per call count the recovered or bonus token: X + 1 for limits on X predicted tokens.",
        *(["* P + 1, the most that P nodes can give."] if most else []),
        *footnotes(claims.values()),
        *answer.notes,
    ]
    facts = ", ".join(f"{name} = {_fact(value)}" for name, value in answer.facts.items())
    pieces = [_table(title, part, answer) for title, part in answer.tables.items()]
    return Report(content, pieces, facts, notes, _brief(answer))


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
    return Table(title, _columns(claims.values()), rows)


def _columns(claims: Iterable[LimitClaim]) -> list[Column]:
    return [Column("P"), *(Column(claim.heading, meaning=claimed(claim)) for claim in claims)]


# What is shown first


def _brief(answer: BoundsAnswer) -> Brief:
    """The limits of every table side by side, of several with one assumption the tightest; no idealised values."""
    of_tables = [_matter(claims, answer) for claims in answer.tables.values()]
    claims = {key: claim for part in of_tables for key, claim in part.items()}
    values = {nodes: [row[key] for key in claims] for nodes, row in answer.rows.items()}
    rows: list[Row] = [[nodes, *row] for nodes, row in values.items() if any(value is not None for value in row)]
    table = Table("Tokens per call, at most, by draft nodes P", _columns(claims.values()), rows)
    lines = [
        line for title, part in zip(answer.tables, of_tables, strict=True) for line in _sentences(title, part, answer)
    ]
    return Brief(verdict(*lines[:2]), [narrowed(table)])


def _matter(claims: Mapping[str, LimitClaim], answer: BoundsAnswer) -> dict[str, LimitClaim]:
    """The claims that are no idealised values and known somewhere; of those for i.i.d. pmfs the tightest."""
    known = [
        key
        for key, claim in claims.items()
        if claim.scope.side != "reading" and any(row[key] is not None for row in answer.rows.values())
    ]
    alike = [key for key in known if claims[key].scope is IID_PMFS]
    tightest = min(alike, key=lambda key: sum(_best(row[key]) for row in answer.rows.values()), default=None)
    return {key: claims[key] for key in known if key not in alike or key == tightest}


def _sentences(title: str, claims: Mapping[str, LimitClaim], answer: BoundsAnswer) -> Iterator[str]:
    """What each limit is for the most nodes for which it is known."""
    for key, claim in claims.items():
        nodes = max(nodes for nodes, row in answer.rows.items() if row[key] is not None)
        value = answer.rows[nodes][key]
        if claim.scope.side == "limit" and value is not None:
            yield f"At most {number(value)} tokens per call with {nodes} drafts {WHICH[title]} ({claim.name})"


def _best(value: Interval | float | None) -> float:
    return value.best if isinstance(value, Interval) else value or 0.0
