"""Write docs/benchmarks.md and docs/figures/benchmarks.* from the rows in results/; `make benchmarks`.

A result whose file has no rows (tables of numbers without times) is left to the page that shows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from _scaling_figure import Curve, write_figure

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE, FIGURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "figures" / "benchmarks"
BEGIN, END = "<!-- written by benchmarks/_benchmarks_page.py -->", "<!-- end -->"
ORDER = (
    "first_answer",
    "position_statistics",
    "full_vocabulary",
    "truncated_settings",
    "sampling",
    "latencies",
    "measuring_workers",
    "large_traces",
)
"""Measuring comes first; the others follow by their names."""
HEAD = "| work | unit | ours | goal | peer | peer / ours | limit | ours / limit | equal first |"
SCALES = {
    "V": "tokens of the vocabulary",
    "positions": "positions",
    "nodes": "nodes",
    "workers": "workers",
    "batch": "prompts at a time",
}
"""What a scaling curve may run over, and how its axis is labelled."""


def results() -> list[tuple[str, dict[str, Any]]]:
    """Name and content of every result with rows, in the page's order."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    timed = {name: each for name, each in found.items() if isinstance(each, dict) and "title" in each}
    first = [name for name in ORDER if name in timed]
    return [(name, timed[name]) for name in (*first, *(name for name in timed if name not in first))]


def section() -> str:
    """What stands between the marks: how many goals are met, then a table for each result."""
    return "\n\n".join([BEGIN, _goals(), *(part for name, each in results() for part in _of(name, each)), END])


def _goals() -> str:
    rows = [row for _, result in results() for row in result["rows"] if row["wanted"] is not None]
    missed = [row["work"] for row in rows if row["ours"] > row["wanted"]]
    return f"{len(rows) - len(missed)} of {len(rows)} goals are met. Missed: {'; '.join(missed) or 'none'}."


def _of(name: str, result: dict[str, Any]) -> Iterator[str]:
    yield f"## {result['title']}"
    yield "\n".join([HEAD, "|---|---|--:|--:|--:|--:|--:|--:|---|", *map(_line, result["rows"])])
    machine = result["machine"]
    versions = ", ".join(f"{key} {value}" for key, value in machine.items() if key not in ("processor", "cores"))
    where = f"{machine['processor']}, {machine['cores']} cores; {versions}; {result['date']}"
    yield "\n".join([*result["notes"], f"`benchmarks/{name}.py`: {where}."])


def _line(row: dict[str, Any]) -> str:
    ours = row["ours"]
    peer = [f"{_number(row['peer'])} ({row['peer_is']})", f"{row['peer'] / ours:.3g}"] if row["peer"] else ["", ""]
    limit = [f"{_number(row['limit'])} ({row['limit_is']})", f"{ours / row['limit']:.3g}"] if row["limit"] else ["", ""]
    goal = "" if row["wanted"] is None else f"{_number(row['wanted'])}{'' if ours <= row['wanted'] else ' (missed)'}"
    return f"| {' | '.join([row['work'], row['unit'], _number(ours), goal, *peer, *limit, row['equal']])} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def curves() -> list[Curve]:
    """Every scaling curve: rows of one result, unit and family over one size."""
    found: list[Curve] = []
    for _, result in results():
        rows = [
            (over, row) for row in result["rows"] for over in row["at"] or () if over in SCALES and row.get("curve")
        ]
        rows.sort(key=lambda each: (each[0], _family(*each), each[1]["at"][each[0]]))
        for (over, family), group in groupby(rows, key=lambda each: (each[0], _family(*each))):
            members = list(group)
            points = [(row["at"][over], row["ours"]) for _, row in members]
            if len({size for size, _ in points}) > 1:
                found.append(Curve(SCALES[over], family, tuple(points), rate=" per " in members[0][1]["unit"]))
    return sorted(found, key=lambda curve: curve.over)


def _family(over: str, row: dict[str, Any]) -> str:
    """Rows of one curve share its name and all other sizes."""
    others = "".join(f", {name} {size:g}" for name, size in row["at"].items() if name != over)
    return row["curve"] + others


def renewed(page: str) -> str:
    """The page with its section written again."""
    before, _, rest = page.partition(BEGIN)
    return before + section() + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
    write_figure(curves(), FIGURE)
