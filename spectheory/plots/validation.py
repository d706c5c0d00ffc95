"""Predicted against measured tokens per call and speed-ups, from the saved answers alone.

:func:`draw` shows every rule of each pair; :func:`draw_pairs` shows all pairs together, and where misses come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

from spectheory.plots.style import (
    COLOURS,
    GREY,
    PALETTE,
    Artist,
    Axes,
    Figure,
    LineEnd,
    name_ends,
    plain_axes,
    save_figure,
    titled,
)
from spectheory.reports.validation_terms import pair_name

MARKERS = {"o": "circle", "s": "square", "D": "diamond", "^": "triangle", "v": "triangle down"}
"""One per temperature, in ascending order."""
PAIRS = tuple(PALETTE.values())[:6]
"""One colour per pair, where pairs stand together; a seventh pair has that of the first."""
_COLOURS = {**COLOURS, "assisted": GREY, "assisted-filters": GREY, "topk": PALETTE["black"]}
_MARGIN, _FAINT = 0.05, 0.4

Content = Mapping[str, Any]
Markers = Mapping[float, str]
Dot = tuple[Content, str, Content, Content]
"""A setting's record, its marker, and two intervals: predicted, and counted or measured."""


def draw(figure: Figure, answers: Sequence[Content]) -> list[Artist]:
    """A row per pair: tokens per call, and speed-up, each rule by name."""
    grid = figure.subplots(len(answers), 2, squeeze=False)
    artists: list[Artist] = []
    markers = _markers(answers)
    for (left, right), answer in zip(grid, answers, strict=True):
        for ax, dots in ((left, list(_tokens_dots(answer, markers))), (right, list(_speedup_dots(answer, markers)))):
            artists += _scatter(ax, [(dot, _COLOURS.get(dot[0]["rule"], GREY)) for dot in dots])
            name_ends(ax, _rule_ends(dots))
        _tokens_axes(left)
        _speedup_axes(right)
        titled(left, pair_name(answer), 11)
        right.set_title(_key(markers), loc="left", fontsize=9, color=GREY)
    return artists


def draw_pairs(figure: Figure, answers: Sequence[Content]) -> list[Artist]:
    """All pairs together: tokens per call, speed-up, and the parts of the misses of the speed-ups."""
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1))
    coloured, markers = list(zip(answers, cycle(PAIRS), strict=False)), _markers(answers)
    artists = _scatter(left, [(dot, colour) for answer, colour in coloured for dot in _tokens_dots(answer, markers)])
    artists += _scatter(
        middle, [(dot, colour) for answer, colour in coloured for dot in _speedup_dots(answer, markers)]
    )
    _tokens_axes(left)
    _speedup_axes(middle)
    for number, (answer, colour) in enumerate(coloured):
        left.text(0.03, 0.97 - 0.065 * number, pair_name(answer), transform=left.transAxes, color=colour, va="top")
    middle.text(0.03, 0.97, _key(markers), transform=middle.transAxes, color=GREY, va="top", fontsize=8)
    return artists + _budgets(right, coloured)


def write_figure(answers: Sequence[Content], path: Path) -> list[Path]:
    """Write the figure of some answers, one row per pair; `path` is without suffix."""
    return save_figure(lambda figure: draw(figure, answers), (9.6, 4.2 * len(answers)), path)


def write_pairs_figure(answers: Sequence[Content], path: Path) -> list[Path]:
    """Write the figure of several pairs at a glance; `path` is without suffix."""
    return save_figure(lambda figure: draw_pairs(figure, answers), (13.0, 4.4), path)


# What is drawn


def _tokens_dots(answer: Content, markers: Markers) -> Iterator[Dot]:
    """Counted tokens per call against those predicted from the trace, with 95% intervals over prompts."""
    for record, marker in _records(answer, markers):
        if record["trace"]:
            yield record, marker, record["trace"]["tokens_per_call"], record["tokens_per_call"]


def _speedup_dots(answer: Content, markers: Markers) -> Iterator[Dot]:
    """Measured speed-up against that predicted from trace and latencies, for our own decoders."""
    for record, marker in _records(answer, markers):
        if record["speedup"]["predicted"] and not record["judged"]:
            yield record, marker, record["speedup"]["predicted"], record["speedup"]["measured"]


