"""Draft trees of a drafter that knows the draft alone, against the target's own trees and their bounds (B8)."""

from __future__ import annotations

import math
from typing import Any

from simulations.counts.quantities import Mean
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from simulations.sweeps.branching import TARGET
from simulations.sweeps.observed import dots
from spectheory.plots.line_ends import name_ends
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, PINK, Axes, Figure, Look, caption, doubling, titled

DRAFTS = ("draft", "distilled")
"""Built-in drafts: trained on text, and distilled from the target."""


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Trees of both drafts, at starts of their own."""
    return tuple(_ask(name, scale) for name in DRAFTS)


def _ask(name: str, scale: Scale) -> Ask:
    parameters = {**TARGET, "draft": f"builtin:{name}"}
    return ask(name, "draft-trees", parameters, scale, trials=scale.pick(48, 384), batch=scale.pick(48, 192))


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
    own = LOOKS[first["name"]]
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
        colour, marker = LOOKS[draft["name"]]
        ax.plot(data["capacities"], [each["best"] for each in draft["bound"]], color=colour, linewidth=1.5)
        dots(ax, data["capacities"], draft["loss"], colour, size=4.5, clip=False, marker=marker)
        ends.append((right, draft["bound"][-1]["best"], f"B8, {draft['name']}", colour))
        ends.append((right, draft["loss"][-1]["best"], f"loss, {draft['name']}", colour))
    ax.set_ylim(0)
    ax.set_xlabel("draft nodes per call, P = k")
    ax.set_ylabel("predicted tokens lost per call")
    titled(ax, "The loss, and what bounds it")
    name_ends(ax, ends)


SWEEP = Sweep(
    "imperfect",
    "Draft trees from imperfect knowledge: what they give and what they lose",
    ("B8", "B6"),
    asks,
    data,
    draw,
    (9.0, 4.2),
    extras=("models:torch", "models:transformers"),
)
