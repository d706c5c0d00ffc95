"""A plan as a terminal table and as JSON; nothing here prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spectheory.intervals import Interval
from spectheory.prediction import GIVEN_TEXT, Plan, Prediction

if TYPE_CHECKING:
    from rich.table import Table

SIDES = {
    "C1": "tokens per call if acceptances were i.i.d. at the first draft's rate (leviathan2023); not a limit",
    "one call": "upper bound for any lossless verification of a drafted chain, one call taken alone",
    "B6": "upper bound for drafts that do not sample (deterministic trees of k nodes), from the text itself",
    "B2'": "what B6 would be for i.i.d. conditional pmfs: a reading, not a limit on real text",
    "T1": "channel limit for i.i.d. ranks of recursive rejection, trees of k nodes: a reading, not a limit on real text",
}
"""What each comparison column claims, and when."""


def plan_as_dict(plan: Plan) -> dict[str, Any]:
    """The plan as one JSON-ready object: the best prediction's fields at the top, all predictions below."""
    best = plan.best.as_dict()
    return {
        **best,
        "best": {"rule": best["rule"], "shape": best["shape"], "by": "speedup" if best["speedup"] else "tokens_per_call"},
        "predictions": [prediction.as_dict() for prediction in plan.predictions],
        "notes": notes(plan),
        "provenance": dict(plan.best.provenance),
    }


def headline(plan: Plan) -> str:
    """The answer in one sentence."""
    best = plan.best
    tokens = f"{best.tokens_per_call} tokens per target call"
    if best.speedup is None:
        return f"Most tokens per call: {best.rule.name} verification, k = {best.shape.k}: {tokens}"
    if best.speedup.high < 1:
        return f"Do not speculate: the best setting ({best.rule.name}, k = {best.shape.k}) gives {best.speedup}x"
    return f"Best: {best.rule.name} verification, k = {best.shape.k}: speed-up {best.speedup}x, {tokens}"


def notes(plan: Plan) -> list[str]:
    """What a reader must know to trust the numbers, one sentence each."""
    provenance = plan.best.provenance
    lines = [
        "Tokens per call count accepted drafts and the recovered or bonus token of each target call.",
        "They are exact for the texts of the trace; intervals (95%) are over prompts.",
    ]
    if provenance.get("origin") == GIVEN_TEXT:
        lines.append("The text was given, not sampled from the target: the numbers are for that text as output.")
    elif provenance.get("source") == "log-probabilities":
        lines.append("From log-probabilities alone: limits assume that the target sampled the text.")
    absent = [name for name, value in (("B2'", plan.best.limits.iid_branching), ("T1", plan.best.limits.iid_channel))
              if value is None]
    if absent:
        lines.append(f"Absent, as they need full pmfs: the race rule, {', '.join(absent)}.")
    if plan.best.speedup is None:
        lines.append("No speed-up without costs: give --c or a latency table.")
    if any(p.tokens_per_call.kind == "bound" for p in plan.predictions):
        lines.append("A single prompt cannot be resampled: its intervals are the trivial bounds.")
    return lines


def plan_table(plan: Plan) -> Table:
    """A table with a row per k: tokens per call and speed-up of each rule, the i.i.d. formula and the limits."""
    from rich.table import Table
    from rich.text import Text

    rules = list(dict.fromkeys(p.rule.name for p in plan.predictions))
    by_rule = {rule: {p.shape.k: p for p in plan.of(rule)} for rule in rules}
    with_speed = plan.best.speedup is not None
    table = Table(title="Tokens per target call" + (" and speed-up" if with_speed else ""), title_justify="left")
    table.add_column("k", justify="right")
    for rule in rules:
        table.add_column(rule, justify="right")
        if with_speed:
            table.add_column("speed-up", justify="right")
    for name in (f"C1 ({rules[0]})", "one call ≤", "B6 ≤", "B2'", "T1"):
        table.add_column(name, justify="right", style="dim")
    for k in sorted({p.shape.k for p in plan.predictions}):
        cells: list[Text | str] = [str(k)]
        for rule in rules:
            prediction = by_rule[rule][k]
            style = "bold green" if prediction is plan.best else ""
            cells.append(Text(short(prediction.tokens_per_call), style))
            if prediction.speedup is not None:
                cells.append(Text(f"{short(prediction.speedup)}x", style))
        table.add_row(*cells, *_limit_cells(by_rule[rules[0]][k]))
    return table


def _limit_cells(prediction: Prediction) -> Sequence[str]:
    limits = prediction.limits
    return (
        f"{prediction.iid_tokens_per_call:.2f}",
        short(limits.one_call),
        short(limits.text),
        _plain(limits.iid_branching),
        _plain(limits.iid_channel),
    )


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def short(interval: Interval | None) -> str:
    """The best value and, if statistical, half the width of its interval."""
    if interval is None:
        return "-"
    if interval.kind != "statistical":
        return f"{interval.best:.2f}"
    return f"{interval.best:.2f}±{(interval.high - interval.low) / 2:.2f}"


def check_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """A table of predicted against counted target calls, and of predicted against measured speed-up."""
    from rich.table import Table

    table = Table(title="Against transformers' assisted generation (token verification)", title_justify="left")
    for name in ("k", "tokens", "calls counted", "calls predicted", "difference / s.e.", "measured", "latencies say"):
        table.add_column(name, justify="right")
    for record in records:
        table.add_row(
            str(record["k"]),
            str(record["tokens"]),
            str(record["counted"]),
            f"{record['predicted']:.1f}",
            f"{record['z']:+.2f}",
            f"{record['measured_speedup']:.2f}x",
            f"{record['predicted_speedup']:.2f}x" if record.get("predicted_speedup") else "-",
        )
    return table
