"""A chart as it is described once: matplotlib draws it as a picture, Vega as a part of a page.

Rows, series, colours, markers, names and words are decided where a :class:`Chart` is made, and nowhere else. A renderer
chooses strokes, sizes and what can be switched. Pictures are drawn by :mod:`spectheory.plots.drawing`, pages by
`spectheory/pages/vega.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from spectheory.intervals import Interval
from spectheory.plots.style import GREY, Look


@dataclass(frozen=True)
class Series:
    """What a key names: `end` is said where its line ends; other shapes than chains are dashed and hollow."""

    name: str
    look: Look
    end: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Dot:
    """A point of a series, a value with its 95% interval each way.

    `name` says what it is, `short` the same beside a key of the series, `says` the value in words; `temperature` is
    that of sampling.
    """

    series: str
    x: Interval
    y: Interval
    name: str = ""
    short: str = ""
    says: str = ""
    temperature: float = 0.0


@dataclass(frozen=True)
class Line:
    """A limit or a formula to compare with: dashed, or dotted where it is idealised.

    `about` and `explained` say what it is about, in few words and in a sentence; a picture draws those that are
    `drawn`, a page offers all.
    """

    name: str
    about: str
    explained: str
    at: tuple[tuple[float, float], ...]
    idealised: bool = False
    drawn: bool = True
    colour: str = GREY


@dataclass(frozen=True)
class Chart:
    """A chart without a way to draw it.

    - `name`: its anchor on a page; `title`: its heading there; `words`: what is seen, in sentences; `assumes`: what
      the numbers rest on.
    - `heading`: the title of a picture, which has no sentences below it.
    - `across`, `up`: the axes' titles with their units; no `up` is a chart of rows, the first on top.
    - `reference`: a value to compare with, and its name: of y, or of x in a chart of rows.
    - `crowded`: whether a picture has room for the interval of each series' highest dot only.

    Examples
    --------
    >>> from spectheory.plots.style import BLUE
    >>> dots = (Dot("token", Interval.exact(1), Interval(1.7, 1.8, 1.9, "statistical")),)
    >>> chart = Chart("tokens", "Tokens per call", "k", "tokens", (Series("token", Look(BLUE, "o")),), dots)
    >>> [dot.y.best for dot in chart.of("token")]
    [1.8]
    """

    name: str
    title: str
    across: str
    up: str
    series: tuple[Series, ...]
    dots: tuple[Dot, ...]
    lines: tuple[Line, ...] = ()
    words: str = ""
    assumes: tuple[str, ...] = ()
    heading: str = ""
    reference: tuple[float, str] | None = None
    crowded: bool = False

    def of(self, series: str) -> list[Dot]:
        """The dots of one series, in their order."""
        return [dot for dot in self.dots if dot.series == series]

    @property
    def looks(self) -> dict[str, Look]:
        """Colour and marker by the name of the series."""
        return {each.name: each.look for each in self.series}