def _records(answer: Content, markers: Markers) -> Iterator[tuple[Content, str]]:
    for found in answer["temperatures"]:
        for record in found["settings"]:
            yield record, markers[found["temperature"]]


def _markers(answers: Sequence[Content]) -> Markers:
    """One for each temperature of any pair; beyond five they are used again."""
    temperatures = sorted({found["temperature"] for answer in answers for found in answer["temperatures"]})
    return dict(zip(temperatures, cycle(MARKERS), strict=False))


def _budgets(ax: Axes, coloured: Sequence[tuple[Content, str]]) -> list[Artist]:
    """The parts of every setting's miss as dots, their medians as bars; one row per part, pairs below each other."""
    misses = [
        [r["speedup"] for found in answer["temperatures"] for r in found["settings"] if "budget" in r["speedup"]]
        for answer, _ in coloured
    ]
    names = next(([*of_pair[0]["budget"], "in all"] for of_pair in misses if of_pair), [])
    artists: list[Artist] = []
    for number, (of_pair, (_, colour)) in enumerate(zip(misses, coloured, strict=True)):
        for row, name in enumerate(names if of_pair else ()):
            values = [float(({**one["budget"], "in all": one["miss"]})[name]["best"]) for one in of_pair]
            height = row + 0.7 * ((number + 0.5) / len(coloured) - 0.5)
            artists += ax.plot(values, [height] * len(values), "o", color=(colour, 0.25), ms=3, mew=0)
            artists += ax.plot([median(values)], [height], "|", color=colour, ms=11, mew=2)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.axvline(0, color=GREY, linewidth=1, linestyle=":", zorder=0)
    ax.set_xlabel("part of 100 log(measured / predicted speed-up), %")
    titled(ax, "where the misses come from (bar: median)")
    plain_axes(ax)
    return artists


def _scatter(ax: Axes, dots: Sequence[tuple[Dot, str]]) -> list[Artist]:
    """Dots in their colours with both intervals, and the diagonal."""
    artists: list[Artist] = []
    for (_, marker, x, y), colour in dots:
        artists += ax.errorbar(
            [x["best"]],
            [y["best"]],
            xerr=_arms(x),
            yerr=_arms(y),
            fmt=marker,
            color=colour,
            markersize=4,
            elinewidth=0.8,
            ecolor=(colour, _FAINT),
        ).get_children()
    plain_axes(ax)
    if not dots:
        return artists
    low = min(one["low"] for (_, _, *both), _ in dots for one in both)
    high = max(one["high"] for (_, _, *both), _ in dots for one in both)
    margin = _MARGIN * (high - low) or _MARGIN  # all dots may be the same
    low, high = low - margin, high + margin
    artists += ax.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle=":", zorder=0)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    return artists


def _rule_ends(dots: Sequence[Dot]) -> list[LineEnd]:
    """Where each rule is named: at its dot farthest to the right."""
    ends: dict[str, LineEnd] = {}
    for record, _, x, y in dots:
        if record["rule"] not in ends or x["best"] > ends[record["rule"]][0]:
            ends[record["rule"]] = (x["best"], y["best"], record["name"], _COLOURS.get(record["rule"], GREY))
    return list(ends.values())


def _tokens_axes(ax: Axes) -> None:
    ax.set_xlabel("tokens per call, predicted from the trace")
    ax.set_ylabel("tokens per call, counted")


def _speedup_axes(ax: Axes) -> None:
    ax.set_xlabel("speed-up, predicted from trace and latencies")
    ax.set_ylabel("speed-up, wall-clock")


def _key(markers: Markers) -> str:
    """Which marker is which temperature."""
    return "temperature: " + ", ".join(f"{MARKERS[marker]} {at:g}" for at, marker in markers.items())


def _arms(interval: Content) -> list[list[float]]:
    """Lengths of an interval's arms."""
    return [[interval["best"] - interval["low"]], [interval["high"] - interval["best"]]]
