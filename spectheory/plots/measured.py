"""What was measured of a pair: how often a draft is accepted at each position, and the time of passes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spectheory.cost import LatencyTable
from spectheory.plots.chart import banded
from spectheory.plots.style import (
    BLUE,
    GREY,
    ORANGE,
    Axes,
    Figure,
    LineEnd,
    Look,
    name_ends,
    note,
    plain_axes,
    save_figure,
    titled,
)
from spectheory.trace import Trace

_BINS = 25


def acceptance(ax: Axes, trace: Trace) -> None:
    """Share of positions by their acceptance rate 1 - TV (A1), with the mean."""
    accepted = 1 - trace.columns["total_variation"]
    ax.hist(accepted, bins=_BINS, range=(0, 1), weights=np.full(len(accepted), 100 / len(accepted)), color=(BLUE, 0.6))
    mean = float(accepted.mean())
    ax.axvline(mean, color=GREY, linewidth=1)
    note(
        ax, f"mean {mean:.3f}", (mean, 1), (-4, -4), size=8.5, xycoords=("data", "axes fraction"), ha="right", va="top"
    )
    ax.set_xlabel("probability that one draft is accepted, 1 - TV(p, q)")
    ax.set_ylabel("share of positions, %")
    titled(ax, f"Acceptance of one draft:\n{len(accepted):,} positions of {len(trace.texts)} texts")
    plain_axes(ax)


def _latencies(ax: Axes, table: LatencyTable) -> None:
    """Milliseconds of a pass against the tokens in it, with 95% intervals."""
    labels: list[LineEnd] = []
    for name, look, passes in (("target", Look(ORANGE, "s"), table.target), ("draft", Look(BLUE, "o"), table.draft)):
        if passes:
            at = sorted(passes)
            milliseconds = [passes[tokens] * 1e3 for tokens in at]
            banded(ax, at, milliseconds, look, 0.2)
            labels.append((at[-1], milliseconds[-1].best, f"{name} pass", look.colour))
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda tokens, _: f"{tokens:g}")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("tokens in one pass")
    ax.set_ylabel("time of the pass, ms")
    titled(
        ax,
        f"Passes with {table.context} tokens cached"
        + (f";\na draft step costs {table.ratio:.2f} target steps" if table.draft else ""),
    )
    name_ends(ax, labels)


def write_measured(trace: Trace, table: LatencyTable, folder: Path) -> list[Path]:
    """Write ``measured``: acceptance on the left, latencies on the right."""

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        acceptance(left, trace)
        _latencies(right, table)

    return save_figure(draw, (9.0, 3.6), folder / "measured")
