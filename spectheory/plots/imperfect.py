"""Draft trees grown from the draft: predicted tokens beside the best trees', and the loss beside its bound (B8)."""

from __future__ import annotations

from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    Axes,
    Figure,
    caption,
    doubling,
    name_ends,
    titled,
)

Data = dict[str, Any]

COLOURS = {"draft": ORANGE, "distilled": GREEN}


def draw(figure: Figure, data: Data) -> None:
    """Left: tokens. Right: loss and its bound."""
    left, right = figure.subplots(1, 2)
    _tokens(left, data)
    _loss(right, data)
    caption(
        figure,
        f"built-in pair, {data['trials']:,} starts in sampled text for each draft, 95% intervals;  dots: measured;  "
        "lines: bounds, estimated from the same starts",
    )


def _tokens(ax: Axes, data: Data) -> None:
    """Trees from the target and from the first draft at the same starts, what that draft expects, and B6."""
    doubling(ax, data["capacities"])
    right, first = data["capacities"][-1], data["drafts"][0]
    ends = []
    for key, name, colour in (("B6", "B6, upper bound", PINK), ("claimed", "as the draft expects", GREY)):
        style = "-" if key == "B6" else "--"
        ax.plot(data["capacities"], [each["best"] for each in first[key]], color=colour, linewidth=1.4, linestyle=style)
        ends.append((right, first[key][-1]["best"], name, colour))
    own = COLOURS[first["name"]]
    for key, name, colour, marker in (
        ("best", "the target's own tree", BLUE, "o"),
        ("drafted", f"tree from {first['name']}", own, "D"),
    ):
        dots(ax, data["capacities"], first[key], colour, size=4.5, clip=False, marker=marker)
        ends.append((right, first[key][-1]["best"], name, colour))
    ax.set_ylim(0)
    ax.set_xlabel("draft nodes per call, P")
    ax.set_ylabel("predicted tokens per call, E[X]")
    titled(ax, "Trees grown from the draft predict less")
    name_ends(ax, ends)


def _loss(ax: Axes, data: Data) -> None:
    """The loss of each draft and B8."""
    doubling(ax, data["capacities"])
    right, ends = data["capacities"][-1], []
    for draft in data["drafts"]:
        colour = COLOURS[draft["name"]]
        ax.plot(data["capacities"], [each["best"] for each in draft["bound"]], color=colour, linewidth=1.5)
        dots(ax, data["capacities"], draft["loss"], colour, size=4.5, clip=False, marker="D")
        ends.append((right, draft["bound"][-1]["best"], f"B8, {draft['name']}", colour))
        ends.append((right, draft["loss"][-1]["best"], f"loss, {draft['name']}", colour))
    ax.set_ylim(0)
    ax.set_xlabel("draft nodes per call, P")
    ax.set_ylabel("predicted tokens per call that are lost")
    titled(ax, "The loss, and what bounds it")
    name_ends(ax, ends)
