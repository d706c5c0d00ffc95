"""A chart of a page: a title, what it shows, and its Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from spectheory.errors import load_extra
from spectheory.plots.style import PALETTE

HEIGHT, ROW = 320, 38
"""Pixels of a chart, and of a row of a chart of rows."""
QUIET = "var(--soft)"
"""Colour of what is compared with: that of quiet words on the page."""


@dataclass(frozen=True)
class Chart:
    """`name` is its anchor; `words` say what is seen; `assumes` what its numbers rest on, shown on demand."""

    kind: ClassVar[str] = "chart"
    name: str
    title: str
    words: str
    spec: Mapping[str, Any]
    assumes: Sequence[str] = ()


def altair() -> Any:
    """The library that writes specifications."""
    return load_extra("altair", extra="report")


def tone(colour: str) -> str:
    """A colour of the palette as the page has it: lighter on a dark page."""
    return next((f"var(--{name})" for name, known in PALETTE.items() if known == colour), colour)


def data(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A chart of these rows, without marks yet."""
    alt = altair()
    return alt.Chart(alt.Data(values=list(rows)))


def switch(name: str, words: str, *, on: bool = True) -> Any:
    """A check box of a chart."""
    alt = altair()
    return alt.param(name=name, value=on, bind=alt.binding_checkbox(name=words))


def choice(name: str, words: str, options: Sequence[str], start: str) -> Any:
    """A list of a chart to choose from."""
    alt = altair()
    return alt.param(name=name, value=start, bind=alt.binding_select(options=list(options), name=words))


def slider(name: str, words: str, places: int, start: int) -> Any:
    """A slider over the places of a list; the chart says what stands at a place."""
    alt = altair()
    return alt.param(name=name, value=start, bind=alt.binding_range(min=0, max=places - 1, step=1, name=words))


def numbers(*fields: str, form: str = ".3f") -> list[Any]:
    """Fields of a tooltip."""
    alt = altair()
    return [alt.Tooltip(f"{field}:Q", format=form) for field in fields]


def rounded(value: float) -> float:
    """Six digits: more are not seen."""
    return float(f"{value:.6g}")


def specified(chart: Any, height: int = HEIGHT) -> dict[str, Any]:
    """The specification of a chart, as wide as its page lets it."""
    fit = {"type": "fit-x", "contains": "padding"}
    return dict(chart.properties(width="container", height=height, autosize=fit).to_dict())
