"""Predicted tokens of the best drafter who does not sample, and their bounds: random pmfs, a real target."""

from __future__ import annotations

import math
from typing import Any

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
    name_ends,
    note,
    titled,
)

Data = dict[str, Any]

BOUNDS = (("B2", "B2", YELLOW), ("B2'", "B2′", ORANGE), ("B3'", "B3′", GREEN))
"""Upper bounds of a family from above: key, name, colour."""


def draw(figure: Figure, data: Data) -> None:
    """Six families as small multiples, and the built-in target beside them."""
    grid = figure.add_gridspec(2, 4, width_ratios=[1, 1, 1, 1.45])
    for number, family in enumerate(data["families"]):
        ax = figure.add_subplot(grid[number // 3, number % 3])
        _family(ax, family)
        if number >= 3:
            ax.set_xlabel("draft nodes per call, P", fontsize=8.5)
        if number % 3 == 0:
            ax.set_ylabel("predicted tokens per call, E[X]", fontsize=8.5)
    _target(figure.add_subplot(grid[:, 3]), data["target"])
    caption(
        figure,
        "dots: best trees, bonus token left out, 95% intervals;  B2, B2′, B3′: upper bounds for i.i.d. pmfs;  "
        "B1: leading term alone, no bound at P = 1;  B6: upper bound, estimated from text",
    )


def _family(ax: Axes, panel: Data) -> None:
    """One family: all bounds hold."""
    _frame(ax, panel, 1.3 * panel["B2"][-1], panel["capacities"][::2])
    for key, _, colour in BOUNDS:
        ax.plot(panel["capacities"], panel[key], color=colour, linewidth=1.5)
    dots(ax, panel["capacities"], panel["observed"], BLUE, size=3.5, clip=False)
    _leading(ax, panel)
    titled(ax, f"{panel['name']}\nμ = {panel['mu']:.2f} nats", 8.5)
    right = panel["capacities"][-1]
    ends = [(right, panel[key][-1], name, colour) for key, name, colour in BOUNDS]
    name_ends(ax, [*ends, (right, panel["observed"][-1]["best"], "E[X]", BLUE)])


def _target(ax: Axes, panel: Data) -> None:
    """The built-in target: B6 alone is a bound there, estimated from text."""
    _frame(ax, panel, 1.15 * panel["B2"][-1], panel["capacities"])
    capacities, text = panel["capacities"], panel["B6"]
    ax.plot(capacities, panel["B2'"], color=GREY, linewidth=1.2, linestyle="-.")
    low, high = ([each[end] for each in text] for end in ("low", "high"))
    ax.fill_between(capacities, low, high, color=PINK, alpha=0.25, linewidth=0)
    ax.plot(capacities, [each["best"] for each in text], color=PINK, linewidth=1.5)
    dots(ax, panel["capacities"], panel["observed"], BLUE, size=5, clip=False)
    _leading(ax, panel)
    titled(
        ax,
        "built-in target, its own pmfs after its own text\n"
        f"μ = {panel['mu']:.2f} nats, {panel['trials']:,} starts; 95% intervals",
        8.5,
    )
    ax.set_xlabel("draft nodes per call, P", fontsize=8.5)
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
    ax.tick_params(labelsize=8)


def _leading(ax: Axes, panel: Data) -> None:
    """B1's leading term until it leaves the panel, and where it goes."""
    ax.plot(panel["capacities"], panel["B1"], color=GREY, linewidth=1.2, linestyle="--")
    top, right = ax.get_ylim()[1], panel["capacities"][-1]
    leaves = math.exp(top * math.log(right) / panel["B1"][-1])
    note(ax, f"B1, leading term:\n{panel['B1'][-1]:.1f} at P = {right:,}", (leaves, top), (3, -1), size=7.5, va="top")
