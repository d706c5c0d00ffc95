"""Engines that ran here: the rule that each runs, its calls against expectation, and whether its output is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spectheory.reports.base import Report
from spectheory.reports.table import Column, Table, Value

Content = Mapping[str, Any]

_COLUMNS = (
    Column("T", digits=1),
    Column("k"),
    Column("drafts", kind="names"),
    Column("rule that fits", kind="names"),
    Column("calls"),
    Column("expected", digits=1),
    Column("z", signed=True),
    Column("output", kind="names"),
)
_NOTES = (
    "expected: calls of the rule that fits, given the engine's own texts; if none fits, of the least refuted one.",
    "output: whether sampled tokens are the target's; at temperature 0 calls and texts are judged together.",
)


def engines_report(content: Content) -> Report:
    """A table for each engine; `agree` says that no stated rule and no output is refuted."""
    runs = [run for engine in content["engines"] for run in engine["runs"]]
    right = [_agrees(run) for run in runs]
    tables = [_table(engine) for engine in content["engines"]]
    wrong = len(right) - sum(right)
    said = ", ".join(f"{engine['engine']} {engine['version']}" for engine in content["engines"])
    headline = f"{said}: {len(runs)} runs, " + (f"{wrong} not as expected" if wrong else "all as expected")
    return Report({**content, "agree": not wrong}, tables, headline, tuple(_causes(content)))


def _agrees(run: Content) -> bool:
    counts, output = run.get("counts"), run["output"]
    return (counts is None or counts["as_stated"]) and (output is None or output["right"])


def _table(engine: Content) -> Table:
    rows = [_row(run) for run in engine["runs"]]
    return Table(f"{engine['engine']} {engine['version']}", _COLUMNS, rows, _NOTES)


def _row(run: Content) -> list[Value]:
    setting: list[Value] = [run["temperature"], run["k"], run["drafts"] or ("default" if run["k"] else "none")]
    return [*setting, *_counts(run.get("counts")), _said(run["output"])]


def _counts(counts: Content | None) -> list[Value]:
    """The rule with its calls, expected ones and deviations."""
    if counts is None:
        return [None] * 4
    calls = counts["calls"]
    low, high = (calls["expected"][end] for end in ("low", "high"))
    nearer = min(max(calls["counted"], low), high)
    return [counts["rule"] if counts["fits"] else "none", calls["counted"], nearer, calls["z"]]


def _said(output: Content | None) -> Value:
    if output is None:
        return None
    worst = output["worst"]
    return "right" if output["right"] else f"wrong ({worst['name']})"


def _causes(content: Content) -> Iterator[str]:
    """What explains refuted counts, and which test refutes an output."""
    for engine in content["engines"]:
        for run in engine["runs"]:
            where = f"{engine['engine']}, {run['setting']}: "
            counts, output = run.get("counts"), run["output"]
            if counts and not counts["as_stated"]:
                stated = " or ".join(counts["stated"]) or "any rule"
                runs = counts["rule"] if counts["fits"] else "no rule"
                yield f"{where}its calls refute {stated}; {runs} fits."
                yield from (where + sentence for sentence in counts["causes"])
            if output and not output["right"]:
                worst = output["worst"]
                yield f"{where}its output is no sample of the target: {worst['asks']}, p = {worst['p']:.1g}."
