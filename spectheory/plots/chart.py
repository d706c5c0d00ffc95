"""A chart as it is described once: matplotlib draws it as a picture, Vega as a part of a page.

Rows, series, colours, markers, names and words are decided where a :class:`Chart` is made, and nowhere else. A renderer
chooses strokes, sizes and what can be switched. Pictures are drawn below: curves over k, rows of intervals, and
predictions against outcomes; pages by `spectheory/pages/vega.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from spectheory.intervals import Interval
from spectheory.plots.style import (
    GREY,
    Artist,
    Axes,
    LineEnd,
    Look,
    drawable,
    name_ends,
    note,
    plain_axes,
    save_figure,
    titled,
    whole_ticks,
)


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

    `about` names the rule that it belongs to, if to one alone, and `explained` says what it is; a picture draws those
    that are `in_pictures`, a page offers all.
    """

    name: str
    about: str
    explained: str
    at: tuple[tuple[float, float], ...]
    idealised: bool = False
    in_pictures: bool = True
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
    def whole(self) -> bool:
        """Whether all x are whole numbers."""
        return all(float(dot.x.best).is_integer() for dot in self.dots)

    @property
    def rows(self) -> list[dict[str, str | float]]:
        """Its numbers as a table: a row for each dot, with its intervals, and for each point of its lines."""
        axes = {axis: title for axis, title in (("x", self.across), ("y", self.up)) if title}
        rows: list[dict[str, str | float]] = []
        for dot in self.dots:
            row: dict[str, str | float] = {"series": dot.series, "name": dot.name}
            for axis, title in axes.items():
                value = getattr(dot, axis)
                row[title] = value.best
                row |= {} if value.kind == "exact" else {f"{title}, low": value.low, f"{title}, high": value.high}
            rows.append(row)
        return rows + [{"series": line.name, self.across: x, self.up: y} for line in self.lines for x, y in line.at]

    @property
    def looks(self) -> dict[str, Look]:
        """Colour and marker by the name of the series."""
        return {each.name: each.look for each in self.series}


def series_in(looks: Mapping[str, Look], dots: Iterable[Dot]) -> tuple[Series, ...]:
    """The series that some dots are of, in the order of their looks."""
    some = {dot.series for dot in dots}
    return tuple(Series(name, look) for name, look in looks.items() if name in some)


# Pictures

_APART = 0.06
"""How far the bars of two curves stand apart, in drafted tokens."""
_ROOM = 0.2
"""Beside the first and the last number of drafts."""
_MARGIN, _FAINT = 0.05, 0.4
_LETTERS = 26
"""Of a line of the name at a line's end."""


def curves(ax: Axes, chart: Chart) -> list[Artist]:
    """A line for each series with the bars of its intervals, the lines to compare with, and a name at every end."""
    artists: list[Artist] = []
    labels: list[LineEnd] = []
    for place, series in enumerate(chart.series):
        dots, (colour, marker) = chart.of(series.name), series.look
        ks, best = [dot.x.best for dot in dots], [dot.y.best for dot in dots]
        line, face = ("--", "white") if series.dashed else ("-", colour)
        artists += ax.plot(ks, best, marker + line, color=colour, mfc=face, ms=4.5, lw=1.4)
        barred = [max(dots, key=lambda dot: dot.y.best)] if chart.crowded else dots
        shift = _APART * (place - (len(chart.series) - 1) / 2) if chart.crowded else 0.0
        low, high = [dot.y.low for dot in barred], [dot.y.high for dot in barred]
        artists.append(
            ax.vlines([dot.x.best + shift for dot in barred], low, high, color=colour, linewidth=1.8, alpha=0.6)
        )
        labels += [(ks[-1], best[-1], series.end, colour)] if series.end else []
    for limit in (each for each in chart.lines if each.in_pictures):
        style = ":" if limit.idealised else "--"
        artists += ax.plot(*zip(*limit.at, strict=True), linestyle=style, color=limit.colour, linewidth=1.3)
        words = f"{limit.name} ({limit.about})" if limit.about else limit.name
        labels.append((*limit.at[-1], fill(words, _LETTERS), limit.colour))
    if chart.reference:
        value, name = chart.reference
        artists.append(ax.axhline(value, color=GREY, linewidth=1.0, linestyle=":"))
        labels.append((max(dot.x.best for dot in chart.dots), value, name, GREY))
    if chart.whole:
        ax.set_xlim(1.0 - _ROOM, max(2.0, *(x for x, *_ in labels)) + _ROOM)
        ax.xaxis.set_major_locator(whole_ticks())
    ax.set_ylim(ax.get_ylim())
    ax.set_xlabel(chart.across)
    ax.set_ylabel(chart.up)
    name_ends(ax, labels)
    titled(ax, chart.heading)
    return artists


