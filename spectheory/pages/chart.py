"""A chart of a page: a title, what it shows, and its Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectheory.errors import load_extra

ROWS = Sequence[Mapping[str, Any]]
WIDTH, HEIGHT = 560, 320


@dataclass(frozen=True)
class Chart:
    """`name` is its anchor; `words` say what is seen; `assumes` what its numbers rest on, shown on demand."""

    name: str
    title: str
    words: str
    spec: Mapping[str, Any]
    assumes: Sequence[str] = ()


def altair() -> Any:
    """The library that writes specifications."""
    return load_extra("altair", extra="report")


def switch(name: str, words: str, *, on: bool = True) -> Any:
    """A check box of a chart."""
    alt = altair()
    return alt.param(name=name, value=on, bind=alt.binding_checkbox(name=words + " "))


def specified(chart: Any) -> dict[str, Any]:
    """The specification of a chart, as wide as its page lets it."""
    return dict(
        chart.properties(width="container", height=HEIGHT, autosize={"type": "fit-x", "contains": "padding"}).to_dict()
    )
