"""Time of a race: against the vocabulary, and against the largest p/q."""

from __future__ import annotations

import math
from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREEN, ORANGE, PINK, Axes, Figure, LineEnd, caption, name_ends, note, titled

NAMES = {
    "numpy": ("dense, numpy", ORANGE),
    "dense": ("dense", BLUE),
    "lazy": ("lazy", GREEN),
    "poisson": ("in draft order", PINK),
}
"""What a line is called, and its colour."""

FAR, GAP = 12.0, 1.5
"""Exponents beyond the first are drawn together, the second behind it."""

Points = list[tuple[float, dict[str, float]]]


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Sizes left, ratios right, on one scale of time."""
    left, right = figure.subplots(1, 2, sharey=True)
    left.set_yscale("log")
    left.set_ylabel("CPU seconds per race")
    labels = _sizes(left, data), _ratios(right, data)
    for ax, names in zip((left, right), labels, strict=True):  # when both have their say on the common scale
        name_ends(ax, names)
    caption(
        figure,
        "Measured on one machine, one thread: read the ratios, not the seconds.  "
        f"Ranks told apart up to {data['max_rank']}.  Dots: means, bars: 95% intervals.",
    )


def _sizes(ax: Axes, data: dict[str, Any]) -> list[LineEnd]:
    labels: list[LineEnd] = []
    for kernel in ("numpy", "dense", "lazy"):
        rows = [row for row in data["size"] if row["kernel"] == kernel]
        labels.append(_line(ax, [(row["vocabulary"], row["race"]) for row in rows], *NAMES[kernel]))
        if kernel == "lazy":
            name = "lazy, tables\nfor one race"
            labels.append(_line(ax, [(row["vocabulary"], row["call"]) for row in rows], name, NAMES[kernel][1], "--"))
    ax.set_xscale("log", base=2)
    ax.set_xlabel("tokens in the vocabulary, V")
    titled(ax, "A dense race costs V clocks, a lazy one hardly grows", 9.5)
    return labels


def _ratios(ax: Axes, data: dict[str, Any]) -> list[LineEnd]:
    labels: list[LineEnd] = []
    ticks: dict[float, str] = {}
    for kernel, (name, colour) in NAMES.items():
        rows = sorted((r for r in data["ratio"] if r["kernel"] == kernel), key=lambda row: row["largest_ratio"])
        points = [(_place(row["largest_ratio"]), row["race"]) for row in rows]
        ticks |= {place: _power(row["largest_ratio"]) for (place, _), row in zip(points, rows, strict=True)}
        near = [point for point in points if point[0] <= FAR]
        label = _line(ax, near, name, colour)
        if len(near) < len(points):
            label = _line(ax, points[-1:], name, colour)
            (x, y), (far, at) = near[-1], points[-1]
            ax.plot([x, far], [y["best"], at["best"]], ":", color=colour, linewidth=1.2)
        if kernel == "poisson":
            (x, value), text = points[-1], f"{name}:\nmax p/q arrivals"
            note(ax, text, (x, value["best"]), (8, -4), colour)
        else:
            labels.append(label)
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.set_xlabel("largest p/q  (the last one far beyond the scale)")
    titled(ax, f"V = {data['vocabulary']:,}: no p/q is too large for the lazy race", 9.5)
    return labels


def _line(ax: Axes, points: Points, name: str, colour: str, style: str = "-") -> LineEnd:
    """Dots with their intervals, joined; what they are called at their end."""
    x, seen = [at for at, _ in points], [value for _, value in points]
    ax.plot(x, [value["best"] for value in seen], style, color=colour, linewidth=1.2)
    dots(ax, x, seen, colour)
    return (x[-1], seen[-1]["best"], name, colour)


def _place(ratio: float) -> float:
    """Where a ratio is drawn: its exponent, if it is not far beyond the others."""
    exponent = math.log10(ratio)
    return exponent if exponent <= FAR else FAR + GAP


def _power(ratio: float) -> str:
    return f"$10^{{{round(math.log10(ratio))}}}$"
