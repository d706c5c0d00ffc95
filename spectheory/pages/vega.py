"""Charts as parts of a page: Vega draws curves over k, rows of intervals, and predictions against outcomes."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from spectheory.errors import load_extra
from spectheory.intervals import Interval
from spectheory.plots.chart import Chart, Line, Series
from spectheory.plots.style import GREY, PALETTE

HEIGHT, ROW = 320, 38
"""Pixels of a chart, and of a row of a chart of rows."""
QUIET = "var(--soft)"
"""Colour of what is compared with: that of quiet words on the page."""
_TONES = {hue: f"var(--{name})" for name, hue in PALETTE.items()} | {GREY: QUIET}
"""Colours of the palette as the page has them: lighter on a dark page."""
NO_LINE, ALL = "none", "all"
_WHOLE, _DASHED = [1, 0], [5, 3]
"""Dashes of chains, and of other shapes."""
_MARKER, _DOT, _MANY = 45, 8, 64
"""Sizes of markers, of those of many lengths, and how many that is."""
_AT_END = 48
"""Pixels right of a chart, for the names of its limits, or of an interval, for its value."""
_FAINT, _BAND = 0.1, 0.3
"""Opacity of all bands together, and of the one that is picked."""


class _Altair:
    """The library that writes specifications, loaded when it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(load_extra("altair", extra="report"), name)


alt: Any = _Altair()