def write_curves(charts: Mapping[str, Chart], folder: Path) -> list[Path]:
    """Write curves, each chart under its name."""
    return [
        file
        for name, chart in charts.items()
        for file in save_figure(
            lambda figure, chart=chart: curves(figure.add_subplot(), chart),  # type: ignore[misc]
            (8.4, 4.6),
            folder / name,
        )
    ]


def rows(ax: Axes, chart: Chart) -> None:
    """A row for each dot, the first on top; its name has the colour of its series."""
    looks = chart.looks
    for row, dot in enumerate(chart.dots):
        colour, marker = looks[dot.series]
        ax.errorbar([dot.x.best], [row], xerr=arms(dot.x), fmt=marker, color=colour, ecolor=(colour, 0.5), markersize=6)
        ax.annotate(dot.says, (dot.x.high, row), (6, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_yticks(range(len(chart.dots)), [drawable(dot.short) for dot in chart.dots])
    for label, dot in zip(ax.get_yticklabels(), chart.dots, strict=True):
        label.set_color(looks[dot.series].colour)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    if chart.reference:
        value, name = chart.reference
        ax.axvline(value, color=GREY, linewidth=1.0, linestyle=":")
        note(ax, name, (value, 1.0), (3, 2), xycoords=("data", "axes fraction"))
    if len(looks) > 1:
        for name, look in looks.items():
            ax.plot([], [], look.marker, color=look.colour, label=drawable(name))
        ax.legend(loc="lower right")
    ax.margins(x=0.1)  # room for the numbers
    ax.set_xlabel(chart.across)
    ax.set_title(drawable(chart.heading), loc="right", fontsize=9.5, pad=16)
    plain_axes(ax)


def scatter(ax: Axes, charts: Sequence[Chart], fills: Mapping[float, str]) -> list[Artist]:
    """Dots of charts with the same axes, with both intervals, and the diagonal; fillings say the temperature."""
    artists: list[Artist] = []
    dots: list[Dot] = []
    for chart in charts:
        for dot in chart.dots:
            colour, marker = chart.looks[dot.series]
            artists += ax.errorbar(
                [dot.x.best],
                [dot.y.best],
                xerr=arms(dot.x),
                yerr=arms(dot.y),
                fmt=marker,
                color=colour,
                markersize=5,
                fillstyle=fills[dot.temperature],
                elinewidth=0.8,
                ecolor=(colour, _FAINT),
            ).get_children()
            dots.append(dot)
        ax.set_xlabel(chart.across)
        ax.set_ylabel(chart.up)
    plain_axes(ax)
    if not dots:
        return artists
    low = min(one.low for dot in dots for one in (dot.x, dot.y))
    high = max(one.high for dot in dots for one in (dot.x, dot.y))
    margin = _MARGIN * (high - low) or _MARGIN  # all dots may be the same
    low, high = low - margin, high + margin
    artists += ax.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle=":", zorder=0)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    return artists


def arms(interval: Interval) -> list[list[float]]:
    """Lengths of an interval's arms."""
    return [[interval.best - interval.low], [interval.high - interval.best]]


def banded(ax: Axes, xs: Sequence[int], ys: Sequence[Interval], look: Look, opacity: float, label: str = "") -> None:
    """A line of values in the band of their intervals."""
    ax.plot(xs, [y.best for y in ys], f"{look.marker}-", color=look.colour, markersize=4.5, label=label or None)
    ax.fill_between(xs, [y.low for y in ys], [y.high for y in ys], color=look.colour, alpha=opacity, linewidth=0)
