"""Predicted against measured tokens per call and speed-ups, from the saved answers alone.

:func:`_draw` shows every rule of each pair; :func:`_draw_pairs` shows all pairs together, and where misses come from. A
marker's shape and colour say which rule or pair it is, its filling says the temperature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from spectheory.intervals import Interval
from spectheory.plots.chart import Chart, Dot, Series, scatter, series_in
from spectheory.plots.style import (
    DISTINCT,
    GREY,
    WIDTH,
    Artist,
    Axes,
    Figure,
    Look,
    drawable,
    key,
    looks_of,
    plain_axes,
    save_figure,
    titled,
)
from spectheory.reports.validation import pair_name
from spectheory.verification.registry import BUILT_IN

_FILLS = {"none": "open", "bottom": "half-filled", "full": "filled", "left": "left half", "right": "right half"}
"""One per temperature, in ascending order, and what the key calls it."""
_ASSISTED = {"assisted": Look(GREY, "*"), "assisted-filters": Look(GREY, "d")}
PAIRS_SIZE = (WIDTH, 7.4)

Content = Mapping[str, Any]
_Fills = Mapping[float, str]


def _draw(figure: Figure, answers: Sequence[Content]) -> list[Artist]:
    """A row per pair: tokens per call, and speed-up; a look for each rule."""
    grid = figure.subplots(len(answers), 2, squeeze=False)
    artists: list[Artist] = []
    fills, looks = _fills_of(answers), looks_in(answers)
    for (left, right), answer in zip(grid, answers, strict=True):
        artists += scatter(left, [tokens_chart(answer, looks)], fills)
        artists += scatter(right, [speedups_chart(answer, looks)], fills)
        titled(left, drawable(pair_name(answer)))
        right.set_title(_filling(fills), loc="left", fontsize=8.5, color=GREY)
    key(figure, ((rule, _shown(look)) for rule, look in looks.items()), 5)
    return artists


def _draw_pairs(figure: Figure, answers: Sequence[Content]) -> list[Artist]:
    """All pairs together: tokens per call, speed-up, and below them the parts of the misses of the speed-ups."""
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 1))
    left, right, below = (figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[1, :]))
    looked, fills = list(zip(answers, cycle(DISTINCT), strict=False)), _fills_of(answers)
    alike = [(answer, dict.fromkeys(looks_in([answer]), look)) for answer, look in looked]
    artists = scatter(left, [tokens_chart(*each) for each in alike], fills)
    artists += scatter(right, [speedups_chart(*each) for each in alike], fills)
    titled(left, "a  tokens per call")
    titled(right, "b  speed-up")
    right.text(0.03, 0.97, _filling(fills), transform=right.transAxes, color=GREY, va="top", fontsize=8.5)
    key(figure, ((drawable(pair_name(answer)), _shown(look)) for answer, look in looked), 3)
    return artists + _budgets(below, looked)


def tokens_chart(answer: Content, looks: Mapping[str, Look]) -> Chart:
    """Counted tokens per call against those predicted from the trace, with 95% intervals over prompts."""
    return Chart(
        "tokens",
        "Tokens per call: counted, and predicted from other texts",
        "tokens per call, predicted from the trace",
        "tokens per call, counted",
        *_compared(
            looks,
            (
                (record, temperature, record["trace"]["tokens_per_call"], record["tokens_per_call"])
                for record, temperature in records(answer)
                if record["trace"]
            ),
        ),
        words="On the line both are equal. Intervals (95%) are over prompts. Click a rule in the legend to see it "
        "alone.",
        assumes=(
            "Predicted from the trace of other texts of the same prompts; at temperature 0 these are the same texts.",
        ),
    )


def speedups_chart(answer: Content, looks: Mapping[str, Look]) -> Chart:
    """Measured speed-up against that predicted from trace and latencies, for our own decoders."""
    return Chart(
        "speedups",
        "Speed-up: measured, and predicted",
        "speed-up, predicted from trace and latencies",
        "speed-up, wall-clock",
        *_compared(
            looks,
            (
                (record, temperature, record["speedup"]["predicted"], record["speedup"]["measured"])
                for record, temperature in records(answer)
                if record["speedup"]["predicted"] and not record["judged"]
            ),
        ),
        words="On the line both are equal. Intervals (95%) are over prompts and latencies.",
        assumes=(
            "Predicted from a trace of other texts and from latencies; measured is wall-clock over plain decoding by "
            "our own loops. The parts of the difference stand in the table.",
        ),
    )


def records(answer: Content) -> Iterator[tuple[Content, float]]:
    """Every setting of an answer with its temperature."""
    for at in answer["temperatures"]:
        yield from ((record, at["temperature"]) for record in at["settings"])


def _compared(
    looks: Mapping[str, Look], pairs: Iterable[tuple[Content, float, Content, Content]]
) -> tuple[tuple[Series, ...], tuple[Dot, ...]]:
    """A series for each rule, and a dot for each setting: what was predicted, and what came out."""
    dots = tuple(
        Dot(record["rule"], _interval(x), _interval(y), record["name"], temperature=temperature)
        for record, temperature, x, y in pairs
    )
    return series_in(looks, dots), dots


def _interval(saved: Content) -> Interval:
    return Interval(saved["low"], saved["best"], saved["high"], "statistical")


def size(pairs: int) -> tuple[float, float]:
    """Inches of the figure with a row per pair."""
    return WIDTH, 0.5 + 3.9 * pairs


def write_figure(answers: Sequence[Content], path: Path) -> list[Path]:
    """Write the figure of some answers, one row per pair; `path` is without suffix."""
    return save_figure(lambda figure: _draw(figure, answers), size(len(answers)), path)


def write_pairs_figure(answers: Sequence[Content], path: Path) -> list[Path]:
    """Write the figure of several pairs at a glance; `path` is without suffix."""
    return save_figure(lambda figure: _draw_pairs(figure, answers), PAIRS_SIZE, path)


def looks_in(answers: Sequence[Content]) -> dict[str, Look]:
    """How the rules of some answers are drawn, on pages too; assisted generation is grey."""
    names = (record["rule"] for answer in answers for each in answer["temperatures"] for record in each["settings"])
    rules, known = list(dict.fromkeys(names)), {rule.name: rule for rule in BUILT_IN}
    coloured: Any = [
        known.get(name) or SimpleNamespace(name=name, colour="") for name in rules if name not in _ASSISTED
    ]
    looks = looks_of(coloured) | _ASSISTED
    return {name: looks[name] for name in rules}


def _shown(look: Look) -> dict[str, Any]:
    """How the key shows it."""
    return {"color": look.colour, "marker": look.marker, "linestyle": "none", "markersize": 6}


def _fills_of(answers: Sequence[Content]) -> _Fills:
    """One for each temperature of any pair, filled where there is one; beyond five they are used again."""
    temperatures = sorted({at["temperature"] for answer in answers for at in answer["temperatures"]})
    return dict(zip(temperatures, cycle(_FILLS if len(temperatures) > 1 else ["full"]), strict=False))


def _budgets(ax: Axes, looked: Sequence[tuple[Content, Look]]) -> list[Artist]:
    """The parts of every setting's miss as dots, their medians as bars; one row per part, pairs below each other."""
    misses = [
        [r["speedup"] for at in answer["temperatures"] for r in at["settings"] if "budget" in r["speedup"]]
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


def _filling(fills: _Fills) -> str:
    """Which filling is which temperature."""
    if len(fills) == 1:
        return f"temperature {next(iter(fills)):g}"
    return "temperature: " + ", ".join(f"{_FILLS[fill]} {at:g}" for at, fill in fills.items())
