"""Charts of a prediction: tokens per call, speed-up, and what another cost of drafts would change."""

from __future__ import annotations

from spectheory.pages.vega import VegaChart, curves
from spectheory.pages.what_if import cost_chart
from spectheory.plots.prediction import speedup_chart, tokens_chart
from spectheory.prediction import Plan


def prediction_charts(plan: Plan, ratio: float | None = None) -> list[VegaChart]:
    """The charts of a plan; `ratio` is the measured cost of a draft step, where the slider begins."""
    charts = [curves(tokens_chart(plan, plan.labels))]
    if plan.timed:
        charts.append(curves(speedup_chart(plan)))
    if chains := [label for label in plan.chains if not label.stop]:
        charts.append(cost_chart(plan, chains, ratio))
    return charts
