"""Names at the ends of lines, moved apart so that no two overlap; a key of markers where there are too many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spectheory.plots.style import Axes, Figure, plain_axes

LineEnd = tuple[float, float, str, str]
"""Where a line ends, its name and its colour."""

_LINE = 1.3
"""Height of a line of text, in font sizes."""


def name_ends(ax: Axes, labels: Sequence[LineEnd], *, size: float = 8) -> None:
    """Write each line's name to the right of the axes, with a leader to its end, moved apart so that no two overlap.

    Call it when limits and scales are set; names are placed in the axes' own coordinates, on any scale. Constrained
    layout makes room for them.
    """
    plain_axes(ax)
    ax.figure.canvas.figure.draw_without_rendering()  # lays out, so that heights are known
    to_axes = ax.transData + ax.transAxes.inverted()
    ends = sorted(
        (float(to_axes.transform((x, y))[1]), float(to_axes.transform((x, y))[0]), t, c) for x, y, t, c in labels
    )
    line = _LINE * size * ax.figure.dpi / 72 / max(ax.get_window_extent().height, 1.0)
    heights = apart([y for y, *_ in ends], [line * (1 + text.count("\n")) for *_, text, _ in ends])
    for (y, x, text, colour), height in zip(ends, heights, strict=True):
        leader: dict[str, Any] = {"color": colour, "linewidth": 0.7, "clip_on": False, "scalex": False, "scaley": False}
        ax.plot([x, 1.01, 1.05], [y, height, height], transform=ax.transAxes, **leader)
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


def apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Middles of boxes in ascending order: as near to those wanted as boxes of these heights can be.

    Boxes that would overlap stand together around the mean of their places.

    Examples
    --------
    >>> apart([0.1, 0.5, 0.5], [0.2, 0.2, 0.2])
    [0.1, 0.4, 0.6]
    """
    from scipy.optimize import isotonic_regression

    middles = np.cumsum(heights) - np.array(heights) / 2  # of a pile of all boxes
    return (isotonic_regression(np.array(wanted) - middles).x + middles).round(9).tolist()


def key(figure: Figure, entries: Iterable[tuple[str, dict[str, Any]]], columns: int) -> None:
    """The names of what panels share, above them: each beside a line drawn as `entries` say."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], label=name, **how) for name, how in entries]
    figure.legend(handles=lines, loc="outside upper center", ncols=columns, handlelength=2.4, columnspacing=1.4)
