"""Predicted against measured tokens per call and speed-ups, from the saved answers alone.

:func:`draw` shows every rule of each pair; :func:`draw_pairs` shows all pairs together, and where misses come from. A
marker's shape and colour say which rule or pair it is, its filling says the temperature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from spectheory.plots.line_ends import key
from spectheory.plots.style import (
    GREY,
    MARKERS,
    PALETTE,
    WIDTH,
    Artist,
    Axes,
    Figure,
    Look,
    drawable,
    looks_of,
    plain_axes,
    save_figure,
    titled,
)
from spectheory.reports.validation_terms import pair_name
from spectheory.verification.registry import BUILT_IN

FILLS = {"none": "open", "bottom": "half-filled", "full": "filled", "left": "left half", "right": "right half"}
"""One per temperature, in ascending order, and what the key calls it."""
PAIRS = tuple(Look(colour, marker) for colour, marker in zip(PALETTE.values(), MARKERS, strict=False))
"""One look per pair, where pairs stand together; an eleventh pair has that of the first."""
_ASSISTED = {"assisted": Look(GREY, "*"), "assisted-filters": Look(GREY, "d")}
PAIRS_SIZE = (WIDTH, 7.4)
_MARGIN, _FAINT = 0.05, 0.4

Content = Mapping[str, Any]
Fills = Mapping[float, str]
Dot = tuple[Content, str, Content, Content]
"""A setting's record, its filling, and two intervals: predicted, and counted or measured."""


def draw(figure: Figure, answers: Sequence[Content]) -> list[Artist]:
    """A row per pair: tokens per call, and speed-up; a look for each rule."""
    grid = figure.subplots(len(answers), 2, squeeze=False)
    artists: list[Artist] = []
    fills, rules = fills_of(answers), looks_in(answers)
    for (left, right), answer in zip(grid, answers, strict=True):
        _tokens_axes(left)
        _speedup_axes(right)
        artists += _scatter(left, [(dot, rules[dot[0]["rule"]]) for dot in _tokens_dots(answer, fills)])
        artists += _scatter(right, [(dot, rules[dot[0]["rule"]]) for dot in _speedup_dots(answer, fills)])
        titled(left, drawable(pair_name(answer)))
        right.set_title(_filling(fills), loc="left", fontsize=8.5, color=GREY)
    key(figure, ((rule, _shown(look)) for rule, look in rules.items()), 5)
    return artists


def draw_pairs(figure: Figure, answers: Sequence[Content]) -> list[Artist]:
    """All pairs together: tokens per call, speed-up, and below them the parts of the misses of the speed-ups."""
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 1))
    left, right, below = (figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[1, :]))
    looked, fills = list(zip(answers, cycle(PAIRS), strict=False)), fills_of(answers)
    artists = _scatter(left, [(dot, look) for answer, look in looked for dot in _tokens_dots(answer, fills)])
    artists += _scatter(right, [(dot, look) for answer, look in looked for dot in _speedup_dots(answer, fills)])
    _tokens_axes(left)
    _speedup_axes(right)
    titled(left, "a  tokens per call")
    titled(right, "b  speed-up")
    right.text(0.03, 0.97, _filling(fills), transform=right.transAxes, color=GREY, va="top", fontsize=8.5)
    key(figure, ((drawable(pair_name(answer)), _shown(look)) for answer, look in looked), 3)
    return artists + _budgets(below, looked)


def size(pairs: int) -> tuple[float, float]:
    """Inches of the figure with a row per pair."""
    return WIDTH, 0.5 + 3.9 * pairs


def write_figure(answers: Sequence[Content], path: Path) -> list[Path]:
    """Write the figure of some answers, one row per pair; `path` is without suffix."""
    return save_figure(lambda figure: draw(figure, answers), size(len(answers)), path)


def write_pairs_figure(answers: Sequence[Content], path: Path) -> list[Path]:
    """Write the figure of several pairs at a glance; `path` is without suffix."""
    return save_figure(lambda figure: draw_pairs(figure, answers), PAIRS_SIZE, path)


