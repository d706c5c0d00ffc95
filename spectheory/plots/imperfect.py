"""Draft trees grown from the draft: predicted tokens beside the best trees', and the loss beside its bound (B8)."""

from __future__ import annotations

from typing import Any

from spectheory.plots.line_ends import name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, PINK, Axes, Figure, Look, caption, doubling, titled

Data = dict[str, Any]

DRAFTS = {"draft": Look(ORANGE, "D"), "distilled": Look(GREEN, "s")}
"""How each draft is drawn."""


def draw(figure: Figure, data: Data) -> None:
    """Left: tokens. Right: loss and its bound."""
    left, right = figure.subplots(1, 2)
    draw_tokens(left, data)
    draw_loss(right, data)
    caption(
        figure,
        f"built-in pair, {data['trials']:,} starts in sampled text for each draft;  markers: measured, 95% intervals;\n"
        "lines: bounds, estimated from the same starts",
    )


def draw_tokens(ax: Axes, data: Data) -> None:
    """Trees from the target and from the first draft at the same starts, what that draft expects, and B6."""
    doubling(ax, data["capacities"])
    right, first = data["capacities"][-1], data["drafts"][0]
    ends = []
    for key, name, colour in (("B6", "B6, upper bound", PINK), ("claimed", "as the draft expects", GREY)):
        style = "-" if key == "B6" else "--"
        ax.plot(data["capacities"], [each["best"] for each in first[key]], color=colour, linewidth=1.4, linestyle=style)
        ends.append((right, first[key][-1]["best"], name, colour))
    own = DRAFTS[first["name"]]
    for key, name, colour, marker in (
        ("best", "target's own tree", BLUE, "o"),
        ("drafted", f"tree from {first['name']}", *own),
    ):
        dots(ax, data["capacities"], first[key], colour, size=4.5, clip=False, marker=marker)
        ends.append((right, first[key][-1]["best"], name, colour))
    ax.set_ylim(0)
    ax.set_xlabel("draft nodes per call, P = k")
    ax.set_ylabel("predicted tokens per call, E[X]")
    titled(ax, "Trees grown from the draft predict less")
    name_ends(ax, ends)


def draw_loss(ax: Axes, data: Data) -> None:
    """The loss of each draft and B8."""
    doubling(ax, data["capacities"])
    right, ends = data["capacities"][-1], []
    for draft in data["drafts"]:
        colour, marker = DRAFTS[draft["name"]]
        ax.plot(data["capacities"], [each["best"] for each in draft["bound"]], color=colour, linewidth=1.5)
        dots(ax, data["capacities"], draft["loss"], colour, size=4.5, clip=False, marker=marker)
        ends.append((right, draft["bound"][-1]["best"], f"B8, {draft['name']}", colour))
        ends.append((right, draft["loss"][-1]["best"], f"loss, {draft['name']}", colour))
    ax.set_ylim(0)
    ax.set_xlabel("draft nodes per call, P = k")
    ax.set_ylabel("predicted tokens lost per call")
    titled(ax, "The loss, and what bounds it")
    name_ends(ax, ends)
