"""Predicted against measured: tokens per call and speed-up on the diagonal or off it; from the saved answer alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.plots.style import COLOURS, GREY, PINK, Label, name_ends, save_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^v"
"""One per temperature, in the order asked for."""
_COLOURS = {**COLOURS, "assisted": GREY, "topk": PINK}
_MARGIN, _FAINT = 0.05, 0.4

Content = Mapping[str, Any]


def tokens_per_call(ax: Axes, answer: Content) -> list[Artist]:
    """Counted tokens per call against those predicted from the trace, with 95% intervals over prompts."""
    points = [
        (record, marker, record["trace"]["tokens_per_call"], record["tokens_per_call"])
        for record, marker in _records(answer)
        if record["trace"]
    ]
    artists = _scatter(ax, points)
    ax.set_xlabel("tokens per call, predicted from the trace")
    ax.set_ylabel("tokens per call, counted")
    return artists


def speedup(ax: Axes, answer: Content) -> list[Artist]:
    """Measured speed-up against that predicted from trace and latencies, for our own decoders."""
    points = [
        (record, marker, record["speedup"]["predicted"], record["speedup"]["measured"])
        for record, marker in _records(answer)
        if record["speedup"]["predicted"] and not record["judged"]
    ]
    artists = _scatter(ax, points)
    ax.set_xlabel("speed-up, predicted from trace and latencies")
    ax.set_ylabel("speed-up, wall-clock")
    return artists


def draw(figure: Figure, answers: Sequence[Content]) -> list[Artist]:
    """A row per pair: tokens per call, and speed-up."""
    grid = figure.subplots(len(answers), 2, squeeze=False)
    artists: list[Artist] = []
    for (left, right), answer in zip(grid, answers, strict=True):
        models = answer["provenance"]
        artists += tokens_per_call(left, answer)
        artists += speedup(right, answer)
        left.set_title(f"{models['target']['name']} with {models['draft']['name']}", loc="left", fontsize=11)
        right.set_title(_key(answer), loc="left", fontsize=9, color=GREY)
    return artists


def write_figure(answers: Sequence[Content], path: Path) -> list[Path]:
    """Write the figure of some answers, one per pair, as PNG and SVG; `path` is without suffix.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    OutputError
        If the folder cannot be written.
    """
    return save_figure(lambda figure: draw(figure, answers), (9.6, 4.2 * len(answers)), path)


def _records(answer: Content) -> Iterator[tuple[Content, str]]:
    for number, found in enumerate(answer["temperatures"]):
        for record in found["settings"]:
            yield record, MARKERS[number % len(MARKERS)]


def _key(answer: Content) -> str:
    """Which marker is which temperature."""
    names = {"o": "circle", "s": "square", "D": "diamond", "^": "triangle", "v": "triangle down"}
    temperatures = [f"{found['temperature']:g}" for found in answer["temperatures"]]
    shown = ", ".join(f"{names[MARKERS[i % len(MARKERS)]]} {at}" for i, at in enumerate(temperatures))
    return f"temperature: {shown}"


def _scatter(ax: Axes, points: Sequence[tuple[Content, str, Content, Content]]) -> list[Artist]:
    """Dots with both intervals, the diagonal, and each rule's name at its last dot."""
    artists: list[Artist] = []
    ends: dict[str, Label] = {}
    for record, marker, x, y in points:
        colour = _COLOURS.get(record["rule"], GREY)
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
        if record["rule"] not in ends or x["best"] > ends[record["rule"]][0]:
            ends[record["rule"]] = (x["best"], y["best"], record["name"], colour)
    if not points:
        return artists
    low = min(one["low"] for _, _, *both in points for one in both)
    high = max(one["high"] for _, _, *both in points for one in both)
    low, high = low - _MARGIN * (high - low), high + _MARGIN * (high - low)
    artists += ax.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle=":", zorder=0)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    name_ends(ax, list(ends.values()))
    return artists


def _arms(interval: Content) -> list[list[float]]:
    """Lengths of an interval's arms."""
    return [[interval["best"] - interval["low"]], [interval["high"] - interval["best"]]]
