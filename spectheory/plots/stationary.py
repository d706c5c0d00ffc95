"""E[X] of best trees on stationary ergodic text, beside log P/h (B9)."""

from __future__ import annotations

import math
from typing import Any

from spectheory.plots.line_ends import name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, Axes, Figure, Look, caption, doubling, titled

Data = dict[str, Any]

LOOKS = (Look(BLUE, "o"), Look(GREEN, "s"), Look(ORANGE, "D"))
"""One for each law of blocks."""
TICKS = [1, 16, 256, 4096, 65536]


def draw(figure: Figure, data: Data) -> None:
    """Left: as a multiple of log P/h. Right: on a logarithmic axis."""
    left, right = figure.subplots(1, 2)
    draw_ratios(left, data)
    draw_tokens(right, data)
    caption(
        figure,
        f"lines: exact, best trees;  dots: simulated, {data['trials']:,} random starts each, 95% intervals;\n"
        "blocks: 2ʲ certain tokens after a code of j tokens",
    )


def draw_ratios(ax: Axes, data: Data) -> None:
    """E[X] as a multiple of log P/h."""
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
    ax.set_xlabel("draft nodes per call, P = k")
    ax.set_ylabel("E[X] as a multiple of log P/h")
    titled(ax, "Multiple of log P/h: 1 in the limit if stretches are short")
    name_ends(ax, ends)


def draw_tokens(ax: Axes, data: Data) -> None:
    """E[X] on logarithmic axes."""
    doubling(ax, TICKS, ",")
    ax.set_yscale("log", base=2)
    ax.set_yticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"])
    ax.minorticks_off()
    line, ends = data["line"], []
    for name, part, colour in _parts(data):
        ax.plot(line, part["value"], color=colour, linewidth=1.5)
        ends.append((line[-1], part["value"][-1], name, colour))
    for part, look in zip(data["stretches"], LOOKS, strict=True):
        dots(ax, data["capacities"], part["seen"], look.colour, marker=look.marker, clip=False)
    ax.set_xlim(1, line[-1])
    ax.set_xlabel("draft nodes per call, P = k")
    ax.set_ylabel("predicted tokens per call, E[X]")
    titled(ax, "Tokens: with long stretches a power of P")
    name_ends(ax, ends)


def _parts(data: Data) -> list[tuple[str, dict[str, Any], str]]:
    stretches = zip(data["stretches"], LOOKS, strict=True)
    return [
        ("Markov chain", data["markov"], BLACK),
        *((f"blocks, r = {part['r']:g}", part, look.colour) for part, look in stretches),
    ]
