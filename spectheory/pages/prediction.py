"""Charts of a prediction: tokens per call, speed-up, and sliders for another cost, batch or context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spectheory.cost import ConstantRatio, CostModel, PassCost
from spectheory.deployment import BatchChoice, EngineSettings
from spectheory.deployment.candidates import in_words
from spectheory.pages.vega import (
    QUIET,
    VegaChart,
    alt,
    colour,
    curves,
    data,
    marker,
    plain,
    rounded,
    slider,
    specified,
    whole,
)
from spectheory.plots.prediction import DRAFTED, PREDICTED, series_of, speedup_chart, tokens_chart
from spectheory.prediction import Label, Plan, Prediction
from spectheory.prediction.answer import merit

RATIOS = tuple(round(10 ** (-3 + i / 20), 5) for i in range(61))
"""Costs of a draft step that the slider offers: 0.001 to 1 target steps."""
LONGEST = 128
"""Chains that are drawn for every cost: a page has room for so many."""
HERE = "this report"
BEYOND = "beyond the {:,} tokens that the target was trained for"


def prediction_charts(plan: Plan, engines: Sequence[EngineSettings] = ()) -> list[VegaChart]:
    """The charts of a plan; what `engines` run explains where its headline differs from the best that is drawn."""
    charts = [curves(tokens_chart(plan, plan.labels))]
    if plan.timed:
        charts.append(curves(speedup_chart(plan)))
    if chains := [label for label in plan.chains if not label.stop]:
        charts.append(_cost_chart(plan, chains, engines))
    return charts


def _cost_chart(plan: Plan, labels: Sequence[Label], engines: Sequence[EngineSettings] = ()) -> VegaChart:
    """Chains at every draft cost: all other times of a call are those of the plan, where the slider begins."""
    cost, series = plan.cost, series_of(plan, labels)
    known = 0.1 if cost is None else rounded(_ratio(cost))
    ratios = sorted({*RATIOS, known})
    chains = [(label, p) for label in labels for p in plan.of(label) if p.shape.nodes <= LONGEST]
    at = [[_at(c, p, cost) for c in ratios] for _, p in chains]
    rows = [{"rule": str(label), "k": p.shape.nodes, "at": each} for (label, p), each in zip(chains, at, strict=True)]
    base = data(rows).transform_calculate(speedup="datum.at[cost]", c=f"{ratios}[cost]")
    lines = base.mark_line(point=True).encode(
        x=whole(DRAFTED), y=_height(at), color=colour(series), shape=marker(series), tooltip=_tips("rule:N")
    )
    here = f" + (datum.c == {known} ? ' ({HERE})' : '')" if plan.timed else ""
    words = f"'c = ' + format(datum.c, '.3f'){here} + ': best ' + datum.rule + ', k = ' + datum.k + _gives"
    said = _cut(max(p.shape.nodes for label in labels for p in plan.of(label)))
    said += " Of certain ranges the low ends are drawn." if any(p.certified for _, p in chains) else ""
    timed = "Tokens per call, the target's passes and the loop around them are those of this report; only the time of "
    constant = (
        "Tokens per call are those of this report. Verifying costs one target step whatever k, and the decoding loop "
        "nothing: the cost model of --c."
    )
    return VegaChart(
        "cost",
        "If a draft step cost something else",
        "Move the slider: speed-up of chains where a draft step costs c target steps, and the best of them."
        + said
        + _beside(plan, [p for _, p in chains], engines),
        specified(
            alt.layer(lines, *_best(base, words), plain()).add_params(
                slider("cost", "draft cost c", len(ratios), ratios.index(known))
            )
        ),
        [timed + "a draft step differs." if isinstance(cost, PassCost) else constant],
        [
            {"rule": str(label), "k": p.shape.nodes, "c": c, PREDICTED: value}
            for (label, p), each in zip(chains, at, strict=True)
            for c, value in zip(ratios, each, strict=True)
        ],
    )


def _ratio(cost: CostModel) -> float:
    """Time of a draft step over that of a target step, without a loop around them."""
    if isinstance(cost, PassCost):
        return cost.draft_pass(1).best / cost.target_pass(1).best
    return cost.c if isinstance(cost, ConstantRatio) else 0.1


def _at(c: float, prediction: Prediction, cost: CostModel | None) -> float:
    """The speed-up where a draft step costs c target steps; of a certain range the low end."""
    end = "low" if prediction.certified else "best"
    tokens = getattr(prediction.tokens_per_call, end)
    if not isinstance(cost, PassCost):
        return rounded(tokens / ConstantRatio(c).call(prediction.shape).best)
    assert prediction.speedup is not None
    steps = cost.target_pass(1).best / cost.target_step().best  # a loop makes a plain step longer than its pass
    call = tokens / getattr(prediction.speedup, end) + len(prediction.shape.passes) * (c - _ratio(cost)) * steps
    return rounded(tokens / call)


def _beside(plan: Plan, predictions: Sequence[Prediction], engines: Sequence[EngineSettings]) -> str:
    """Why the headline names another setting than the chart does at the same cost."""
    best = max(predictions, key=merit)
    reasons = []
    if engines and _named(engines[0].candidate.prediction) != _named(best):
        reasons.append(f"what an engine runs ({engines[0].engine}, {_named(engines[0].candidate.prediction)})")
    if _named(plan.best) != _named(best):
        reasons.append(f"a shape that is not drawn here ({_named(plan.best)})")
    if not (plan.timed and reasons):
        return ""
    return f" At the c of this report {_named(best)} is the best chain; the headline names {' and '.join(reasons)}."


def _named(prediction: Prediction) -> str:
    """A setting and its speed-up."""
    gain = f": {prediction.speedup.best:.2f}x" if prediction.speedup else ""
    return f"{prediction.rule.label}, {in_words(prediction.shape)}{gain}"


def batch_chart(
    lengths: Sequence[Sequence[BatchChoice]],
    rule: str,
    draft: str,
    start: tuple[int, int],
    window: int | None = None,
) -> VegaChart:
    """Chains at every batch and context of a grid; `start` is the batch and context where the sliders begin.

    `window` is the longest context that the model was trained for.
    """
    batches, contexts = (sorted({getattr(each[0], name) for each in lengths}) for name in ("batch", "context"))
    gains = {(choice.batch, choice.context, choice.k): rounded(choice.speedup) for each in lengths for choice in each}
    longest = max(choice.k for choice in lengths[0])
    ks = sorted({choice.k for choice in lengths[0] if choice.k <= LONGEST})
    at = [[[gains[batch, context, k] for context in contexts] for batch in batches] for k in ks]
    rows = [{"k": k, "at": each} for k, each in zip(ks, at, strict=True)]
    base = data(rows).transform_calculate(
        speedup="datum.at[batch][context]", B=f"{batches}[batch]", L=f"{contexts}[context]"
    )
    lines = base.mark_line(point={"color": "var(--blue)"}, color="var(--blue)").encode(
        x=whole(DRAFTED), y=_height(at), tooltip=_tips("B:Q", "L:Q")
    )
    beyond = "" if window is None else f" + (datum.L > {window} ? ' ({BEYOND.format(window)})' : '')"
    words = (
        f"'batch ' + datum.B + ', context ' + datum.L{beyond} + ': ' + "
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
        specified(alt.layer(lines, *_best(base, words), plain()).add_params(*sliders)),
        [
            "Tokens per call are exact for the texts of the trace and the same at every batch. Seconds are a "
            "roofline's, an estimate: weights are read once a pass, the cache once a sequence.",
            "All sequences make their calls together and have the same context: the cost model of --hardware with "
            "--batch and --context.",
            *([] if window else ["Whether the models take so long a context is not known here."]),
        ],
        [
            {"batch": batch, "context": context, "k": k, PREDICTED: gains[batch, context, k]}
            for batch in batches
            for context in contexts
            for k in ks
        ],
    )


def _cut(longest: int) -> str:
    """What is said where longer chains are left out."""
    return f" Chains of at most {LONGEST} tokens are drawn." if longest > LONGEST else ""


def _height(at: Sequence[Any]) -> Any:
    """From 0 to the largest speed-up that any place of the sliders gives: the axis stays as it is."""
    top = float(np.max(at))
    return alt.Y("speedup:Q", title=PREDICTED, scale=alt.Scale(domain=[0, top], nice=True))


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
