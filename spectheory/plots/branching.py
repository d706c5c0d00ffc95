"""Predicted tokens of the best drafter who does not sample, and their bounds: random pmfs, a real target."""

from __future__ import annotations

import math
from typing import Any

from spectheory.plots.line_ends import name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    YELLOW,
    Axes,
    Figure,
    caption,
    doubling,
    note,
    titled,
)

Data = dict[str, Any]

BOUNDS = (("B2", "B2", YELLOW), ("B2'", "B2′", ORANGE), ("B3'", "B3′", GREEN))
"""Upper bounds of a family from above: key, name, colour."""


def draw(figure: Figure, data: Data) -> None:
    """Six families as small multiples, and the built-in target beside them."""
    grid = figure.add_gridspec(3, 3, width_ratios=[1, 1, 1.3])
    for number, family in enumerate(data["families"]):
        ax = figure.add_subplot(grid[number // 2, number % 2])
        draw_family(ax, family)
        if number >= 4:
            ax.set_xlabel("draft nodes per call, P = k")
        if number % 2 == 0:
            ax.set_ylabel("tokens per call, E[X]")
    draw_target(figure.add_subplot(grid[:, 2]), data["target"])
    caption(
        figure,
        "E[X]: predicted tokens per call of best trees, bonus token left out; dots: simulated, 95% intervals\n"
        "B2, B2′, B3′: upper bounds for i.i.d. pmfs;  B1: leading term, no bound at P = 1;  "
        "B6: upper bound, estimated from text",
    )


def draw_family(ax: Axes, panel: Data) -> None:
    """One family: all bounds hold."""
    _frame(ax, panel, 1.3 * panel["B2"][-1], panel["capacities"][::2])
    for key, _, colour in BOUNDS:
        ax.plot(panel["capacities"], panel[key], color=colour, linewidth=1.4)
    dots(ax, panel["capacities"], panel["observed"], BLUE, size=3.5, clip=False)
    _leading(ax, panel)
    titled(ax, f"{panel['name']}\nμ = {panel['mu']:.2f} nats")
    right = panel["capacities"][-1]
    ends = [(right, panel[key][-1], name, colour) for key, name, colour in BOUNDS]
    name_ends(ax, [*ends, (right, panel["observed"][-1]["best"], "E[X]", BLUE)])


def draw_target(ax: Axes, panel: Data) -> None:
    """The built-in target: B6 alone is a bound there, estimated from text."""
    _frame(ax, panel, 1.15 * panel["B2"][-1], panel["capacities"])
    capacities, text = panel["capacities"], panel["B6"]
    ax.plot(capacities, panel["B2'"], color=GREY, linewidth=1.2, linestyle="-.")
    low, high = ([each[end] for each in text] for end in ("low", "high"))
    ax.fill_between(capacities, low, high, color=PINK, alpha=0.25, linewidth=0)
    ax.plot(capacities, [each["best"] for each in text], color=PINK, linewidth=1.4)
    dots(ax, panel["capacities"], panel["observed"], BLUE, size=5, clip=False)
    _leading(ax, panel)
    titled(
        ax,
        f"built-in target, after its own text,\nμ = {panel['mu']:.2f} nats, {panel['trials']:,} starts",
    )
    ax.set_xlabel("draft nodes per call, P = k")
    right = capacities[-1]
    name_ends(
        ax,
        [
            (right, panel["B2'"][-1], "B2′: as if i.i.d.,\nno limit here", GREY),
            (right, text[-1]["best"], "B6, the limit", PINK),
            (right, panel["observed"][-1]["best"], "E[X]", BLUE),
        ],
    )


def _frame(ax: Axes, panel: Data, top: float, ticks: list[int]) -> None:
    """Scales and limits, before anything is placed by them."""
    doubling(ax, ticks, ",")
    ax.set_xlim(1, panel["capacities"][-1])
    ax.set_ylim(0, top)


def _leading(ax: Axes, panel: Data) -> None:
    """B1's leading term until it leaves the panel, and where it goes."""
    ax.plot(panel["capacities"], panel["B1"], color=GREY, linewidth=1.2, linestyle="--")
    top, right = ax.get_ylim()[1], panel["capacities"][-1]
    leaves = math.exp(top * math.log(right) / panel["B1"][-1])
    note(ax, f"B1, leading term:\n{panel['B1'][-1]:.1f} at P = {right:,}", (leaves, top), (3, -1), va="top")
