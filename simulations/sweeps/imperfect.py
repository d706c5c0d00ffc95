"""Draft trees of a drafter that knows the draft alone, against the target's own trees and their bounds (B8)."""

from __future__ import annotations

import math
from typing import Any

from simulations.counts import Mean
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.branching import TARGET
from simulations.sweeps.curves import best, curve, dots
from spectheory.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    Axes,
    Figure,
    LineEnd,
    Look,
    caption,
    doubling,
    name_ends,
)

TITLE = "Draft trees from imperfect knowledge: what they give and what they lose"
STATEMENTS = ("B8", "B6")
SIZE = (9.0, 4.2)
EXTRAS = ("models:torch", "models:transformers")

DRAFTS = ("draft", "distilled")
"""Built-in drafts: trained on text, and distilled from the target."""


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Trees of both drafts, at starts of their own."""
    size = {"trials": scale.pick(48, 384), "batch": scale.pick(48, 192)}
    return tuple(ask(name, "draft-trees", {**TARGET, "draft": f"builtin:{name}"}, scale, **size) for name in DRAFTS)


def data(scale: Scale, tallies: Tallies) -> Data:
    """Predicted tokens, loss and bounds of both drafts, with intervals."""
    return {
        "capacities": TARGET["capacities"],
        "trials": tallies[DRAFTS[0]].trials,
        "drafts": [{"name": name, **_lists(name, tallies)} for name in DRAFTS],
    }


def _lists(name: str, tallies: Tallies) -> dict[str, Any]:
    """Lists over the capacities; B6 is estimated from the same texts, at thresholds fixed beforehand."""
    lists: dict[str, Any] = {
        what: [vars(Mean(f"{what} P={capacity}").estimate(tallies[name])) for capacity in TARGET["capacities"]]
        for what in ("best", "drafted", "claimed", "loss", "bound", "depth", "text")
    }
    lists["B6"] = [
        {**each, **{end: min(each[end] + capacity * math.exp(-t), capacity) for end in ("low", "best", "high")}}
        for each, capacity, t in zip(lists.pop("text"), TARGET["capacities"], TARGET["thresholds"], strict=True)
    ]
    return lists


def table(made: Data) -> str:
    """The table of ``docs/figures/tables.md``."""
    lines = [
        "| draft | P | E[X] of T_q | depth of the text | E[X] of T_p | B6 | loss | bound on the loss | q(T_q) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for draft in made["drafts"]:
        for at, capacity in enumerate(made["capacities"]):
            if capacity in (1, 8, 64):
                cells = [_cell(draft[key][at]) for key in ("drafted", "depth", "best", "B6", "loss", "bound")]
                name = draft["name"] if capacity == 1 else ""
                lines.append(f"| {name} | {capacity} | {' | '.join(cells)} | {draft['claimed'][at]['best']:.2f} |")
    return "\n".join(lines)


def _cell(seen: dict[str, float]) -> str:
    return f"{seen['best']:.2f} ± {math.ceil(50 * (seen['high'] - seen['low'])) / 100:.2f}"


LOOKS = {"draft": Look(ORANGE, "D"), "distilled": Look(GREEN, "s")}
"""How each draft is drawn."""


def draw(figure: Figure, data: Data) -> None:
    """Left: trees from the target and from the first draft, what that draft expects, and B6. Right: losses and B8."""
    capacities, first = data["capacities"], data["drafts"][0]
    left, right = figure.subplots(1, 2)
    of_draft = ("drafted", f"tree from {first['name']}", LOOKS[first["name"]])
    doubling(left, capacities)
    ends = [
        curve(left, capacities, best(first["B6"]), Look(PINK, ""), "B6, upper bound", width=1.4),
        curve(left, capacities, best(first["claimed"]), Look(GREY, ""), "as the draft expects", style="--", width=1.4),
    ]
    for key, name, look in (("best", "target's own tree", Look(BLUE, "o")), of_draft):
        dots(left, capacities, first[key], look, size=4.5, clip=False)
        ends.append((capacities[-1], first[key][-1]["best"], name, look.colour))
    _finish(left, "Trees grown from the draft predict less", "predicted tokens per call, E[X]", ends)
    doubling(right, capacities)
    ends = []
    for draft in data["drafts"]:
        look, name, loss = LOOKS[draft["name"]], draft["name"], draft["loss"]
        ends.append(curve(right, capacities, best(draft["bound"]), look, f"B8, {name}", width=1.5))
        dots(right, capacities, loss, look, size=4.5, clip=False)
        ends.append((capacities[-1], loss[-1]["best"], f"loss, {name}", look.colour))
    _finish(right, "The loss, and what bounds it", "predicted tokens lost per call", ends)
    caption(
        figure,
        f"built-in pair, {data['trials']:,} starts in sampled text for each draft;  markers: measured, 95% intervals;\n"
        "lines: bounds, estimated from the same starts",
    )


def _finish(ax: Axes, title: str, up: str, ends: list[LineEnd]) -> None:
    ax.set(title=title, xlabel="draft nodes per call, P = k", ylabel=up, ylim=(0, None))
    name_ends(ax, ends)
