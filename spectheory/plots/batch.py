"""Rejections of a batch against its size: the exact line, its limit, and the algorithm as printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREY, ORANGE, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Rejections against M, and how much of them is above the limit."""
    rejections, above = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _rejections(rejections, data)
    _above(above, data)
    for ax in (rejections, above):
        ax.set_xscale("log", base=2)
        ticks = [2**i for i in range(0, data["exact"][-1]["drafts"].bit_length(), 2)]
        ax.set_xticks(ticks, [str(m) for m in ticks])
        ax.minorticks_off()
        ax.set_xlabel("drafts in the batch, M")
        plain_axes(ax)


def _rejections(ax: Axes, data: dict[str, Any]) -> None:
    most = data["exact"][-1]["drafts"]
    ax.axhline(data["one"], color=GREY, linewidth=1, linestyle=":")
    ax.axhline(data["limit"], color=GREY, linewidth=1, linestyle="--")
    ax.plot([row["drafts"] for row in data["exact"]], [row["value"] for row in data["exact"]], color=BLUE, linewidth=1)
    dots(ax, [row["drafts"] for row in data["intended"]], data["intended"], BLUE)
    dots(ax, [row["drafts"] for row in data["printed"]], data["printed"], ORANGE, marker="D", filled=False, size=5)
    ax.set_xlim(0.85, 1.15 * most)
    ax.set_ylim(data["limit"] - 0.9, data["one"] + 0.9)
    ax.set_ylabel(f"rejections per text of T = {data['length']} tokens")
    ax.set_title(f"{data['texts']:,} texts a dot, on the exact line; bars: 95%", loc="left", fontsize=10)
    notes = (
        (data["one"], f"Algorithm 4 as printed: as one draft, Y1 = {data['one']:.3f}", 7, ORANGE),
        (data["limit"], f"limit of many drafts, Y4 = {data['limit']:.3f} (exact)", -13, GREY),
    )
    for height, text, lift, colour in notes:
        ax.annotate(
            text, (most, height), xytext=(0, lift), textcoords="offset points", ha="right", fontsize=8.5, color=colour
        )
    for row in data["intended"]:
        if row["drafts"] in data["named"]:
            _named(ax, row, next(exact["value"] for exact in data["exact"] if exact["drafts"] == row["drafts"]))
    ax.annotate(
        "as intended: all M first\ntokens are tried (Y3, exact)",
        (20, data["limit"] + 0.29 * (data["one"] - data["limit"])),
        fontsize=8.5,
        color=BLUE,
    )


def _named(ax: Axes, row: dict[str, Any], exact: float) -> None:
    ax.annotate(
        f"M = {row['drafts']}: {row['best']:.3f}, exact {exact:.3f}",
        (row["drafts"], row["best"]),
        xytext=(9, 5),
        textcoords="offset points",
        fontsize=8.5,
        color=BLUE,
    )


def _above(ax: Axes, data: dict[str, Any]) -> None:
    """What is above the limit, on logarithmic scales."""
    limit = data["limit"]
    ax.plot(
        [row["drafts"] for row in data["exact"]],
        [row["value"] - limit for row in data["exact"]],
        color=BLUE,
        linewidth=1,
    )
    lifted = [{end: row[end] - limit for end in ("low", "best", "high")} for row in data["intended"]]
    dots(ax, [row["drafts"] for row in data["intended"]], lifted, BLUE)
    ax.set_yscale("log")
    ax.set_ylabel("rejections above the limit Y4")
    ax.set_title("What more drafts can still save", loc="left", fontsize=10)
