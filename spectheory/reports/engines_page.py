"""Answers of engines on one page: a row for each way to draft, the calls by k, and the rule that runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spectheory.reports.table import Cell, Column, Table

Content = Mapping[str, Any]


def engines_table(answers: Sequence[Content]) -> Table:
    """Calls counted and expected of the stated rule, its deviations in brackets, for each engine, temperature and way
    to draft; then the rules that fit at every k, or the cause, and whether the output is right.
    """
    engines = [engine for answer in answers for engine in answer["engines"]]
    groups = [group for engine in engines for group in _groups(engine)]
    ks = sorted({run["k"] for _, runs in groups for run in runs if run["k"]})
    names = ("engine", "T", "drafts", "judged as", *(f"k = {k}" for k in ks), "rule that runs", "output")
    columns = [Column(name, kind="names") for name in names]
    rows = [[name, *_setting(runs[0]), *_calls(runs, ks), rule_that_runs(runs), _output(runs)] for name, runs in groups]
    return Table("Engines", columns, rows)


def figure_rows(answers: Sequence[Content], k: int) -> Iterator[dict[str, Any]]:
    """The runs of one k as :mod:`spectheory.plots.judgement` draws them."""
    for engine in (engine for answer in answers for engine in answer["engines"]):
        for run in engine["runs"]:
            if run["k"] == k and "counts" in run:
                about = {
                    "engine": engine["engine"],
                    "version": engine["version"],
                    "provenance": {"drafts": run["drafts"]},
                }
                yield {**run, **about, "output_refuted": not run["output"]["right"]}


def rule_that_runs(runs: Sequence[Content]) -> str:
    """The stated rule if it fits at every k; else the causes that were found, or the rules that fit at every k."""
    drafting = [run for run in runs if "counts" in run]  # an impossible text has none
    if not drafting:
        return ""
    rule = drafting[0]["counts"]["rule"]
    if all(run["counts"]["fits"] for run in drafting):
        return rule
    causes = dict.fromkeys(cause["cause"] for run in drafting for cause in run["causes"])
    fitting = [name for name in drafting[0]["fitting"] if all(name in run["fitting"] for run in drafting)]
    found = ", ".join(causes) or " or ".join(fitting) or "none fits"
    return f"not {rule}: {found}"


def _groups(engine: Content) -> Iterator[tuple[str, list[Content]]]:
    """The runs of each temperature and way to draft; the engine's name where it changes."""
    found: dict[Any, list[Content]] = {}
    for run in engine["runs"]:
        found.setdefault((run["temperature"], bool(run["k"]), run["drafts"]), []).append(run)
    for number, runs in enumerate(found.values()):
        yield "" if number else f"{engine['engine']} {engine['version']}, {engine['date'][:10]}", runs


def _setting(run: Content) -> list[str]:
    if not run["k"]:
        return [f"{run['temperature']:g}", "none", ""]
    rule = run["counts"]["rule"] if "counts" in run else ""
    return [f"{run['temperature']:g}", run["drafts"] or "first choices", rule]


def _calls(runs: Sequence[Content], ks: Sequence[int]) -> list[str | Cell]:
    by_k = {run["k"]: run["counts"]["calls"] for run in runs if "counts" in run}
    return [_cell(by_k[k]) if k in by_k else "" for k in ks]


def _cell(calls: Content) -> str:
    """Counted / expected, and the deviations where something is random."""
    low, high = calls["expected"]["low"], calls["expected"]["high"]
    expected = f"{low:.0f}" if round(low) == round(high) else f"{low:.0f}..{high:.0f}"
    z = f" ({calls['z']:+.1f})" if calls["z"] is not None and calls["deviation"] > 1e-3 else ""
    return f"{calls['counted']} / {expected}{z}"


def _output(runs: Sequence[Content]) -> str:
    wrong = [run for run in runs if not run["output"]["right"]]
    if not wrong:
        return "right"
    return "WRONG" if len(wrong) == len(runs) else f"WRONG at k = {', '.join(str(run['k']) for run in wrong)}"
