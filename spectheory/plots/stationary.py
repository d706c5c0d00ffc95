"""E[X] of best trees on stationary ergodic text, beside log P/h (B9)."""

from __future__ import annotations

import math
from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    Axes,
    Figure,
    caption,
    doubling,
    name_ends,
    titled,
)

Data = dict[str, Any]

COLOURS = (BLUE, GREEN, ORANGE)
TICKS = [1, 16, 256, 4096, 65536]


def draw(figure: Figure, data: Data) -> None:
    """Left: as a multiple of log P/h. Right: on a logarithmic axis."""
    left, right = figure.subplots(1, 2)
    _ratios(left, data)
    _tokens(right, data)
    caption(
        figure,
        f"lines: exact, best trees;  dots: simulated, {data['trials']:,} random starts each, 95% intervals;  "
        "blocks: 2ʲ certain tokens after a code of j tokens",
    )


def _ratios(ax: Axes, data: Data) -> None:
    doubling(ax, TICKS, ",")
    line, ends = data["line"], []
    ax.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    for name, part, colour in _parts(data):
        values = [value * part["h"] / math.log(nodes) for nodes, value in zip(line, part["value"], strict=True)]
        shown = [(nodes, value) for nodes, value in zip(line, values, strict=True) if value <= 1.7 and nodes > 2]
        ax.plot(*zip(*shown, strict=True), color=colour, linewidth=1.5)
        if len(shown) < len(line) - 1:  # leaves the panel
            ax.annotate(name, shown[-1], xytext=(4, 2), textcoords="offset points", color=colour, fontsize=8)
        else:
            ends.append((*shown[-1], name, colour))
    ax.set_xlim(2, line[-1])
    ax.set_ylim(0, 1.7)
    ax.set_xlabel("draft nodes per call, P")
    ax.set_ylabel("E[X] as a multiple of log P/h")
    titled(ax, "The limit is 1 where stretches are short")
    name_ends(ax, ends)


def _tokens(ax: Axes, data: Data) -> None:
    doubling(ax, TICKS, ",")
    ax.set_yscale("log", base=2)
    ax.set_yticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"])
    ax.minorticks_off()
    line, ends = data["line"], []
    for name, part, colour in _parts(data):
        ax.plot(line, part["value"], color=colour, linewidth=1.5)
        ends.append((line[-1], part["value"][-1], name, colour))
    for part, colour in zip(data["stretches"], COLOURS, strict=True):
        dots(ax, data["capacities"], part["seen"], colour, size=4, clip=False)
    ax.set_xlim(1, line[-1])
    ax.set_xlabel("draft nodes per call, P")
    ax.set_ylabel("predicted tokens per call, E[X]")
    titled(ax, "Long stretches: a power of P")
    name_ends(ax, ends)


def _parts(data: Data) -> list[tuple[str, dict[str, Any], str]]:
    stretches = zip(data["stretches"], COLOURS, strict=True)
    return [
        ("Markov chain", data["markov"], BLACK),
        *((f"blocks, r = {part['r']:g}", part, c) for part, c in stretches),
    ]
