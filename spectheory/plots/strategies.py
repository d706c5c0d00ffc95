"""What figures of draft trees share: a colour and a name for each strategy, dots with intervals on lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spectheory.plots import observed
from spectheory.plots.style import BLUE, GREEN, ORANGE, PINK, LineEnd, name_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"tau*": ORANGE, "k-ary": GREEN, "sequence": BLUE, "batch": PINK}
NAMES = {"tau*": "tree τ*", "k-ary": "k-ary tree", "sequence": "sequence", "batch": "batch"}
MARKERS = {"tau*": "o", "k-ary": "s", "sequence": "D", "batch": "^"}


def dots(ax: Axes, strategy: str, places: Sequence[float], seen: Sequence[dict[str, Any]], size: float = 4) -> None:
    """Simulated values with their intervals."""
    observed.dots(ax, places, seen, COLOURS[strategy], marker=MARKERS[strategy], filled=False, size=size)


def names(ax: Axes, labels: Sequence[LineEnd], right: float) -> None:
    """Names at the ends of lines: beside the axes where a line comes near the right end, else where it ends."""
    for x, y, text, colour in labels:
        if x < 0.8 * right:
            ax.annotate(
                text, (x, y), xytext=(7, 1), textcoords="offset points", color=colour, fontsize=8, va="bottom", zorder=4
            )
    name_ends(ax, [label for label in labels if label[0] >= 0.8 * right])
