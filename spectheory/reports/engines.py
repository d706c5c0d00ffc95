"""Engines that ran here: the rule each should run, its calls against expectation, and whether its output is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spectheory.answers.judged import EnginesJson
from spectheory.reports.base import Brief, Report, deviations
from spectheory.reports.table import Column, Table, Value

Content = Mapping[str, Any]

_NOTES = (
    "T: temperature; k: drafted tokens per call; drafts: none, the engine's default, or what it is told to draft.",
    "rule: what the engine is told to run, else the one that fits best; expected: its calls, given the engine's texts.",
    "z: the difference of counted and expected calls in standard deviations; counts: the verdict on calls and accepted "
    "tokens together.",
    "output: whether tokens are samples of the target; at temperature 0 its first choices, but for ties by rounding.",
)


def engines_report(content: Content) -> Report:
    """A table for each engine; `agree` says that no stated rule and no output is refuted."""
    runs = [run for engine in content["engines"] for run in engine["runs"]]
    wrong = sum(_fits(run) is False or not run["output"]["right"] for run in runs)
    tables = [
        Table.of(f"{engine['engine']} {engine['version']}", _COLUMNS, engine["runs"], _NOTES)
        for engine in content["engines"]
    ]
    said = ", ".join(f"{engine['engine']} {engine['version']}" for engine in content["engines"])
    number = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    outcome = f"{number}, {wrong} not as expected" if wrong else f"{number}, all as expected"
    brief = Brief.of([f"Calls and output: {outcome}", said], tables)
    typed = EnginesJson.view(content, agree=not wrong)
    return Report(typed, tables, f"{said}: {outcome}", tuple(_causes(content)), brief)


def _fits(run: Content) -> bool | None:
    """Whether the counts of a run fit its rule; None without drafts, or of an impossible text."""
    return run["counts"]["fits"] if run.get("counts") else None


def _nearer(calls: Content) -> float:
    """The end of the expected calls that is nearer to those counted."""
    return float(min(max(calls["counted"], calls["expected"]["low"]), calls["expected"]["high"]))


def _of_calls(of: Callable[[Content], Value]) -> Callable[[Content], Value]:
    """What is computed from the calls of a run, if it has any."""
    return lambda run: of(run["counts"]["calls"]) if run.get("counts") else None


def _said(output: Content) -> Value:
    if "impossible" in output:
        return "WRONG (impossible)"
    if "worst" in output:
        return "right" if output["right"] else f"WRONG ({output['worst']['name']})"
    ties = f" ({output['ties']} ties)" if output["ties"] else ""
    return f"right{ties}" if output["right"] else f"WRONG ({output['faults']} tokens)"


_COLUMNS = (
    Column("T", digits=1, at="temperature"),
    Column("k"),
    Column("drafts", kind="names", at=lambda run: run["drafts"] or ("default" if run["k"] else "none")),
    Column("rule", kind="names", at="counts.rule"),
    Column("calls", meaning="target calls that were counted", at="counts.calls.counted"),
    Column("expected", digits=1, at=_of_calls(_nearer)),
    Column("z", signed=True, at=_of_calls(lambda calls: deviations(calls["z"], calls["counted"] - _nearer(calls)))),
    Column("counts", kind="names", at=lambda run: {True: "fit", False: "REFUTED", None: None}[_fits(run)]),
    Column("output", kind="names", at=lambda run: _said(run["output"])),
)


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
