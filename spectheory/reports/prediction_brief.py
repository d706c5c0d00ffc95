"""The table of a prediction that is shown first: 80 columns, a few rules, k up to two beyond the best."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.limits.claims import TEXT
from spectheory.prediction import Label, Plan, Prediction
from spectheory.reports.meanings import TERMS
from spectheory.reports.table import Cell, Column, Table

RULES, RULES_WITHOUT_COSTS = 3, 5
"""Rules that fit beside each other in 80 columns, with and without speed-ups."""
BEYOND = 2
"""Rows after the best k."""


def brief_table(plan: Plan) -> Table:
    """Tokens per call and speed-up of the rules that give most, chains and the best kind of shape."""
    labels = _shown(plan)
    last = plan.best.shape.nodes + BEYOND
    found = {label: {p.shape.nodes: p for p in plan.of(label)} for label in labels}
    sizes = sorted({nodes for of in found.values() for nodes in of if nodes <= last})
    limit = next((p for p in plan.predictions if p.compared(TEXT) is not None), None)
    rows = []
    for nodes in sizes:
        row = [of.get(nodes) for of in found.values()]
        cells = [Cell(p.tokens_per_call, best=p is plan.best) if p else None for p in row]
        limits = [next((p.compared(TEXT) for p in row if p), None)] if limit else []
        gains = [Cell(p.speedup, best=p is plan.best) if p else None for p in row] if plan.timed else []
        rows.append([nodes, *cells, *limits, *gains])
    columns = [
        Column("k", meaning=TERMS["k"]),
        *(_column(label, "tokens per call") for label in labels),
        *([Column(TEXT.heading, aside=True)] if limit else []),
        *([_column(label, "speed-up") for label in labels] if plan.timed else []),
    ]
    title = "Tokens per target call" + (", then speed-up" if plan.timed else "")
    return Table(title, columns, rows)


def left_out(plan: Plan) -> list[str]:
    """The rules and shapes that the brief table leaves out."""
    shown = _shown(plan)
    return [str(label) for label in plan.labels if label not in shown]


def _column(label: Label, what: str) -> Column:
    heading = str(label) if what == "tokens per call" else f"{label}\nspeed-up"
    return Column(heading, meaning=f"{label}: {TERMS[what]}")


def _best(plan: Plan, label: Label) -> Prediction:
    return max(plan.of(label), key=lambda p: p.gain)


def _shown(plan: Plan) -> Sequence[Label]:
    """The best labels, chains first, in the order of the plan."""
    most = RULES if plan.timed else RULES_WITHOUT_COSTS
    by_gain = sorted(
        plan.labels, key=lambda label: (label != plan.best.label, not label.chain, -_best(plan, label).gain)
    )
    return [label for label in plan.labels if label in by_gain[:most]]
