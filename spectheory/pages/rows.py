"""A chart of rows: a name above each dot with its interval, so that long names fit narrow pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectheory.pages.chart import QUIET, ROW, altair, data, numbers, specified

COLOURS = ("blue", "orange", "green", "pink", "sky", "yellow")


def row_chart(rows: Sequence[Mapping[str, Any]], title: str, *, reference: float, groups: Sequence[str]) -> Any:
    """Rows in the order given, the first on top; each has `name`, `low`, `best`, `high`, `group` and `says`.

    Groups have colours and shapes; `reference` is a line to compare with, and `says` stands at the interval's end.
    """
    alt = altair()
    placed = [{**row, "row": place} for place, row in enumerate(rows)]
    y = alt.Y("row:O", axis=None)
    base = data(placed).encode(y=y, tooltip=["name:N", *numbers("low", "best", "high"), "says:N"])
    scale = alt.Scale(domain=list(groups), range=[f"var(--{COLOURS[i % len(COLOURS)]})" for i in range(len(groups))])
    legend = None if len(groups) == 1 else alt.Legend(symbolOpacity=1)
    colour = alt.Color("group:N", title=None, scale=scale, legend=legend)
    shape = alt.Shape("group:N", title=None, scale=alt.Scale(domain=list(groups)), legend=legend)
    x = alt.X("low:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(grid=False, tickCount=8))
    arms = base.mark_rule(strokeWidth=3, opacity=0.45, yOffset=7).encode(x=x, x2="high:Q", color=colour)
    dots = base.mark_point(filled=True, size=70, opacity=1, yOffset=7).encode(x="best:Q", color=colour, shape=shape)
    names = base.mark_text(align="left", dy=-9, fontSize=12, limit=alt.ExprRef("width")).encode(
        x=alt.value(2), text="name:N"
    )
    ends = base.mark_text(align="left", dx=6, dy=7, fontSize=12).encode(x="high:Q", text="says:N")
    line = data([{"x": reference}]).mark_rule(color=QUIET, strokeDash=[2, 2]).encode(x="x:Q")
    return specified(alt.layer(line, arms, dots, names, ends), ROW * len(rows))
