"""What was measured of a pair: how often a draft is accepted at each position, and the time of passes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spectheory.cost import LatencyTable
from spectheory.intervals import Interval
from spectheory.plots.style import BLUE, GREY, ORANGE, LineEnd, name_ends, plain_axes, save_figure
from spectheory.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BINS = 25


def acceptance(ax: Axes, trace: Trace) -> None:
    """Share of positions by their acceptance rate 1 - TV (A1), with the mean."""
    accepted = 1 - trace.columns["total_variation"]
    ax.hist(accepted, bins=_BINS, range=(0, 1), weights=np.full(len(accepted), 100 / len(accepted)), color=(BLUE, 0.6))
    mean = float(accepted.mean())
    ax.axvline(mean, color=GREY, linewidth=1)
    ax.annotate(
        f"mean {mean:.3f}",
        (mean, 1),
        (-4, -4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        color=GREY,
        ha="right",
        va="top",
    )
    ax.set_xlabel("probability that one draft is accepted, 1 - TV(p, q)")
    ax.set_ylabel("share of positions, %")
    ax.set_title(f"{len(accepted):,} positions of {len(trace.texts)} texts", loc="left", fontsize=10)
    plain_axes(ax)


def latencies(ax: Axes, table: LatencyTable) -> None:
    """Milliseconds of a pass against the tokens in it, with 95% intervals of the medians."""
    labels: list[LineEnd] = []
    for name, colour, passes in (("target", ORANGE, table.target), ("draft", BLUE, table.draft)):
        if passes:
            labels.append(_line(ax, f"{name} pass", colour, passes))
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda tokens, _: f"{tokens:g}")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("tokens in one pass")
    ax.set_ylabel("milliseconds")
    ax.set_title(
        f"with {table.context} tokens cached; a draft step is {table.ratio:.2f} target steps"
        if table.draft
        else f"with {table.context} tokens cached",
        loc="left",
        fontsize=10,
    )
    name_ends(ax, labels)


def _line(ax: Axes, name: str, colour: str, passes: Mapping[int, Interval]) -> LineEnd:
    at = sorted(passes)
    low, best, high = ([1e3 * getattr(passes[m], end) for m in at] for end in ("low", "best", "high"))
    ax.plot(at, best, "o-", color=colour, markersize=4)
    ax.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
    return at[-1], best[-1], name, colour


def measured(figure: Figure, trace: Trace, table: LatencyTable) -> None:
    """Acceptance on the left, latencies on the right."""
    left, right = figure.subplots(1, 2)
    acceptance(left, trace)
    latencies(right, table)


def write_measured(trace: Trace, table: LatencyTable, folder: Path) -> list[Path]:
    """Write ``measured``."""
    return save_figure(lambda figure: measured(figure, trace, table), (9.6, 3.6), folder / "measured")
