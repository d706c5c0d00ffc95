"""What figures of draft trees share: a colour and a name for each strategy, dots with intervals on lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulations.sweeps import observed
from spectheory.plots.line_ends import LineEnd, name_ends
from spectheory.plots.style import BLUE, GREEN, ORANGE, PINK, Axes, Figure, caption, note, titled

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
            note(ax, text, (x, y), (7, 1), colour, va="bottom", zorder=4)
    name_ends(ax, [label for label in labels if label[0] >= 0.8 * right])


def captions(figure: Figure, left: Axes, right: Axes, iid: dict[str, Any], models: dict[str, Any], texts: str) -> None:
    """Titles of a panel of i.i.d. ranks and one of real text, and how much was simulated."""
    titled(left, "a  i.i.d. ranks: races of one pair of pmfs\n    lines exact (S1), markers simulated")
    titled(right, "b  real text: the built-in pair\n    lines exact (path theorem), markers simulated")
    made = f"a: {iid['calls']:,} calls each; b: {models['runs']} runs through {texts}"
    caption(figure, f"95% intervals everywhere, mostly narrower than the markers; {made}")