@dataclass(frozen=True)
class VegaChart:
    """A chart of a page: `name` is its anchor; `words` say what is seen; `assumes` what its numbers rest on, shown on
    demand; `spec` is its Vega-Lite specification; `rows` are its numbers as a table.
    """

    kind: ClassVar[str] = "chart"
    name: str
    title: str
    words: str
    spec: Mapping[str, Any]
    assumes: Sequence[str] = ()
    rows: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, chart: Chart, layers: Any, height: int = HEIGHT) -> VegaChart:
        """A chart with the words and the numbers of its description."""
        return cls(chart.name, chart.title, chart.words, specified(layers, height), chart.assumes, chart.rows)

    @property
    def csv(self) -> str:
        """The numbers as comma-separated values, with every column that a row has."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(dict.fromkeys(name for row in self.rows for name in row)))
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()


# The three kinds of charts


def curves(chart: Chart) -> VegaChart:
    """A line, markers and a band for each series, which the legend picks; limits can be chosen."""
    rows = [{"rule": dot.name, "k": dot.x.best} | ends(dot.y) for dot in chart.dots]
    picked = alt.selection_point(name="picked", fields=["rule"], bind="legend")
    across = whole(chart.across) if chart.whole else alt.X("k:Q", title=chart.across, scale=alt.Scale(nice=False))
    base = data(rows).encode(x=across, color=colour(chart.series))
    faint, clear = alt.value(_FAINT), alt.value(0.0)
    opacity = alt.when("!intervals").then(clear).when("!picked.rule").then(faint)
    opacity = opacity.when(picked).then(alt.value(_BAND)).otherwise(clear)
    low = alt.Y("low:Q", title=chart.up, scale=alt.Scale(zero=False))
    bands = base.mark_area().encode(y=low, y2="high:Q", opacity=opacity)
    size = _MARKER if len({row["k"] for row in rows}) <= _MANY else _DOT
    styles = [_DASHED if each.dashed else _WHOLE for each in chart.series]
    dashes = alt.Scale(domain=_names(chart.series), range=styles)
    lines = base.mark_line(point={"size": size}).encode(
        y="best:Q",
        shape=marker(chart.series),
        strokeDash=alt.StrokeDash("rule:N", title=None, scale=dashes),
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.1)),
        tooltip=["rule:N", alt.Tooltip("k:Q", title=chart.across.partition(",")[0]), *numbers("best", "low", "high")],
    )
    layers = alt.layer(bands, lines).add_params(picked, alt.param(name="intervals", value=True, **_switch(chart)))
    if chart.reference:
        plain = data([{"y": chart.reference[0]}]).mark_rule(color=QUIET, strokeDash=[2, 2]).encode(y="y:Q")
        layers = alt.layer(layers, plain)
    if chart.lines:
        names = [NO_LINE, *map(_named, chart.lines), ALL]
        layers = alt.layer(layers, *_limits(chart)).add_params(choice("limits", "limit", names, names[1]))
    return VegaChart.of(
        chart, layers.properties(padding={"left": 5, "top": 5, "bottom": 5, "right": _AT_END if chart.lines else 5})
    )


def rows(chart: Chart) -> VegaChart:
    """A name above each dot with its interval, so that long names fit narrow pages; values stand at the right."""
    reference, _ = chart.reference or (0.0, "")
    placed = [
        ends(dot.x) | {"name": dot.name, "group": dot.series, "says": dot.says, "row": place}
        for place, dot in enumerate(chart.dots)
    ]
    y = alt.Y("row:O", axis=None)
    base = data(placed).encode(y=y, tooltip=["name:N", *numbers("low", "best", "high"), "says:N"])
    several = len(chart.series) > 1
    tone = colour(chart.series, "group", legend=several)
    room = alt.Scale(zero=False, padding=_AT_END)
    x = alt.X("low:Q", title=chart.across, scale=room, axis=alt.Axis(grid=False, tickCount=6, labelOverlap="greedy"))
    arms = base.mark_rule(strokeWidth=3, opacity=0.45, yOffset=7).encode(x=x, x2="high:Q", color=tone)
    dots = base.mark_point(filled=True, size=70, opacity=1, yOffset=7).encode(
        x="best:Q", shape=marker(chart.series, "group", legend=several), color=tone
    )
    names = base.mark_text(align="left", dy=-9, fontSize=12, limit=alt.ExprRef("width")).encode(
        x=alt.value(2), text="name:N"
    )
    said = base.mark_text(align="right", dy=7, fontSize=12).encode(x=alt.value("width"), text="says:N")
    line = base.mark_tick(color=QUIET, size=18, thickness=1.5, yOffset=7).encode(x=alt.datum(reference))  # below names
    return VegaChart.of(chart, alt.layer(arms, line, dots, names, said), ROW * len(placed))


def scatter(chart: Chart) -> VegaChart:
    """Dots with both intervals, and the diagonal; a dot's shape says its temperature, of which one can be chosen."""
    placed = [
        {f"{axis}_{end}": value for axis, one in (("x", dot.x), ("y", dot.y)) for end, value in ends(one).items()}
        | {"rule": dot.series, "setting": dot.name, "temperature": f"{dot.temperature:g}"}
        for dot in chart.dots
    ]
    low, high = (
        pick(row[f"{axis}_{end}"] for row in placed for axis in "xy") for pick, end in ((min, "low"), (max, "high"))
    )
    line = data([{"at": low}, {"at": high}]).mark_line(color=QUIET, strokeDash=[2, 2]).encode(x="at:Q", y="at:Q")
    picked = alt.selection_point(name="picked", fields=["rule"], bind="legend")
    base = of_temperature(placed).encode(
        x=alt.X("x_best:Q", title=chart.across, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=8)),
        y=alt.Y("y_best:Q", title=chart.up, scale=alt.Scale(zero=False)),
        color=colour(chart.series),
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
    return VegaChart.of(chart, alt.layer(line, *arms, dots).add_params(picked, temperatures(placed)), 420)


def _switch(chart: Chart) -> dict[str, Any]:
    """The box that hides intervals, where there are some."""
    some = any(dot.y.low < dot.y.high for dot in chart.dots)
    return {"bind": alt.binding_checkbox(name="95% intervals")} if some else {}


def _limits(chart: Chart) -> list[Any]:
    """Each line to compare with and its name at its end; the list of the chart chooses."""
    placed = [
        {
            "limit": line.name,
            "choice": _named(line),
            "tone": _TONES[line.colour],
            "k": k,
            "value": rounded(value),
            "last": (k, value) == line.at[-1],
        }
        for line in chart.lines
        for k, value in line.at
    ]
    chosen = f"limits == '{ALL}' || limits == datum.choice"
    base = data(placed).transform_calculate(height=f"{chosen} ? datum.value : 1")  # hidden ones leave the axis alone
    seen = alt.when(chosen).then(alt.value(1.0)).otherwise(alt.value(0.0))
    base = base.encode(x="k:Q", y="height:Q", opacity=seen, color=alt.Color("tone:N", scale=None))
    lines = base.mark_line(strokeWidth=1.5, strokeDash=[2, 2]).encode(
        detail="limit:N", tooltip=["limit:N", "k:Q", *numbers("value")]
    )
    last = base.transform_filter("datum.last")
    named = last.mark_text(align="left", dx=8, fontSize=12).encode(text="limit:N")
    return [lines, named]


