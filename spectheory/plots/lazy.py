"""Time of a race: against the vocabulary, and against the largest p/q."""

from __future__ import annotations

import math
from typing import Any

from spectheory.plots.line_ends import LineEnd, name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREEN, ORANGE, PINK, Axes, Figure, Look, caption, note, titled

NAMES = {
    "numpy": ("dense, numpy", Look(ORANGE, "s")),
    "dense": ("dense", Look(BLUE, "o")),
    "lazy": ("lazy", Look(GREEN, "^")),
    "poisson": ("in draft order", Look(PINK, "D")),
}
"""What a line is called, and its look."""

FAR, GAP = 12.0, 1.5
"""Exponents beyond the first are drawn together, the second behind it."""

Points = list[tuple[float, dict[str, float]]]


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Sizes left, ratios right, on one scale of time."""
    left, right = figure.subplots(1, 2, sharey=True)
    left.set_yscale("log")
    left.set_ylabel("CPU seconds per race")
    labels = draw_sizes(left, data), draw_ratios(right, data)
    for ax, names in zip((left, right), labels, strict=True):  # when both have their say on the common scale
        name_ends(ax, names)
    caption(
        figure,
        "Measured on one machine, one thread: read the ratios, not the seconds.\n"
        f"Ranks told apart up to {data['max_rank']}.  Markers: means, bars: 95% intervals.",
    )


def draw_sizes(ax: Axes, data: dict[str, Any]) -> list[LineEnd]:
    """Times against the vocabulary; the names and ends of the lines."""
    labels: list[LineEnd] = []
    for kernel in ("numpy", "dense", "lazy"):
        rows = [row for row in data["size"] if row["kernel"] == kernel]
        labels.append(_line(ax, [(row["vocabulary"], row["race"]) for row in rows], *NAMES[kernel]))
        if kernel == "lazy":
            name = "lazy, tables\nfor one race"
            labels.append(_line(ax, [(row["vocabulary"], row["call"]) for row in rows], name, NAMES[kernel][1], "--"))
    ax.set_xscale("log", base=2)
    ax.set_xlabel("tokens in the vocabulary, V")
    titled(ax, "Time of a race against the vocabulary")
    return labels


def draw_ratios(ax: Axes, data: dict[str, Any]) -> list[LineEnd]:
    """Times against the largest p/q; the names and ends of the lines."""
    labels: list[LineEnd] = []
    ticks: dict[float, str] = {}
    for kernel, (name, look) in NAMES.items():
        rows = sorted((r for r in data["ratio"] if r["kernel"] == kernel), key=lambda row: row["largest_ratio"])
        points = [(_place(row["largest_ratio"]), row["race"]) for row in rows]
        ticks |= {place: _power(row["largest_ratio"]) for (place, _), row in zip(points, rows, strict=True)}
        near = [point for point in points if point[0] <= FAR]
        label = _line(ax, near, name, look)
        if len(near) < len(points):
            label = _line(ax, points[-1:], name, look)
            (x, y), (far, at) = near[-1], points[-1]
            ax.plot([x, far], [y["best"], at["best"]], ":", color=look.colour)
        if kernel == "poisson":
            (x, value), text = points[-1], f"{name}:\nmax p/q arrivals"
            note(ax, text, (x, value["best"]), (8, -4), look.colour)
        else:
            labels.append(label)
    ticks = dict(sorted(ticks.items()))
    ax.set_xticks(list(ticks), _legible(ticks))
    ax.set_xlabel("largest p/q (the last one is off the scale)")
    titled(ax, f"Time against the largest p/q, V = {data['vocabulary']:,}")
    return labels


def _line(ax: Axes, points: Points, name: str, look: Look, style: str = "-") -> LineEnd:
    """Dots with their intervals, joined; what they are called at their end."""
    x, seen = [at for at, _ in points], [value for _, value in points]
    ax.plot(x, [value["best"] for value in seen], style, color=look.colour)
    dots(ax, x, seen, look.colour, marker=look.marker)
    return (x[-1], seen[-1]["best"], name, look.colour)


def _place(ratio: float) -> float:
    """Where a ratio is drawn: its exponent, if it is not far beyond the others."""
    exponent = math.log10(ratio)
    return exponent if exponent <= FAR else FAR + GAP


def _legible(ticks: dict[float, str]) -> list[str]:
    """The names of ticks; one that would touch the name before it is left out."""
    named, before = [], -math.inf
    for place, name in ticks.items():
        named.append(name if place - before > GAP else "")
        before = place if named[-1] else before
    return named


def _power(ratio: float) -> str:
    return f"$10^{{{round(math.log10(ratio))}}}$"
