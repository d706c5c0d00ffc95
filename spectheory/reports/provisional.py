"""The short answer from the first prompts of a measurement, and what marks every answer from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectheory.prediction import Plan, Prediction
from spectheory.prediction.answer import merit
from spectheory.reports.base import Report
from spectheory.reports.table import Cell, Column, Table
from spectheory.trace import PROVISIONAL

SHOWN = 5
"""Settings that the short answer shows."""


def provisional_words(provenance: Mapping[str, Any]) -> str:
    """``Provisional, from 12 of 48 prompts spread evenly over the file``; empty for a whole trace."""
    counts = provenance.get(PROVISIONAL)
    if not counts:
        return ""
    return f"Provisional, from {counts['prompts']} of {counts['of']} prompts spread evenly over the file"


def provisional_report(plan: Plan, *, seconds: float | None, trees_follow: bool) -> Report:
    """The best setting of each rule and kind of shape, the best first; `seconds` are those that the rest takes."""
    best = sorted((max(plan.of(label), key=merit) for label in plan.labels), key=merit, reverse=True)[:SHOWN]
    columns = [Column("rule", kind="names"), Column("shape", kind="names"), Column("tokens per call")]
    columns += [Column("speed-up", "x")] if plan.timed else []
    rest = f"The rest takes about {seconds:.0f} s." if seconds is not None else "The rest is being measured."
    notes = [f"Intervals (95%) are over these prompts. {'Trees follow with the whole answer. ' * trees_follow}{rest}"]
    headline = f"{provisional_words(plan.best.provenance)}:"
    return Report({}, [Table("", columns, [_row(each, plan) for each in best])], headline, notes)


def _row(prediction: Prediction, plan: Plan) -> list[Cell | str]:
    values = [prediction.tokens_per_call, *([prediction.speedup] if plan.timed else [])]
    cells = [Cell(value, best=prediction is plan.best) for value in values]
    return [prediction.rule.label, str(prediction.shape), *cells]
