"""What figures share: colours that all kinds of colour vision distinguish, names at the ends of lines, files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.errors import load_extra
from spectheory.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, GREY = (
    "#000000",
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#555555",
)
"""Okabe and Ito's palette; grey is for limits and formulas that are compared with."""

COLOURS = {
    "token": BLUE,
    "block": ORANGE,
    "race": GREEN,
    "independent": PINK,
    "argmax": YELLOW,
    "greedy": SKY,
    "recursive": BLUE,
    "recursive-distinct": SKY,
    "topk": YELLOW,
    "poisson": PINK,
    "lookup": PINK,
}
"""One colour per rule; rules share one that accept the same single draft, or that are hardly drawn together."""

LineEnd = tuple[float, float, str, str]
"""Where a line ends, its name and its colour."""


def plain_axes(ax: Axes) -> None:
    """Leave out the frame's top and right."""
    ax.spines[["top", "right"]].set_visible(False)


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
    return load_extra("matplotlib.figure", extra="plots").Figure(figsize=size, layout="constrained")


def save_figure(draw: Callable[[Figure], Any], size: tuple[float, float], path: Path) -> list[Path]:
    """Draw a figure and write it as PNG and SVG, each whole or not at all; `path` is without suffix.

    The same data give the same files: no date, no random ids.
    """
    figure = new_figure(size)
    written = []
    with load_extra("matplotlib", extra="plots").rc_context({"svg.hashsalt": "spectheory"}):
        draw(figure)
        for suffix in ("png", "svg"):
            file = path.with_suffix(f".{suffix}")
            metadata = {"Date": None} if suffix == "svg" else None
            write_whole(file, partial(figure.savefig, format=suffix, dpi=160, metadata=metadata))
            written.append(file)
    return written
