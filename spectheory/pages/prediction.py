"""Charts of a prediction: tokens per call, speed-up, and what another cost of drafts would change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spectheory.limits.claims import ON_TRACES, LimitClaim
from spectheory.pages.chart import QUIET, Chart, altair, choice, data, numbers, rounded, specified
from spectheory.pages.curves import curves
from spectheory.pages.what_if import cost_chart
from spectheory.prediction import Plan, Prediction

NO_LIMIT, ALL_LIMITS = "none", "all"
RANGES = "Lists of the most probable tokens alone give some rules a certain range in place of an exact value."


def prediction_charts(plan: Plan, ratio: float | None = None) -> list[Chart]:
    """The charts of a plan; `ratio` is the measured cost of a draft step, where the slider begins."""
    charts = [_tokens(plan)]
    if plan.timed:
        charts.append(_speedups(plan))
    if chains := [label for label in plan.chains if not label.stop]:
        charts.append(cost_chart(plan, chains, ratio))
    return charts


def _tokens(plan: Plan) -> Chart:
    drawn, known = curves(plan, plan.labels, lambda p: p.tokens_per_call, "tokens per target call"), list(_limits(plan))
    claims = list(dict.fromkeys(claim for claim, _ in known))
    if claims:
        drawn = altair().layer(drawn, *_limit_lines(known))
        names = [NO_LIMIT, *(claim.heading for claim in claims), ALL_LIMITS]
        drawn = drawn.add_params(choice("limits", "limit", names, names[1]))
    dashed = " Trees of k nodes are dashed." if plan.trees else ""
    limits = " Choose a limit of chains to compare with." if claims else ""
    around = ", around certain ranges where lists leave one" if any(p.certified for p in plan.predictions) else ""
    return Chart(
        "tokens",
        "Tokens per target call",
        "Output tokens of one target pass by drafted tokens per call, k. Bands are 95% intervals over prompts"
        f"{around}. Click a name in the legend to see one rule.{dashed}{limits}",
        specified(drawn),
        [
            "Exact for the measured texts (path theorem); the intervals are for the mean over all prompts of the same "
            "kind.",
            *([RANGES] if around else []),
            *(f"{claim.heading}: {claim.what}. {claim.scope.says}." for claim in claims),
        ],
    )


def _limit_lines(known: list[tuple[LimitClaim, Prediction]]) -> list[Any]:
    """Each limit of chains as a grey line with its name at its end; the list of the chart chooses."""
    last = dict(known)
    rows = [
        {"limit": claim.heading, "k": p.shape.nodes, "value": rounded(value), "last": p is last[claim]}
        for claim, p in known
        if (value := p.compared(claim)) is not None
    ]
    chosen = f"limits == '{ALL_LIMITS}' || limits == datum.limit"
    base = data(rows).transform_calculate(height=f"{chosen} ? datum.value : 1")  # hidden ones do not stretch the axis
    alt = altair()
    seen = alt.when(chosen).then(alt.value(1.0)).otherwise(alt.value(0.0))
    base = base.encode(x="k:Q", y="height:Q", opacity=seen)
    lines = base.mark_line(color=QUIET, strokeWidth=1.5, strokeDash=[2, 2]).encode(
        detail="limit:N", tooltip=["limit:N", "k:Q", *numbers("value")]
    )
    named = base.transform_filter("datum.last").mark_text(
        align="right", baseline="bottom", dy=-4, color=QUIET, fontSize=12
    )
    return [lines, named.encode(text="limit:N")]


def _speedups(plan: Plan) -> Chart:
    drawn = curves(plan, plan.labels, lambda p: p.speedup, "speed-up over plain decoding")
    plain = data([{"y": 1}]).mark_rule(color=QUIET, strokeDash=[2, 2]).encode(y="y:Q")
    return Chart(
        "speedup",
        "Predicted speed-up",
        "Tokens per second over those of plain decoding, the dotted line. Bands are 95% intervals over prompts and "
        "latencies.",
        specified(altair().layer(drawn, plain)),
        ["Estimate: measured times of passes, or those of the cost model, and exact tokens per call."],
    )


def _limits(plan: Plan) -> Iterator[tuple[LimitClaim, Prediction]]:
    """The limits of chains by the number of drafts, as the first rule that has them says."""
    first = plan.of(plan.chains[0]) if plan.chains else []
    for claim in ON_TRACES:
        yield from ((claim, p) for p in first if p.compared(claim) is not None)
