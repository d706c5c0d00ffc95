"""Speed-up against the cost ratio: every setting that is best somewhere, and where none pays any more."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from spectheory.cost import ConstantRatio
from spectheory.plots.style import BLUE, GREY, Axes, LineEnd, name_ends, note, plain_axes, save_figure, titled
from spectheory.prediction.what_if_answer import CostSweep

_POINTS = 80
"""Values of c at which a curve is drawn."""


def speedup_by_c(ax: Axes, costs: CostSweep) -> None:
    """A grey curve for each setting that is the fastest somewhere, and the fastest at each c with its interval."""
    cs = np.linspace(costs.rows[0].c, costs.rows[-1].c, _POINTS)
    ends: list[LineEnd] = []
    curves = []
    for row in {(row.rule, str(row.shape)): row for row in costs.rows}.values():
        speedups = [ConstantRatio(float(c)).speedup(row.tokens_per_call, row.shape).best for c in cs]
        curves.append(speedups)
        ax.plot(cs, speedups, color=GREY, linewidth=1.0)
        name = f"k = {row.shape.nodes}" if row.shape.is_chain else str(row.shape)
        ends.append((float(cs[-1]), speedups[-1], f"{row.rule}, {name}" if row.rule else name, GREY))
    at, best = [row.c for row in costs.rows], [row.speedup for row in costs.rows]
    ax.plot(cs, np.max(curves, axis=0), color=BLUE)
    ax.plot(at, [each.best for each in best], "o", color=BLUE, markersize=4.5)
    ax.vlines(at, [each.low for each in best], [each.high for each in best], color=BLUE, linewidth=1.8, alpha=0.6)
    ax.axhline(1.0, color=GREY, linewidth=1.0, linestyle=":")
    note(ax, "plain decoding", (0, 1.0), (3, 3), xycoords=("axes fraction", "data"))
    if math.isfinite(costs.pays_below) and cs[0] <= costs.pays_below <= cs[-1]:
        ax.axvline(costs.pays_below, color=GREY, linewidth=1.0, linestyle=":")
        note(
            ax,
            f"pays up to c = {costs.pays_below:.3g}",
            (costs.pays_below, 0),
            (3, 4),
            xycoords=("data", "axes fraction"),
        )
    ax.set_xlabel("c, time of a draft pass over that of a target step")
    ax.set_ylabel("speed-up over plain decoding")
    titled(ax, "The fastest setting at each cost ratio; grey: each of them at every c")
    plain_axes(ax)
    name_ends(ax, ends)


def write_costs(costs: CostSweep, folder: Path) -> list[Path]:
    """Write ``speedup_by_c``."""
    return save_figure(lambda figure: speedup_by_c(figure.add_subplot(), costs), (8.4, 4.6), folder / "speedup_by_c")
