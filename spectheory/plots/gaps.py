"""The gap of every rule to the best acceptance of i.i.d. candidates, against their number."""

from __future__ import annotations

from typing import Any

from spectheory.plots.line_ends import key
from spectheory.plots.observed import dots
from spectheory.plots.style import GREY, LOOKS, Axes, Figure, caption, note, plain_axes, titled

RULES = {
    "poisson": ("R1 Poisson race", "poisson", "-"),
    "recursive": ("R3 recursive, i.i.d.", "recursive", "-"),
    "k-seq": ("R5 k-SEQ", "kseq", "-"),
    "gumbel-list": ("R6 Gumbel list", "gumbel-list", "-"),
    "race-dense": ("R2 race, distinct", "race", "--"),
    "recursive-distinct": ("R3 recursive, distinct", "recursive-distinct", "--"),
    "top-k": ("R7 top-k match", "topk", "--"),
}
"""What a rule is called, by which name it is known, and its line: dashed where candidates are distinct."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Two pairs side by side, on one scale."""
    axes = figure.subplots(1, len(data["pairs"]), sharey=True)
    for ax, (name, pair) in zip(axes, data["pairs"].items(), strict=True):
        draw_pair(ax, name, pair, data["most"])
    axes[0].set_ylabel("gap to the optimum: R4 - acceptance")
    optimum = ("R4, optimum of i.i.d. candidates", {"color": GREY})
    rules = [(name, {**_line(rule), "linestyle": style}) for name, rule, style in RULES.values()]
    key(figure, [*rules, optimum], 4)
    caption(
        figure,
        "Lines: exact; solid: candidates i.i.d. from the draft, dashed: distinct ones, which R4 does not bind.\n"
        "Markers: simulated, with 95% intervals.",
    )


def _line(rule: str) -> dict[str, Any]:
    colour, marker = LOOKS[rule]
    return {"color": colour, "marker": marker}


def draw_pair(ax: Axes, name: str, pair: dict[str, Any], most: int) -> None:
    """One pair: a line for each rule, from one candidate to `most`."""
    ks = list(range(1, most + 1))
    ax.axhline(0.0, color=GREY)
    for rule, (_, known, style) in RULES.items():
        look, seen = LOOKS[known], pair["dots"][rule]
        ax.plot(ks, pair["lines"][rule], linestyle=style, color=look.colour)
        dots(ax, [dot["k"] for dot in seen], seen, look.colour, marker=look.marker, size=5)
    match, look = pair["independent"], LOOKS["independent"]
    dots(ax, [1], [match["dot"]], look.colour, marker=look.marker, size=5)
    note(ax, "independent match (A4)", (1, match["line"]), (8, -3))
    ax.set_xticks(ks)
    ax.set_xlabel("candidates at the position, k")
    titled(ax, f"A {name} draft, TV = {pair['tv']:.2f}")
    plain_axes(ax)
