"""Limits on tokens per call: columns that say what they claim, and under which assumption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from spectheory.intervals import Interval
from spectheory.reports.base import Report, number, table

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Column:
    """A column of limits: its heading, what it is, and which claim it makes under which assumption."""

    heading: str
    what: str
    claim: str


NO_BOUND = "No bound at P = 1, a loose one beyond"
UPPER = "Upper bounds for drafts that do not sample (B4), if conditional pmfs are i.i.d. across prefixes"
VALUE = "What the bounds bound"
READING = "idealised values under i.i.d.; real text may exceed them"
ON_TEXT = (
    "Upper bounds from target-sampled text, estimated (95%), averaged over all starting positions; consecutive calls "
    "may exceed them"
)
EXACT_RANKS = "Exact for ranks i.i.d. along the text"
UPPER_RANKS = "Upper bound for every tree of P nodes, if ranks are i.i.d. along the text"
"""Claims of columns, each with its assumption."""

DETERMINISTIC = "Drafts that do not sample: tokens per call"
SAMPLED = "Drafted chains (1 call), rank trees (T1): tokens per call"
RANKS = "Rank trees: tokens per call"
"""Titles of tables."""

FORMS = {
    "published": Column("published", "B1 of pankratov2026, leading term alone", NO_BOUND),
    "lorden": Column("lorden ≤", "B2 at t = log P", UPPER),
    "best_t": Column("best_t ≤", "B2 at its best t", UPPER),
    "sharp": Column("sharp ≤", "B2', the tightest form of the two moments", UPPER),
    "numeric": Column("numeric ≤", "B3', from the whole law of a step", UPPER),
}
"""The branching bounds where conditional pmfs are i.i.d."""

READINGS = {
    **{key: Column(form.heading.removesuffix(" ≤"), form.what, READING) for key, form in FORMS.items()},
    "published": Column("published", "B1 of pankratov2026, leading term alone", READING),
    "numeric": Column("numeric", "B3' from the surprisals of the text, estimate, 95%", READING),
}
"""The same formulas on text."""


@dataclass(frozen=True)
class BoundsAnswer:
    """Limits for several numbers of nodes, tokens per call with the recovered or bonus token.

    Attributes
    ----------
    source : str
        ``moments``, ``pmfs``, ``trace`` or ``ranks``.
    facts : mapping
        What the limits were worked out from, by name.
    tables : mapping of str to mapping of str to Column
        Columns by key, in tables by title.
    rows : mapping of int to mapping
        Values by nodes and key; None where there is none.
    notes : sequence of str
        Assumptions, and why something is missing.
    """

    source: str
    facts: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, Column]]
    rows: Mapping[int, Mapping[str, Interval | float | None]]
    notes: Sequence[str] = ()


def bounds_report(answer: BoundsAnswer) -> Report:
    """A row per number of nodes, a footnote per column."""
    columns = {key: column for part in answer.tables.values() for key, column in part.items()}
    most = any(_is_most(value, nodes) for nodes, row in answer.rows.items() for value in row.values())
    content = {
        "source": answer.source,
        **answer.facts,
        "unit": "tokens per call, recovered or bonus token counted",
        "rows": [{"nodes": nodes, **row} for nodes, row in answer.rows.items()],
        "columns": {key: asdict(column) for key, column in columns.items()},
    }
    notes = [
        "Tokens per call count the recovered or bonus token: X + 1 for limits on X predicted tokens.",
        *(["* P + 1, the most that P nodes can give."] if most else []),
        *_claims(columns.values()),
        *answer.notes,
    ]
    facts = ", ".join(f"{name} = {_fact(value)}" for name, value in answer.facts.items())
    return Report(content, [_bounds_table(title, part, answer) for title, part in answer.tables.items()], facts, notes)


def _claims(columns: Iterable[Column]) -> list[str]:
    """A footnote per claim: the columns that make it, and what they are."""
    claims: dict[str, dict[str, list[str]]] = {}
    for column in columns:
        named = claims.setdefault(column.claim, {}).setdefault(column.what, [])
        named.append(column.heading.removesuffix(" ≤"))
    lines = {claim: [f"{', '.join(names)} ({what})" for what, names in made.items()] for claim, made in claims.items()}
    return [f"{claim}: {', '.join(parts)}." for claim, parts in lines.items()]


def _fact(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_fact(entry) for entry in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_most(value: Interval | float | None, nodes: int) -> bool:
    best = value.best if isinstance(value, Interval) else value
    return best is not None and best >= nodes + 1


def _bounds_table(title: str, columns: Mapping[str, Column], answer: BoundsAnswer) -> Table:
    made = table(title, ["P", *(column.heading for column in columns.values())])
    for nodes, row in answer.rows.items():
        cells = (number(row[key]) + ("*" if _is_most(row[key], nodes) else " ") for key in columns)
        made.add_row(str(nodes), *cells)
    return made