def _named(line: Line) -> str:
    return f"{line.name} ({line.about})"


# Their parts


def data(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A chart of these rows, without marks yet."""
    return alt.Chart(alt.Data(values=list(rows)))


def whole(title: str) -> Any:
    """A horizontal axis of whole numbers of drafts."""
    axis = alt.Axis(tickMinStep=1, labelExpr="datum.value % 1 ? '' : datum.value")  # the library halves short steps
    return alt.X("k:Q", title=title, axis=axis, scale=alt.Scale(nice=False, zero=False))


def colour(series: Sequence[Series], field: str = "rule", *, legend: bool = True) -> Any:
    """The colours of series."""
    scale = alt.Scale(domain=_names(series), range=[_TONES[each.look.colour] for each in series])
    shown = alt.Legend(symbolOpacity=1) if legend else None
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=shown)


def marker(series: Sequence[Series], field: str = "rule", *, legend: bool = True) -> Any:
    """The markers of series, so that none is told by its colour alone."""
    scale = alt.Scale(domain=_names(series), range=[MARKS[each.look.marker] for each in series])
    shown = {} if legend else {"legend": None}
    return alt.Shape(f"{field}:N", title=None, scale=scale, **shown)


def _names(series: Sequence[Series]) -> list[str]:
    return [each.name for each in series]


def _star(points: int, inner: float, turn: float = 0.0) -> str:
    """The outline of a star in the square from -1 to 1; its inner corners are so far from its middle."""
    corners = [
        (r * math.sin(angle), -r * math.cos(angle))
        for i, r in product(range(points), (1.0, inner))
        for angle in [turn + (2 * math.pi * i + (r != 1.0) * math.pi) / points]
    ]
    return "M" + "L".join(f"{x:.3f},{y:.3f}" for x, y in corners) + "Z"


def _polygon(corners: int, turn: float = 0.0) -> str:
    return _star(corners, math.cos(math.pi / corners), turn)


MARKS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "D": "diamond",
    "d": "M0,-1L0.6,0L0,1L-0.6,0Z",
    "P": "cross",
    "X": _star(4, 0.35, math.pi / 4),
    "p": _polygon(5),
    "h": _polygon(6),
    "H": _polygon(6, math.pi / 6),
    "8": _polygon(8, math.pi / 8),
    "*": _star(5, 0.4),
    "1": _star(3, 0.2, math.pi),
    "2": _star(3, 0.2),
    "3": _star(3, 0.2, -math.pi / 2),
    "4": _star(3, 0.2, math.pi / 2),
}
"""The markers of pictures as Vega has them."""


def of_temperature(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows of the temperature that is chosen."""
    return data(rows).transform_filter(f"at == '{ALL}' || at == datum.temperature")


def temperatures(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The list that chooses."""
    return choice("at", "temperature", [ALL, *dict.fromkeys(row["temperature"] for row in rows)], ALL)


def choice(name: str, words: str, options: Sequence[str], start: str) -> Any:
    """A list of a chart to choose from."""
    return alt.param(name=name, value=start, bind=alt.binding_select(options=list(options), name=words))


def slider(name: str, words: str, places: int, start: int) -> Any:
    """A slider over the places of a list; the chart says what stands at a place."""
    return alt.param(name=name, value=start, bind=alt.binding_range(min=0, max=places - 1, step=1, name=words))


def numbers(*fields: str, form: str = ".3f") -> list[Any]:
    """Fields of a tooltip."""
    return [alt.Tooltip(f"{field}:Q", format=form) for field in fields]


def ends(interval: Interval) -> dict[str, float]:
    """An interval as fields of a row."""
    return {name: rounded(getattr(interval, name)) for name in ("low", "best", "high")}


def plain() -> Any:
    """Plain decoding, with which speed-ups are compared."""
    return data([{"y": 1}]).mark_rule(color=QUIET, strokeDash=[2, 2]).encode(y="y:Q")


def rounded(value: float) -> float:
    """Six digits: more are not seen."""
    return float(f"{value:.6g}")


def specified(chart: Any, height: int = HEIGHT) -> dict[str, Any]:
    """The specification of a chart, as wide as its page lets it."""
    fit = {"type": "fit-x", "contains": "padding"}
    return dict(chart.properties(width="container", height=height, autosize=fit).to_dict())
