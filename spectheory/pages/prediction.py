"""Charts of a prediction: tokens per call, speed-up, and what another cost of drafts would change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from spectheory.cost import ConstantRatio
from spectheory.intervals import Interval
from spectheory.limits.claims import ON_TRACES, LimitClaim
from spectheory.pages.chart import Chart, altair, specified, switch
from spectheory.plots.style import colours_of
from spectheory.prediction import Label, Plan, Prediction

RATIOS = tuple(round(10 ** (-3 + i / 20), 5) for i in range(61))
"""Costs of a draft step that the slider offers: 0.001 to 1 target steps."""


def prediction_charts(plan: Plan, ratio: float | None = None) -> list[Chart]:
    """The charts of a plan; `ratio` is the measured cost of a draft step, where the slider begins."""
    charts = [_tokens(plan, plan.chains)] if plan.chains else []
    if plan.timed:
        charts.append(_speedups(plan))
    if chains := [label for label in plan.chains if not label.stop]:
        charts.append(_what_if(plan, chains, ratio))
    return charts


def _tokens(plan: Plan, labels: Sequence[Label]) -> Chart:
    alt = altair()
    drawn, claims = _curves(plan, labels, lambda p: p.tokens_per_call, "tokens per target call"), list(_limits(plan))
    if claims:
        rows = [{"limit": claim.heading, "k": p.shape.nodes, "value": p.compared(claim)} for claim, p in claims]
        limits = alt.Chart(alt.Data(values=rows)).transform_filter("limits").mark_line(color="#888888", strokeWidth=1.3)
        drawn = alt.layer(
            drawn,
            limits.encode(
                x="k:Q", y="value:Q", strokeDash=alt.StrokeDash("limit:N"), tooltip=["limit:N", "k:Q", "value:Q"]
            ),
        )
        drawn = drawn.add_params(switch("limits", "limits"))
    return Chart(
        "tokens",
        "Tokens per target call",
        "Output tokens of one target pass by drafted tokens per call, k. Bands are 95% intervals over prompts. Click a "
        "name in the legend to see one rule.",
        specified(drawn),
        [
            "Exact for the measured texts; the intervals say what other prompts of the same kind would give.",
            *dict.fromkeys(f"{claim.heading}: {claim.what}. {claim.scope.says}." for claim, _ in claims),
        ],
    )


def _speedups(plan: Plan) -> Chart:
    drawn = _curves(plan, plan.labels, lambda p: p.speedup, "speed-up over plain decoding")
    rule = (
        altair().Chart(altair().Data(values=[{"y": 1}])).mark_rule(color="#888888", strokeDash=[2, 2]).encode(y="y:Q")
    )
    return Chart(
        "speedup",
        "Predicted speed-up",
        "Tokens per second over those of plain decoding, the dotted line. Bands are 95% intervals.",
        specified(altair().layer(drawn, rule)),
        ["Estimate: measured times of passes, or those of the cost model, and exact tokens per call."],
    )


def _what_if(plan: Plan, labels: Sequence[Label], ratio: float | None) -> Chart:
    """The speed-up at every cost of the slider, computed by the cost model that ``plan --c`` uses."""
    alt = altair()
    start = min(range(len(RATIOS)), key=lambda i: abs(RATIOS[i] - (ratio or 0.1)))
    rows = [
        {"i": i, "c": c, "rule": str(label), "k": p.shape.nodes, "speedup": round(_at(c, p).best, 4)}
        for label in labels
        for p in plan.of(label)
        for i, c in enumerate(RATIOS)
    ]
    cost = alt.param(
        name="cost", value=start, bind=alt.binding_range(min=0, max=len(RATIOS) - 1, step=1, name="draft cost ")
    )
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.i == cost")
    lines = base.mark_line(point=True).encode(
        x=_nodes(),
        y=alt.Y("speedup:Q", title="speed-up over plain decoding", scale=alt.Scale(zero=False)),
        color=_colour(plan, labels),
        shape=_marker(labels),
        tooltip=["rule:N", "k:Q", "speedup:Q", "c:Q"],
    )
    best = base.transform_window(rank="rank()", sort=[alt.SortField("speedup", order="descending")]).transform_filter(
        "datum.rank == 1"
    )
    setting = "datum.rule + ', k = ' + datum.k + ', ' + format(datum.speedup, '.2f') + 'x'"
    words = f"'c = ' + format(datum.c, '.3f') + ': best ' + {setting}"
    text = best.transform_calculate(words=words).mark_text(align="left", fontSize=13, fontWeight="bold")
    named = text.encode(x=alt.value(12), y=alt.value(14), text="words:N")
    ring = best.mark_point(size=220, strokeWidth=2, color="#888888").encode(x="k:Q", y="speedup:Q")
    return Chart(
        "cost",
        "If a draft step cost something else",
        "Move the slider: speed-up by k where a draft step costs c target steps, and the best setting.",
        specified(alt.layer(lines, ring, named).add_params(cost)),
        ["Verifying costs one target step whatever k, and the decoding loop nothing: the cost model of --c."],
    )


def _at(c: float, prediction: Prediction) -> Interval:
    return ConstantRatio(c).speedup(prediction.tokens_per_call, prediction.shape)


def _curves(plan: Plan, labels: Sequence[Label], value: Callable[[Prediction], Interval | None], title: str) -> Any:
    """A line for each label with its band and markers; the legend picks one."""
    alt = altair()
    rows = [
        {"rule": str(label), "k": p.shape.nodes, "low": found.low, "best": found.best, "high": found.high}
        for label in labels
        for p in plan.of(label)
        if (found := value(p))
    ]
    picked = alt.selection_point(name="picked", fields=["rule"], bind="legend")
    base = alt.Chart(alt.Data(values=rows)).encode(x=_nodes(), color=_colour(plan, labels))
    bands = (
        base.transform_filter("intervals")
        .mark_area()
        .encode(
            y=alt.Y("low:Q", title=title, scale=alt.Scale(zero=False)),
            y2="high:Q",
            opacity=alt.condition(picked, alt.value(0.15), alt.value(0.0)),
        )
    )
    lines = base.mark_line(point={"size": 45}).encode(
        y="best:Q",
        shape=_marker(labels),
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.1)),
        tooltip=[
            "rule:N",
            "k:Q",
            alt.Tooltip("best:Q", format=".3f"),
            alt.Tooltip("low:Q", format=".3f"),
            alt.Tooltip("high:Q", format=".3f"),
        ],
    )
    return alt.layer(bands, lines).add_params(picked, switch("intervals", "95% intervals"))


def _nodes() -> Any:
    alt = altair()
    return alt.X(
        "k:Q", title="drafted tokens per call, k", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)
    )


def _marker(labels: Sequence[Label]) -> Any:
    alt = altair()
    return alt.Shape("rule:N", title="rule", scale=alt.Scale(domain=list(map(str, labels))))


def _colour(plan: Plan, labels: Sequence[Label]) -> Any:
    alt, of_rule = altair(), colours_of([p.rule for p in plan.predictions])
    colours = [of_rule[plan.of(label)[0].rule.name] for label in labels]
    return alt.Color("rule:N", title="rule", scale=alt.Scale(domain=list(map(str, labels)), range=colours))


def _limits(plan: Plan) -> Iterator[tuple[LimitClaim, Prediction]]:
    """The limits of chains by the number of drafts, as the first rule that has them says."""
    first = plan.of(plan.chains[0])
    for claim in ON_TRACES:
        yield from ((claim, p) for p in first if p.compared(claim) is not None)
