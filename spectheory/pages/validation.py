"""Charts of a validation: calls in deviations, tokens per call and speed-ups, predicted and as they came out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectheory.pages.vega import (
    QUIET,
    ROW,
    VegaChart,
    alt,
    colour,
    data,
    numbers,
    of_temperature,
    rounded,
    scatter,
    specified,
    temperatures,
)
from spectheory.plots.chart import Series
from spectheory.plots.style import Look
from spectheory.plots.validation import looks_in, records, speedups_chart, tokens_chart
from spectheory.reports.validation import WITHIN

Content = Mapping[str, Any]


def validation_charts(content: Content) -> list[VegaChart]:
    """The charts of an answer of ``spectheory validate``."""
    looks = looks_in([content])
    compared = (tokens_chart(content, looks), speedups_chart(content, looks))
    return [*_calls(content, looks), *(scatter(chart) for chart in compared if chart.dots)]


def _calls(content: Content, looks: Mapping[str, Look]) -> list[VegaChart]:
    placed = [
        {
            "z": rounded(record["expected"]["z"]),
            "p": rounded(record["expected"]["p"]),
            "rule": record["rule"],
            "setting": record["name"],
            "temperature": f"{temperature:g}",
        }
        for record, temperature in records(content)
        if record["expected"] and record["expected"].get("decides", True) and record["expected"]["z"] is not None
    ]
    if not placed:
        return []
    rules = {row["rule"] for row in placed}
    series = [Series(rule, look) for rule, look in looks.items() if rule in rules]
    dots = (
        of_temperature(placed)
        .mark_point(filled=True, size=60, opacity=0.8)
        .encode(
            x=alt.X("z:Q", title="counted - expected calls, in standard deviations", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("rule:N", title=None),
            color=colour(series, legend=False),
            tooltip=["setting:N", "temperature:N", *numbers("z", form="+.2f"), *numbers("p")],
        )
    )
    limits = data([{"x": -WITHIN}, {"x": WITHIN}]).mark_rule(color=QUIET, strokeDash=[2, 2]).encode(x="x:Q")
    layers = alt.layer(limits, dots).add_params(temperatures(placed))
    return [
        VegaChart(
            "calls",
            "Counted calls against expected ones",
            "A dot for each setting: the calls that were counted less those expected of the same texts. Right "
            f"predictions lie beyond the dotted lines, {WITHIN:g} deviations, in 0.27% of settings.",
            specified(layers, ROW * max(len(rules), 3)),
            ["Expected: the path theorem for the very texts that were decoded, exact given them."],
        )
    ]
