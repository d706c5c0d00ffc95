"""Tokens per call by the path theorem and by simulation: chains, regimes, real text, trees, and all residuals."""

from __future__ import annotations

from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import (
    BLUE,
    COLOURS,
    GREY,
    SKY,
    Axes,
    Figure,
    LineEnd,
    caption,
    name_ends,
    plain_axes,
    titled,
)
from spectheory.verification.registry import BUILT_IN

NAMES = {rule.name: rule.title for rule in BUILT_IN if rule.title}
"""What rules are called where their own name does not do."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Three panels of chains above one of trees and one of residuals."""
    grid = figure.add_gridspec(2, 3)
    bed, regimes, text = (figure.add_subplot(grid[0, i]) for i in range(3))
    trees, residuals = figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1:])
    lengths = data["lengths"]
    drafts = "drafts per call, k"
    _panel(bed, data, "test bed", f"a  7 random tokens, texts of {lengths['test bed']}", drafts)
    _panel(regimes, data, "regimes", f"b  two lasting regimes, texts of {lengths['regimes']}", drafts)
    title = f"c  bytes of Python code, texts of {lengths['text']}"
    _panel(text, data, "text", title, drafts)
    _panel(trees, data, "trees", "d  draft trees on 7 random tokens", "nodes of the draft tree")
    _residuals(residuals, data)
    caption(
        figure,
        "lines: path theorem (§7), exact;  dashed: mean acceptance as if i.i.d. (C1);  dots: whole decodings, "
        "95% intervals;  tokens per call count the recovered or bonus token",
        9,
    )


def _panel(ax: Axes, data: dict[str, Any], panel: str, title: str, below: str) -> None:
    """The line and the dots of every rule, or pair of models, of a panel."""
    labels: list[LineEnd] = []
    for i, (line, points) in enumerate(data["panels"][panel].items()):
        colour = COLOURS.get(line, (BLUE, SKY)[i % 2])
        xs = [point["x"] for point in points]
        ax.plot(xs, [point["predicted"] for point in points], color=colour, linewidth=1.2)
        dots(ax, xs, points, colour, size=3.5)
        labels.append((xs[-1], points[-1]["predicted"], NAMES.get(line, line), colour))
        if iid := data["iid"].get(panel, {}).get(line):
            ax.plot(xs, iid, color=GREY, linestyle="--", linewidth=1.1)
            labels.append((xs[-1], iid[-1], "token, i.i.d.", GREY))
        ax.set_xticks(xs)
    titled(ax, title, 9)
    ax.set_xlabel(below, fontsize=9)
    ax.set_ylabel("tokens per call", fontsize=9)
    ax.set_ylim(bottom=1.0)
    ax.tick_params(labelsize=8)
    name_ends(ax, labels)


def _residuals(ax: Axes, data: dict[str, Any]) -> None:
    groups: dict[tuple[str, bool], list[float]] = {}
    for row in data["residuals"]:
        groups.setdefault((row["rule"], row["compiled"]), []).append(row["z"])
    band = data["band"]
    ax.axhspan(-band, band, color=GREY, alpha=0.12, linewidth=0)
    ax.axhline(0, color=GREY, linewidth=0.8)
    for place, ((rule, _), found) in enumerate(sorted(groups.items())):
        across = [place + 0.7 * ((i + 0.5) / len(found) - 0.5) for i in range(len(found))]
        dots(ax, across, [{"low": z - 1.96, "best": z, "high": z + 1.96} for z in found], COLOURS[rule], size=2.5)
    names = [NAMES.get(rule, rule) + (" (kernel)" if compiled else "") for rule, compiled in sorted(groups)]
    ax.set_xticks(range(len(names)), names, fontsize=8, rotation=22, ha="right", rotation_mode="anchor")
    titled(
        ax,
        f"e  simulated minus predicted calls, all {len(data['residuals'])} settings:  grey holds them all "
        f"but with probability {data['alarm']:.0e}, if normal",
        9,
    )
    ax.annotate(
        f"as if i.i.d. (dashed), predictions would be off by up to {data['iid_missed']:.0f} standard errors",
        (0.01, 0.03),
        xycoords="axes fraction",
        fontsize=8,
        color=GREY,
    )
    ax.set_ylabel("standard errors", fontsize=9)
    ax.tick_params(axis="y", labelsize=8)
    ax.set_ylim(-band - 1.5, band + 1)
    plain_axes(ax)
