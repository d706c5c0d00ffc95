"""Engines that ran here: the rule each should run, its calls against expectation, and whether its output is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spectheory.reports.base import Brief, Report
from spectheory.reports.brief import narrowed, verdict
from spectheory.reports.table import Column, Table, Value

Content = Mapping[str, Any]

_COLUMNS = (
    Column("T", digits=1),
    Column("k"),
    Column("drafts", kind="names"),
    Column("rule", kind="names"),
    Column("calls", meaning="target calls that were counted"),
    Column("expected", digits=1),
    Column("z", signed=True),
    Column("counts", kind="names"),
    Column("output", kind="names"),
)
_NOTES = (
    "T: temperature; k: drafted tokens per call; drafts: none, the engine's default, or what it is told to draft.",
    "rule: what the engine is told to run, else the one that fits best; expected: its calls, given the engine's texts.",
    "z: counted less expected calls in standard deviations; counts: the verdict on calls and accepted tokens together.",
    "output: whether tokens are samples of the target; at temperature 0 its first choices, but for ties by rounding.",
)


def engines_report(content: Content) -> Report:
    """A table for each engine; `agree` says that no stated rule and no output is refuted."""
    runs = [run for engine in content["engines"] for run in engine["runs"]]
    right = [_agrees(run) for run in runs]
    tables = [_table(engine) for engine in content["engines"]]
    wrong = len(right) - sum(right)
    said = ", ".join(f"{engine['engine']} {engine['version']}" for engine in content["engines"])
    number = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    found = f"{number}, {wrong} not as expected" if wrong else f"{number}, all as expected"
    headline = f"{said}: {found}"
    return Report(
        {**content, "agree": not wrong}, tables, headline, tuple(_causes(content)), _brief(said, found, tables)
    )


def _brief(engines: str, found: str, tables: Sequence[Table]) -> Brief:
    """The verdict and the runs."""
    return Brief(verdict(f"Calls and output: {found}", engines), [*map(narrowed, tables)])


def _agrees(run: Content) -> bool:
    counts, output = run.get("counts"), run["output"]
    return bool((counts is None or counts["fits"]) and output["right"])


def _table(engine: Content) -> Table:
    rows = [_row(run) for run in engine["runs"]]
    return Table(f"{engine['engine']} {engine['version']}", _COLUMNS, rows, _NOTES)


def _row(run: Content) -> list[Value]:
    setting: list[Value] = [run["temperature"], run["k"], run["drafts"] or ("default" if run["k"] else "none")]
    return [*setting, *_counts(run.get("counts")), _said(run["output"])]


def _counts(counts: Content | None) -> list[Value]:
    """The rule with its calls, expected ones and deviations."""
    if counts is None:
        return [None] * 5
    calls = counts["calls"]
    low, high = (calls["expected"][end] for end in ("low", "high"))
    nearer = min(max(calls["counted"], low), high)
    return [counts["rule"], calls["counted"], nearer, calls["z"], "fit" if counts["fits"] else "REFUTED"]


def _said(output: Content) -> str:
    if "impossible" in output:
        return "WRONG (impossible)"
    if "worst" in output:
        return "right" if output["right"] else f"WRONG ({output['worst']['name']})"
    ties = f" ({output['ties']} ties)" if output["ties"] else ""
    return f"right{ties}" if output["right"] else f"WRONG ({output['faults']} tokens)"


def _causes(content: Content) -> Iterator[str]:
    """What explains refuted counts, and which test refutes an output."""
    for engine in content["engines"]:
        for run in engine["runs"]:
            where = f"{engine['engine']}, {run['setting']}: "
            counts, output = run.get("counts"), run["output"]
            if counts and not counts["fits"]:
                fitting = " or ".join(run["fitting"]) or "no rule"
                yield f"{where}its calls refute {counts['rule']}; {fitting} fits them."
                yield from (f"{where}{cause['sentence']}." for cause in run["causes"])
            if "against_plain" in output:
                yield f"{where}{output['against_plain']}"
            if "impossible" in output:
                yield f"{where}its output is impossible under these settings: {output['impossible']}."
            if not output["right"] and "worst" in output:
                worst = output["worst"]
                statistic = f"{worst['symbol']} = {worst['statistic']:.1f}"
                yield f"{where}its output is no sample of the target: {worst['asks']}, {statistic}."
