"""Charts of a prediction: tokens per call, speed-up, and sliders for another cost, batch or context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spectheory.cost import ConstantRatio
from spectheory.deployment import BatchChoice
from spectheory.pages.vega import QUIET, VegaChart, alt, colour, curves, data, marker, rounded, slider, specified, whole
from spectheory.plots.prediction import DRAFTED, PREDICTED, series_of, speedup_chart, tokens_chart
from spectheory.prediction import Label, Plan, Prediction

RATIOS = tuple(round(10 ** (-3 + i / 20), 5) for i in range(61))
"""Costs of a draft step that the slider offers: 0.001 to 1 target steps."""
LONGEST = 128
"""Chains that are drawn for every cost: a page has room for so many."""


def prediction_charts(plan: Plan, ratio: float | None = None) -> list[VegaChart]:
    """The charts of a plan; `ratio` is the measured cost of a draft step, where the slider begins."""
    charts = [curves(tokens_chart(plan, plan.labels))]
    if plan.timed:
        charts.append(curves(speedup_chart(plan)))
    if chains := [label for label in plan.chains if not label.stop]:
        charts.append(cost_chart(plan, chains, ratio))
    return charts


def cost_chart(plan: Plan, labels: Sequence[Label], ratio: float | None) -> VegaChart:
    """Chains at every draft cost, by the cost model that ``plan --c`` uses; `ratio` is where the slider begins."""
    known, series = 0.1 if ratio is None else rounded(ratio), series_of(plan, labels)
    ratios = sorted({*RATIOS, known})
    found = [(label, p) for label in labels for p in plan.of(label)]
    rows = [
        {"rule": str(label), "k": p.shape.nodes, "at": [_at(c, p) for c in ratios]}
        for label, p in found
        if p.shape.nodes <= LONGEST
    ]
    base = data(rows).transform_calculate(speedup="datum.at[cost]", c=f"{ratios}[cost]")
    lines = base.mark_line(point=True).encode(
        x=whole(DRAFTED), y=_height(), color=colour(series), shape=marker(series), tooltip=_tips("rule:N")
    )
    words = "'c = ' + format(datum.c, '.3f') + ': best ' + datum.rule + ', k = ' + datum.k + _gives"
    best = _best(base, words)
    said = _cut(max(p.shape.nodes for _, p in found))
    said += " Of certain ranges the low ends are drawn." if any(p.certified for _, p in found) else ""
    return VegaChart(
        "cost",
        "If a draft step cost something else",
        "Move the slider: speed-up of chains where a draft step costs c target steps, and the best of them." + said,
        specified(alt.layer(lines, *best).add_params(slider("cost", "draft cost c", len(ratios), ratios.index(known)))),
        [
            "Tokens per call are those of this report. Verifying costs one target step whatever k, and the decoding "
            "loop nothing: the cost model of --c.",
            "Measured times of this pair, which the other charts use, may grow with k.",
        ],
    )


def batch_chart(lengths: Sequence[Sequence[BatchChoice]], rule: str, draft: str, start: tuple[int, int]) -> VegaChart:
    """Chains at every batch and context of a grid; `start` is the batch and context where the sliders begin."""
    batches, contexts = (sorted({getattr(each[0], name) for each in lengths}) for name in ("batch", "context"))
    at = {(choice.batch, choice.context, choice.k): choice.speedup for each in lengths for choice in each}
    longest = max(choice.k for choice in lengths[0])
    rows = [
        {"k": k, "at": [[rounded(at[batch, context, k]) for context in contexts] for batch in batches]}
        for k in sorted({choice.k for choice in lengths[0]})
        if k <= LONGEST
    ]
    base = data(rows).transform_calculate(
        speedup="datum.at[batch][context]", B=f"{batches}[batch]", L=f"{contexts}[context]"
    )
    lines = base.mark_line(point={"color": "var(--blue)"}, color="var(--blue)").encode(
        x=whole(DRAFTED), y=_height(), tooltip=_tips("B:Q", "L:Q")
    )
    words = (
        "'batch ' + datum.B + ', context ' + datum.L + ': ' + "
        "(datum.k == 0 ? 'plain decoding' : 'best k = ' + datum.k + _gives)"
    )
    sliders = [
        slider(name, name, len(grid), grid.index(at_start))
        for name, grid, at_start in zip(("batch", "context"), (batches, contexts), start, strict=True)
    ]
    return VegaChart(
        "batches",
        "If the batch or the context were others",
        f"Move the sliders: speed-up of chains under {rule} with draft {draft}, where so many sequences are decoded "
        "together, each with so many cached tokens; k = 0 is plain decoding." + _cut(longest),
        specified(alt.layer(lines, *_best(base, words)).add_params(*sliders)),
        [
            "Tokens per call are exact for the texts of the trace and the same at every batch. Seconds are a "
            "roofline's, an estimate: weights are read once a pass, the cache once a sequence.",
            "All sequences make their calls together and have the same context: the cost model of --hardware with "
            "--batch and --context.",
        ],
    )


def _cut(longest: int) -> str:
    """What is said where longer chains are left out."""
    return f" Chains of at most {LONGEST} tokens are drawn." if longest > LONGEST else ""


def _at(c: float, prediction: Prediction) -> float:
    found = ConstantRatio(c).speedup(prediction.tokens_per_call, prediction.shape)
    return rounded(found.low if prediction.certified else found.best)


def _height() -> Any:
    return alt.Y("speedup:Q", title=PREDICTED, scale=alt.Scale(zero=False))


def _tips(*others: str) -> list[Any]:
    return [*others, "k:Q", alt.Tooltip("speedup:Q", format=".3f")]


def _best(base: Any, words: str) -> list[Any]:
    """A ring around the best setting, the shortest of equals, and its words above the chart."""
    by = [alt.SortField("speedup", order="descending"), alt.SortField("k")]
    best = base.transform_window(place="row_number()", sort=by).transform_filter("datum.place == 1")
    said = best.transform_calculate(words=words.replace("_gives", "', ' + format(datum.speedup, '.2f') + 'x'"))
    text = said.mark_text(align="left", baseline="bottom", fontSize=13, fontWeight="bold")
    ring = best.mark_point(size=220, strokeWidth=2, color=QUIET)
    return [ring.encode(x="k:Q", y="speedup:Q"), text.encode(x=alt.value(-40), y=alt.value(-10), text="words:N")]
