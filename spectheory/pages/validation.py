"""Charts of a validation: calls in deviations, tokens per call and speed-ups, predicted and as they came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spectheory.pages.chart import QUIET, ROW, Chart, altair, choice, data, numbers, rounded, specified, tone
from spectheory.plots.style import GREY
from spectheory.plots.validation import looks_in
from spectheory.reports.validation_terms import WITHIN

Content = Mapping[str, Any]
ALL = "all"
_ENDS = ("low", "best", "high")


def validation_charts(content: Content) -> list[Chart]:
    """The charts of an answer of ``spectheory validate``."""
    charts = [chart for chart in (_calls(content), _tokens(content)) if chart]
    speedups = list(_points(content, _speedup))
    if speedups:
        charts.append(_speedups(speedups, _colours(content)))
    return charts


def _calls(content: Content) -> Chart | None:
    rows = [
        {"z": rounded(record["expected"]["z"]), "p": rounded(record["expected"]["p"]), **_named(record, temperature)}
        for temperature, record in _records(content)
        if record["expected"] and record["expected"].get("decides", True) and record["expected"]["z"] is not None
    ]
    if not rows:
        return None
    alt = altair()
    tips = ["setting:N", "temperature:N", *numbers("z", form="+.2f"), *numbers("p")]
    dots = (
        _of_temperature(rows)
        .mark_point(filled=True, size=60, opacity=0.8)
        .encode(
            x=alt.X("z:Q", title="counted less expected calls, in standard deviations", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("rule:N", title=None),
            color=_colour(rows, _colours(content), legend=False),
            tooltip=tips,
        )
    )
    ends = data([{"x": -WITHIN}, {"x": WITHIN}]).mark_rule(color=QUIET, strokeDash=[2, 2]).encode(x="x:Q")
    rules = len({row["rule"] for row in rows})
    return Chart(
        "calls",
        "Counted calls against expected ones",
        "A dot for each setting: the calls that were counted less those expected of the same texts. Right predictions "
        f"lie beyond the dotted lines, {WITHIN:g} deviations, in 0.27% of settings.",
        specified(alt.layer(ends, dots).add_params(_temperatures(rows)), ROW * max(rules, 3)),
        ["Expected: the path theorem for the very texts that were decoded, exact given them."],
    )


def _tokens(content: Content) -> Chart | None:
    rows = list(_points(content, _trace))
    if not rows:
        return None
    return Chart(
        "tokens",
        "Tokens per call: counted, and predicted from other texts",
        "On the line both are equal. Intervals (95%) are over prompts. Click a rule in the legend to see it alone.",
        _scatter(rows, _colours(content), "predicted tokens per call", "counted tokens per call"),
        ["Predicted from the trace of other texts of the same prompts; at temperature 0 these are the same texts."],
    )


def _speedups(rows: Sequence[Content], colours: Mapping[str, str]) -> Chart:
    return Chart(
        "speedups",
        "Speed-up: measured, and predicted",
        "On the line both are equal. Intervals (95%) are over prompts and latencies.",
        _scatter(rows, colours, "predicted speed-up", "measured speed-up"),
        [
            "Predicted from a trace of other texts and from latencies; measured is wall-clock over plain decoding by "
            "our own loops. The parts of the difference stand in the table.",
        ],
    )


def _trace(record: Content) -> tuple[Content, Content] | None:
    return (record["trace"]["tokens_per_call"], record["tokens_per_call"]) if record["trace"] else None


def _speedup(record: Content) -> tuple[Content, Content] | None:
    known = record["speedup"]["predicted"] and not record["judged"]
    return (record["speedup"]["predicted"], record["speedup"]["measured"]) if known else None


def _points(content: Content, pair: Any) -> Iterator[dict[str, Any]]:
    """A row for each setting that has both a prediction and an outcome."""
    for temperature, record in _records(content):
        if found := pair(record):
            ends = {f"{name}_{end}": rounded(one[end]) for name, one in zip("xy", found, strict=True) for end in _ENDS}
            yield {**ends, **_named(record, temperature)}


def _records(content: Content) -> Iterator[tuple[float, Content]]:
    for found in content["temperatures"]:
        yield from ((found["temperature"], record) for record in found["settings"])


def _named(record: Content, temperature: float) -> dict[str, str]:
    return {"rule": record["rule"], "setting": record["name"], "temperature": f"{temperature:g}"}


def _scatter(rows: Sequence[Content], colours: Mapping[str, str], across: str, up: str) -> dict[str, Any]:
    alt = altair()
    low, high = (
        pick(row[f"{axis}_{end}"] for row in rows for axis in "xy") for pick, end in ((min, "low"), (max, "high"))
    )
    ends = [{"at": low}, {"at": high}]
    line = data(ends).mark_line(color=QUIET, strokeDash=[2, 2]).encode(x="at:Q", y="at:Q")
    picked = alt.selection_point(name="picked", fields=["rule"], bind="legend")
    base = _of_temperature(rows).encode(
        x=alt.X("x_best:Q", title=across, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=8)),
        y=alt.Y("y_best:Q", title=up, scale=alt.Scale(zero=False)),
        color=_colour(rows, colours),
        tooltip=["setting:N", "temperature:N", *numbers("x_best", "y_best")],
    )
    faint = alt.condition(picked, alt.value(0.4), alt.value(0.03))
    arms = [
        base.mark_rule().encode(x="x_low:Q", x2="x_high:Q", opacity=faint),
        base.mark_rule().encode(y="y_low:Q", y2="y_high:Q", opacity=faint),
    ]
    shape = alt.Shape("temperature:N", title="temperature")
    clear = alt.condition(picked, alt.value(0.9), alt.value(0.08))
    dots = base.mark_point(filled=True, size=55).encode(shape=shape, opacity=clear)
    return specified(alt.layer(line, *arms, dots).add_params(picked, _temperatures(rows)), 420)


def _of_temperature(rows: Sequence[Content]) -> Any:
    return data(rows).transform_filter(f"at == '{ALL}' || at == datum.temperature")


def _temperatures(rows: Sequence[Content]) -> Any:
    return choice("at", "temperature", [ALL, *dict.fromkeys(row["temperature"] for row in rows)], ALL)


def _colours(content: Content) -> dict[str, str]:
    """The colour of each rule, as in the figure; grey is that of the page."""
    return {rule: QUIET if look.colour == GREY else tone(look.colour) for rule, look in looks_in([content]).items()}


def _colour(rows: Sequence[Content], colours: Mapping[str, str], *, legend: bool = True) -> Any:
    alt, rules = altair(), sorted({row["rule"] for row in rows})
    shown = alt.Legend(symbolOpacity=1) if legend else None
    scale = alt.Scale(domain=rules, range=[colours[rule] for rule in rules])
    return alt.Color("rule:N", title=None, scale=scale, legend=shown)
