"""What figures share: colours that all kinds of colour vision distinguish, names at the ends of lines, files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.files import write_whole
from spectheory.verification import Rule
from spectheory.verification.registry import BUILT_IN

if TYPE_CHECKING:
    from matplotlib.artist import Artist as Artist
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Artist = Axes = Figure = Any  # for annotations alone: matplotlib is imported where a figure is made

PALETTE = {
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "pink": "#CC79A7",
    "yellow": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
}
"""Okabe and Ito's palette, by the names that rules give."""
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK = PALETTE.values()
GREY = "#555555"
"""For limits and formulas that are compared with."""

COLOURS = {rule.name: PALETTE[rule.colour] for rule in BUILT_IN if rule.colour}
"""The colour of each rule; rules share one that accept the same single draft, or that are hardly drawn together."""


def colours_of(rules: Sequence[Rule]) -> dict[str, str]:
    """The colours of rules that are drawn together, by name; a rule without one gets the next that none of them has."""
    given = {rule.name: PALETTE[rule.colour] for rule in rules if rule.colour in PALETTE}
    free = cycle([colour for colour in PALETTE.values() if colour not in given.values()] or PALETTE.values())
    return given | {rule.name: next(free) for rule in rules if rule.name not in given}


LineEnd = tuple[float, float, str, str]
"""Where a line ends, its name and its colour."""


def plain_axes(ax: Axes) -> None:
    """Leave out the frame's top and right."""
    ax.spines[["top", "right"]].set_visible(False)


def titled(ax: Axes, text: str, size: float = 10) -> None:
    """Write a title on the left."""
    ax.set_title(text, loc="left", fontsize=size)


def note(
    ax: Axes,
    text: str,
    at: tuple[Any, Any],
    shift: tuple[float, float],
    colour: str = GREY,
    size: float = 8,
    **how: Any,
) -> None:
    """Write words beside a point, so many typographic points away."""
    ax.annotate(text, at, xytext=shift, textcoords="offset points", color=colour, fontsize=size, **how)


def caption(figure: Figure, text: str, size: float = 8.5) -> None:
    """Write what all panels share below them."""
    figure.supxlabel(text, fontsize=size, color=GREY)


def doubling(ax: Axes, ticks: Sequence[int], form: str = "") -> None:
    """A logarithmic axis of numbers, with a tick at each of some."""
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [f"{number:{form}}" for number in ticks])
    ax.minorticks_off()


def name_ends(ax: Axes, labels: Sequence[LineEnd], *, size: float = 8) -> None:
    """Write each line's name to the right of the axes, with a leader to its end, moved apart so that no two overlap.

    Call it when limits and scales are set; names are placed in the axes' own coordinates, on any scale. Constrained
    layout makes room for them.
    """
    plain_axes(ax)
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]  # lays out, so that heights are known
    to_axes = ax.transData + ax.transAxes.inverted()
    ends = sorted(
        (float(to_axes.transform((x, y))[1]), float(to_axes.transform((x, y))[0]), t, c) for x, y, t, c in labels
    )
    box = ax.get_window_extent()
    gap = 1.35 * size * ax.figure.dpi / 72 / max(box.height, 1.0)
    heights: list[float] = []
    for y, *_ in ends:
        heights.append(max(y, heights[-1] + gap) if heights else y)
    if heights and heights[-1] > 1.0:  # as many as do not fit move down together
        heights[-1] = 1.0
        for i in range(len(heights) - 2, -1, -1):
            heights[i] = min(heights[i], heights[i + 1] - gap)
    for (y, x, text, colour), height in zip(ends, heights, strict=True):
        ax.plot(
            [x, 1.01, 1.05],
            [y, height, height],
            color=colour,
            linewidth=0.7,
            clip_on=False,
            transform=ax.transAxes,
            scalex=False,
            scaley=False,
        )
        ax.annotate(
            text,
            (1.05, height),
            xycoords="axes fraction",
            xytext=(2, 0),
            textcoords="offset points",
            color=colour,
            fontsize=size,
            va="center",
            annotation_clip=False,
        )


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure that makes room for what is written next to its axes."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def whole_ticks() -> Any:
    """Ticks of an axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)


def save_figure(draw: Callable[[Figure], Any], size: tuple[float, float], path: Path) -> list[Path]:
    """Draw a figure and write it as PNG and SVG, each whole or not at all; `path` is without suffix.

    The same data give the same files: no date, no random ids.
    """
    from matplotlib import rc_context

    figure = new_figure(size)
    written = []
    with rc_context({"svg.hashsalt": "spectheory"}):
        draw(figure)
        for suffix in ("png", "svg"):
            file = path.with_suffix(f".{suffix}")
            metadata = {"Date": None} if suffix == "svg" else None
            write_whole(file, partial(figure.savefig, format=suffix, dpi=160, metadata=metadata))
            written.append(file)
    return written
