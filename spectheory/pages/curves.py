"""Curves over the number of drafted tokens: a line, markers and a band for each name, which the legend picks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spectheory.intervals import Interval
from spectheory.pages.chart import altair, data, numbers, rounded, switch, tone
from spectheory.plots.style import colours_of
from spectheory.prediction import Label, Plan, Prediction

_WHOLE, _DASHED = [1, 0], [5, 3]
"""Dashes of chains, and of other shapes."""
_MARKER, _DOT, _MANY = 45, 8, 64
"""Sizes of markers, of those of many lengths, and how many that is."""
_FAINT, _BAND = 0.1, 0.3
"""Opacity of all bands together, and of the one that is picked."""


def curves(plan: Plan, labels: Sequence[Label], value: Callable[[Prediction], Interval | None], title: str) -> Any:
    """Values with their intervals for each label of a plan; other shapes than chains are dashed."""
    alt = altair()
    rows = [
        {"rule": str(label), "k": p.shape.nodes}
        | {end: rounded(getattr(found, end)) for end in ("low", "best", "high")}
        for label in labels
        for p in plan.of(label)
        if (found := value(p))
    ]
    picked = alt.selection_point(name="picked", fields=["rule"], bind="legend")
    base = data(rows).encode(x=nodes(), color=colour(plan, labels))
    faint, clear = alt.value(_FAINT), alt.value(0.0)
    opacity = alt.when("!intervals").then(clear).when("!picked.rule").then(faint)
    opacity = opacity.when(picked).then(alt.value(_BAND)).otherwise(clear)
    low = alt.Y("low:Q", title=title, scale=alt.Scale(zero=False))
    bands = base.mark_area().encode(y=low, y2="high:Q", opacity=opacity)
    size = _MARKER if len({row["k"] for row in rows}) <= _MANY else _DOT
    lines = base.mark_line(point={"size": size}).encode(
        y="best:Q",
        shape=marker(labels),
        strokeDash=dash(labels),
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.1)),
        tooltip=["rule:N", "k:Q", *numbers("best", "low", "high")],
    )
    return alt.layer(bands, lines).add_params(picked, switch("intervals", "95% intervals"))


def nodes() -> Any:
    """The horizontal axis: drafted tokens per call."""
    alt = altair()
    axis = alt.Axis(tickMinStep=1, labelExpr="datum.value % 1 ? '' : datum.value")  # the library halves short steps
    return alt.X("k:Q", title="drafted tokens per call, k", axis=axis, scale=alt.Scale(nice=False, zero=False))


def colour(plan: Plan, labels: Sequence[Label]) -> Any:
    """The colours of the rules."""
    alt, of_rule = altair(), colours_of([p.rule for p in plan.predictions])
    colours = [tone(of_rule[plan.of(label)[0].rule.name]) for label in labels]
    scale, legend = alt.Scale(domain=list(map(str, labels)), range=colours), alt.Legend(symbolOpacity=1)
    return alt.Color("rule:N", title=None, scale=scale, legend=legend)


def marker(labels: Sequence[Label]) -> Any:
    """A marker for each rule, so that none is told by its colour alone."""
    alt = altair()
    return alt.Shape("rule:N", title=None, scale=alt.Scale(domain=list(map(str, labels))))


def dash(labels: Sequence[Label]) -> Any:
    """Dashes of other shapes than chains."""
    alt = altair()
    dashes = [_WHOLE if label.chain else _DASHED for label in labels]
    return alt.StrokeDash("rule:N", title=None, scale=alt.Scale(domain=list(map(str, labels)), range=dashes))
