"""The gap of every rule to the best acceptance of i.i.d. candidates, against their number."""

from __future__ import annotations

from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, COLOURS, GREY, ORANGE, Axes, Figure, LineEnd, caption, name_ends, note, titled

BLACK = "#000000"
RULES = {
    "poisson": ("R1 Poisson race", COLOURS["poisson"], "-"),
    "race-dense": ("R2 race, distinct", COLOURS["race"], "--"),
    "recursive": ("R3 recursive, i.i.d.", BLUE, "-"),
    "recursive-distinct": ("R3 recursive, distinct", COLOURS["recursive-distinct"], "--"),
    "k-seq": ("R5 k-SEQ", ORANGE, "-"),
    "gumbel-list": ("R6 Gumbel list", BLACK, "-"),
    "top-k": ("R7 top-k match", COLOURS["topk"], "--"),
}
"""What a rule is called, its colour, and its line: dashed where candidates are distinct."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Two pairs side by side, on one scale."""
    axes = figure.subplots(1, len(data["pairs"]), sharey=True)
    labels = [_pair(ax, name, pair, data["most"]) for ax, (name, pair) in zip(axes, data["pairs"].items(), strict=True)]
    axes[0].set_ylabel("gap to the optimum: R4 - acceptance")
    for ax, names in zip(axes, labels, strict=True):
        name_ends(ax, names)
    caption(
        figure,
        "Lines: exact; solid: candidates i.i.d. from the draft, dashed: distinct ones, which R4 does not bind."
        "  Dots: simulated, with 95% intervals.",
    )


def _pair(ax: Axes, name: str, pair: dict[str, Any], most: int) -> list[LineEnd]:
    """One pair; what its lines are called at their ends."""
    ks = list(range(1, most + 1))
    ax.axhline(0.0, color=GREY, linewidth=1.3)
    labels: list[LineEnd] = [(most, 0.0, "R4, optimum (i.i.d.)", GREY)]
    for rule, (label, colour, style) in RULES.items():
        ax.plot(ks, pair["lines"][rule], linestyle=style, color=colour, linewidth=1.4)
        seen = pair["dots"][rule]
        dots(ax, [dot["k"] for dot in seen], seen, colour, size=3.6)
        labels.append((most, pair["lines"][rule][-1], label, colour))
    match = pair["independent"]
    dots(ax, [1], [match["dot"]], GREY, marker="s", size=3.6)
    note(ax, "independent match (A4)", (1, match["line"]), (7, 0))
    ax.set_xticks(ks)
    ax.set_xlim(0.75, most + 0.15)
    ax.set_xlabel("candidates at the position, k")
    titled(ax, f"A {name} draft, TV = {pair['tv']:.2f}", 9.5)
    return labels
