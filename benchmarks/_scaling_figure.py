"""How times grow with the size of the work: each curve against its own largest size, on logarithmic scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from pathlib import Path

import numpy as np

from spectheory.plots.style import MARKERS, PALETTE, Axes, Figure, note, save_figure, titled

GREY = "#555555"


@dataclass(frozen=True)
class Curve:
    """Times of one piece of work over `sizes` of what `over` says; `rate` says that a unit's time is given.

    A rate (ns per entry) is drawn times its size, so that every curve is a time.
    """

    over: str
    name: str
    points: tuple[tuple[float, float], ...]
    rate: bool = False

    @property
    def times(self) -> list[float]:
        """Times in units of the last one."""
        sizes, values = zip(*self.points, strict=True)
        found = np.multiply(values, sizes) if self.rate else np.array(values)
        return (found / found[-1]).tolist()

    @property
    def exponent(self) -> float:
        """Exponent of the size, by least squares of logarithms."""
        return float(np.polyfit(np.log([size for size, _ in self.points]), np.log(self.times), 1)[0])


def draw(figure: Figure, curves: Sequence[Curve]) -> None:
    """A panel for each kind of size."""
    panels = [(over, list(members)) for over, members in groupby(curves, key=lambda curve: curve.over)]
    for ax, (over, members) in zip(np.ravel(figure.subplots(-(-len(panels) // 2), 2)), panels, strict=False):
        _panel(ax, over, members)
    for ax in figure.axes[len(panels) :]:
        ax.remove()


def _panel(ax: Axes, over: str, curves: Sequence[Curve]) -> None:
    for curve, colour, marker in zip(curves, cycle(PALETTE.values()), cycle(MARKERS)):
        name = f"{curve.name}: size^{curve.exponent:.2f}"
        ax.plot([size for size, _ in curve.points], curve.times, color=colour, marker=marker, label=name)
    smallest, largest = (pick(size for c in curves for size, _ in c.points) for pick in (min, max))
    falling = curves[0].times[0] > 1
    start = largest / smallest if falling else smallest / largest
    ax.plot([smallest, largest], [start, 1.0], color=GREY, linewidth=0.8, linestyle=":")
    middle = (smallest * largest) ** 0.5, start**0.5
    note(ax, "1 / size" if falling else "linear", middle, (6, 4 if falling else -12), GREY)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(over)
    ax.set_ylabel("time / time at the largest size")
    titled(ax, f"Over {over}")
    ax.legend(loc="upper right" if falling else "lower right", fontsize=8)


def write_figure(curves: Sequence[Curve], path: Path) -> list[Path]:
    """Write the figure as PNG and SVG; `path` is without suffix."""
    panels = len({curve.over for curve in curves})
    return save_figure(lambda figure: draw(figure, curves), (9.0, 3.0 * -(-panels // 2)), path)
