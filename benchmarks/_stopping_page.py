"""Write validations of stopping rules, `results/stopped/*.json`, into docs/figures/stopping.md.

Folders of finished validations as arguments are trimmed into that place first: `_stopping_page.py pair/ eagle3/`.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "results" / "stopped"
PAGE = ROOT / "docs" / "figures" / "stopping.md"
BEGIN, END = "<!-- written by benchmarks/_stopping_page.py -->", "<!-- end -->"
VERDICT = ("comparisons", "disagreements", "beyond_3", "control_of_stopping")


def trimmed(answer: dict[str, Any]) -> dict[str, Any]:
    """What the page says of a validation."""
    rows = [
        {
            "temperature": at["temperature"],
            **{name: record[name] for name in ("rule", "shape", "calls")},
            **{name: {each: record[name][each] for each in ("calls", "z", "p")} for name in ("expected", "fixed")},
            "drafted": record["drafted"],
        }
        for at in answer["temperatures"]
        for record in at["settings"]
    ]
    return {name: answer[name] for name in VERDICT} | {"draft": answer["provenance"]["draft"]["name"], "rows": rows}


def kept() -> list[dict[str, Any]]:
    """The saved validations."""
    return [json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))]


def table(answers: list[dict[str, Any]]) -> str:
    """A line for each draft, temperature and stopping rule, all rules and lengths together."""
    lines = [
        "| draft | T | stop | settings | calls | expected | largest abs z | expected if always k | refuted | drafted a "
        "call | estimated | inside |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for answer in answers:
        limit = 1e-3 / answer["control_of_stopping"]["comparisons"]
        for (at, stop), group in groupby(sorted(answer["rows"], key=_place), key=_place):
            rows = list(group)
            calls = sum(row["calls"] for row in rows)
            largest = max(abs(row["expected"]["z"] or 0.0) for row in rows)
            expected, fixed = (sum(row[name]["calls"] for row in rows) for name in ("expected", "fixed"))
            refuted = sum(row["fixed"]["p"] < limit for row in rows)
            counted, estimated = (
                sum(row["calls"] * value for row, value in zip(rows, values, strict=True)) / calls
                for values in (
                    [row["drafted"]["counted"] for row in rows],
                    [row["drafted"]["expected"]["best"] for row in rows],
                )
            )
            inside = sum(row["drafted"]["inside"] for row in rows)
            lines.append(
                f"| {answer['draft']} | {at:g} | `{stop}` | {len(rows)} | {calls} | {expected:.1f} | {largest:.1f} | "
                f"{fixed:.1f} | {refuted} | {counted:.2f} | {estimated:.2f} | {inside} |"
            )
    return "\n".join(lines)


def _place(row: dict[str, Any]) -> tuple[float, str]:
    return row["temperature"], row["shape"].split(", ")[1]


def summary(answers: list[dict[str, Any]]) -> str:
    """All comparisons in a sentence."""
    rows = [row for answer in answers for row in answer["rows"]]
    compared, wrong, beyond = (sum(answer[name] for answer in answers) for name in VERDICT[:3])
    inside = sum(row["drafted"]["inside"] for row in rows)
    return (
        f"Of {compared} comparisons {wrong} disagree and {beyond} are beyond 3 deviations. {inside} of {len(rows)} "
        "counts of drafted tokens are\ninside their intervals, which span two estimates and so are wider than 95%."
    )


def renewed(page: str) -> str:
    """The page with its section written again."""
    before, _, rest = page.partition(BEGIN)
    return "\n\n".join([before + BEGIN, summary(kept()), table(kept()), END]) + rest.partition(END)[2]


if __name__ == "__main__":
    KEPT.mkdir(parents=True, exist_ok=True)
    for folder in map(Path, sys.argv[1:]):
        answer = trimmed(json.loads((folder / "validation.json").read_text()))
        (KEPT / f"{folder.name}.json").write_text(json.dumps(answer, separators=(",", ":")) + "\n")
    PAGE.write_text(renewed(PAGE.read_text()))