def looks_in(answers: Sequence[Content]) -> dict[str, Look]:
    """How the rules of some answers are drawn, on pages too; assisted generation is grey."""
    found = (record["rule"] for answer in answers for each in answer["temperatures"] for record in each["settings"])
    rules, known = list(dict.fromkeys(found)), {rule.name: rule for rule in BUILT_IN}
    own: Any = [known.get(name) or SimpleNamespace(name=name, colour="") for name in rules if name not in _ASSISTED]
    looks = looks_of(own) | _ASSISTED
    return {name: looks[name] for name in rules}


def _shown(look: Look) -> dict[str, Any]:
    """How the key shows it."""
    return {"color": look.colour, "marker": look.marker, "linestyle": "none", "markersize": 6}


# What is drawn


def _tokens_dots(answer: Content, fills: Fills) -> Iterator[Dot]:
    """Counted tokens per call against those predicted from the trace, with 95% intervals over prompts."""
    for record, fill in _records(answer, fills):
        if record["trace"]:
            yield record, fill, record["trace"]["tokens_per_call"], record["tokens_per_call"]


def _speedup_dots(answer: Content, fills: Fills) -> Iterator[Dot]:
    """Measured speed-up against that predicted from trace and latencies, for our own decoders."""
    for record, fill in _records(answer, fills):
        if record["speedup"]["predicted"] and not record["judged"]:
            yield record, fill, record["speedup"]["predicted"], record["speedup"]["measured"]


def _records(answer: Content, fills: Fills) -> Iterator[tuple[Content, str]]:
    for found in answer["temperatures"]:
        for record in found["settings"]:
            yield record, fills[found["temperature"]]


def fills_of(answers: Sequence[Content]) -> Fills:
    """One for each temperature of any pair; beyond five they are used again."""
    temperatures = sorted({found["temperature"] for answer in answers for found in answer["temperatures"]})
    return dict(zip(temperatures, cycle(FILLS), strict=False))


def _budgets(ax: Axes, looked: Sequence[tuple[Content, Look]]) -> list[Artist]:
    """The parts of every setting's miss as dots, their medians as bars; one row per part, pairs below each other."""
    misses = [
        [r["speedup"] for found in answer["temperatures"] for r in found["settings"] if "budget" in r["speedup"]]
        for answer, _ in looked
    ]
    names = next(([*of_pair[0]["budget"], "in all"] for of_pair in misses if of_pair), [])
    artists: list[Artist] = []
    for number, (of_pair, (_, look)) in enumerate(zip(misses, looked, strict=True)):
        for row, name in enumerate(names if of_pair else ()):
            values = [float(({**one["budget"], "in all": one["miss"]})[name]["best"]) for one in of_pair]
            height = row + 0.7 * ((number + 0.5) / len(looked) - 0.5)
            artists += ax.plot(values, [height] * len(values), look.marker, color=(look.colour, 0.3), ms=4, mew=0)
            artists += ax.plot([median(values)], [height], "|", color=look.colour, ms=12, mew=2.5)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.axvline(0, color=GREY, linewidth=1, linestyle=":", zorder=0)
    ax.set_xlabel("part of the miss, 100 log(measured / predicted speed-up), %")
    titled(ax, "c  where the misses of the speed-up come from; bars: medians")
    plain_axes(ax)
    return artists


def _scatter(ax: Axes, dots: Sequence[tuple[Dot, Look]]) -> list[Artist]:
    """Dots as they look with both intervals, and the diagonal."""
    artists: list[Artist] = []
    for (_, fill, x, y), (colour, marker) in dots:
        artists += ax.errorbar(
            [x["best"]],
            [y["best"]],
            xerr=_arms(x),
            yerr=_arms(y),
            fmt=marker,
            color=colour,
            markersize=5,
            fillstyle=fill,
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


def _tokens_axes(ax: Axes) -> None:
    ax.set_xlabel("tokens per call, predicted from the trace")
    ax.set_ylabel("tokens per call, counted")


def _speedup_axes(ax: Axes) -> None:
    ax.set_xlabel("speed-up, predicted from trace and latencies")
    ax.set_ylabel("speed-up, wall-clock")


def _filling(fills: Fills) -> str:
    """Which filling is which temperature."""
    return "temperature: " + ", ".join(f"{FILLS[fill]} {at:g}" for at, fill in fills.items())


def _arms(interval: Content) -> list[list[float]]:
    """Lengths of an interval's arms."""
    return [[interval["best"] - interval["low"]], [interval["high"] - interval["best"]]]
