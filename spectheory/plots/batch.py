"""Rejections of a batch against its size: the exact line, its limit, and the algorithm as printed."""

from __future__ import annotations

from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREY, ORANGE, Axes, Figure, caption, doubling, note, plain_axes, titled


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Rejections against M, and how much of them is above the limit."""
    rejections, above = figure.subplots(1, 2, width_ratios=(1.25, 1))
    draw_rejections(rejections, data)
    draw_above(above, data)
    for ax in (rejections, above):
        doubling(ax, [2**i for i in range(0, data["exact"][-1]["drafts"].bit_length(), 2)])
        ax.set_xlabel("drafts in the batch, M")
        plain_axes(ax)
    caption(figure, f"Lines: exact; markers: {data['texts']:,} simulated texts each, with 95% intervals.")


def draw_rejections(ax: Axes, data: dict[str, Any]) -> None:
    """Rejections per text against M, from one draft to the limit of many."""
    most = data["exact"][-1]["drafts"]
    ax.axhline(data["one"], color=GREY, linewidth=1, linestyle=":")
    ax.axhline(data["limit"], color=GREY, linewidth=1, linestyle="--")
    ax.plot([row["drafts"] for row in data["exact"]], [row["value"] for row in data["exact"]], color=BLUE, linewidth=1)
    dots(ax, [row["drafts"] for row in data["intended"]], data["intended"], BLUE)
    dots(ax, [row["drafts"] for row in data["printed"]], data["printed"], ORANGE, marker="D", filled=False, size=5)
    ax.set_xlim(0.85, 1.15 * most)
    ax.set_ylim(data["limit"] - 0.9, data["one"] + 0.9)
    ax.set_ylabel(f"rejections per text of T = {data['length']} tokens")
    titled(ax, "Rejections of a batch of drafts")
    notes = (
        (data["one"], f"Algorithm 4 as printed: as one draft, Y1 = {data['one']:.3f}", 7, ORANGE),
        (data["limit"], f"limit of many drafts, Y4 = {data['limit']:.3f} (exact)", -13, GREY),
    )
    for height, text, lift, colour in notes:
        note(ax, text, (most, height), (0, lift), colour, 8.5, ha="right")
    for row in data["intended"]:
        if row["drafts"] in data["named"]:
            exact = next(each["value"] for each in data["exact"] if each["drafts"] == row["drafts"])
            text = f"M = {row['drafts']}: {row['best']:.3f}, exact {exact:.3f}"
            note(ax, text, (row["drafts"], row["best"]), (9, 5), BLUE, 8.5)
    at = (20, data["limit"] + 0.29 * (data["one"] - data["limit"]))
    ax.annotate("as intended: all M first\ntokens are tried (Y3, exact)", at, fontsize=8.5, color=BLUE)


def draw_above(ax: Axes, data: dict[str, Any]) -> None:
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
    titled(ax, "What more drafts can still save")
