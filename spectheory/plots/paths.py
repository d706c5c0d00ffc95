"""Tokens per call by the path theorem and by simulation: chains, regimes, real text, trees, and all residuals."""

from __future__ import annotations

from typing import Any

from spectheory.plots.line_ends import LineEnd, name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREY, LOOKS, ORANGE, Axes, Figure, Look, caption, plain_axes, titled
from spectheory.verification.registry import BUILT_IN

NAMES = {rule.name: rule.title for rule in BUILT_IN if rule.title}
"""What rules are called where their own name does not do."""

PAIRS = (Look(BLUE, "o"), Look(ORANGE, "D"))
"""How pairs of models are drawn, where lines are pairs."""

ABOVE = ("race", "recursive-distinct")
"""Dashed and drawn last: they nearly coincide with another rule in some panel, which shows through the gaps."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Three panels of chains above one of trees and one of residuals."""
    grid = figure.add_gridspec(2, 3)
    bed, regimes, text = (figure.add_subplot(grid[0, i]) for i in range(3))
    trees, residuals = figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1:])
    lengths, drafts = data["lengths"], "drafts per call, k"
    draw_panel(bed, data, "test bed", f"a  7 random tokens,\n    texts of {lengths['test bed']}", drafts)
    draw_panel(regimes, data, "regimes", f"b  two lasting regimes,\n    texts of {lengths['regimes']}", drafts)
    draw_panel(text, data, "text", f"c  bytes of Python code,\n    texts of {lengths['text']}", drafts)
    draw_panel(trees, data, "trees", "d  draft trees,\n    7 random tokens", "nodes of the draft tree")
    draw_residuals(residuals, data)
    caption(
        figure,
        "Coloured lines: path theorem (§7), exact;  grey: mean acceptance as if i.i.d. (C1);  markers: decodings,\n"
        "95% intervals;  tokens per call count the recovered or bonus token;  e: the grey band holds all settings but "
        f"with probability {data['alarm']:.0e}, if normal",
        8,
    )


def draw_panel(ax: Axes, data: dict[str, Any], panel: str, title: str, below: str) -> None:
    """The line and the dots of every rule, or pair of models, of a panel."""
    labels: list[LineEnd] = []
    lines = sorted(data["panels"][panel].items(), key=lambda line: line[0] in ABOVE)
    for i, (line, points) in enumerate(lines):
        look = LOOKS.get(line, PAIRS[i % 2])
        xs = [point["x"] for point in points]
        style = "--" if line in ABOVE else "-"
        ax.plot(xs, [point["predicted"] for point in points], style, color=look.colour)
        dots(ax, xs, points, look.colour, marker=look.marker, filled=line not in ABOVE, size=4.5)
        labels.append((xs[-1], points[-1]["predicted"], NAMES.get(line, line), look.colour))
        if iid := data["iid"].get(panel, {}).get(line):
            ax.plot(xs, iid, color=GREY, linestyle=":")
            labels.append((xs[-1], iid[-1], "as if i.i.d.", GREY))
        ax.set_xticks(xs)
    titled(ax, title)
    ax.set_xlabel(below)
    ax.set_ylabel("tokens per call")
    ax.set_ylim(bottom=1.0)
    name_ends(ax, labels)


def draw_residuals(ax: Axes, data: dict[str, Any]) -> None:
    """How far each simulation is from the theorem."""
    groups: dict[tuple[str, bool], list[float]] = {}
    for row in data["residuals"]:
        groups.setdefault((row["rule"], row["compiled"]), []).append(row["z"])
    band = data["band"]
    ax.axhspan(-band, band, color=GREY, alpha=0.12, linewidth=0)
    ax.axhline(0, color=GREY, linewidth=0.8)
    for place, ((rule, _), found) in enumerate(sorted(groups.items())):
        across = [place + 0.7 * ((i + 0.5) / len(found) - 0.5) for i in range(len(found))]
        seen = [{"low": z - 1.96, "best": z, "high": z + 1.96} for z in found]
        dots(ax, across, seen, LOOKS[rule].colour, marker=LOOKS[rule].marker, size=3, cap=0)
    names = [NAMES.get(rule, rule) + (", kernel" if compiled else "") for rule, compiled in sorted(groups)]
    ax.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    titled(
        ax,
        f"e  simulated minus predicted calls, {len(data['residuals'])} settings;\n"
        f"    predicted as if i.i.d., up to {data['iid_missed']:.0f} standard errors away",
    )
    ax.set_ylabel("standard errors")
    ax.set_ylim(-band - 1, band + 1)
    plain_axes(ax)
