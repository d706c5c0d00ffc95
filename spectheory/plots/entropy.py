"""The entropy of the rank against KL, with the bounds of i.i.d. candidates."""

from __future__ import annotations

from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREEN, GREY, PINK, Figure, LineEnd, name_ends, titled

RULES = {
    "poisson": ("R1 Poisson race, i.i.d.", PINK),
    "recursive": ("R3 recursive rejection, i.i.d.", BLUE),
    "race": ("R2 race, distinct tokens", GREEN),
}
"""What a line is called, and its colour."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """H(R) up, KL to the right, both in nats; what i.i.d. candidates cannot reach is shaded."""
    ax = figure.add_subplot()
    x, upper = zip(*data["upper"], strict=True)
    ax.plot(x, upper, "--", color=GREY, linewidth=1.3)
    ax.plot(x, x, "-", color=GREY, linewidth=1.3)
    ax.fill_between(x, 0, x, color=GREY, alpha=0.10, linewidth=0)
    labels: list[LineEnd] = [
        (x[-1], upper[-1], "upper bound of R1 (li2018)", GREY),
        (x[-1], x[-1], "KL, lower bound of i.i.d.", GREY),
    ]
    for rule, (name, colour) in RULES.items():
        line, seen = data["lines"][rule], data["dots"][rule]
        ax.plot(*zip(*line, strict=True), color=colour, linewidth=1.5)
        dots(ax, [dot["kl"] for dot in seen], seen, colour, size=4.5)
        labels.append((*line[-1], name, colour))
    ax.set_xlim(-0.06, 1.015 * x[-1])
    ax.set_ylim(-0.1, 1.02 * upper[-1])
    ax.text(0.97 * x[-1], 0.12, "below KL: out of reach of i.i.d. candidates", color=GREY, fontsize=9, ha="right")
    ax.set_xlabel("KL(P‖Q), nats")
    ax.set_ylabel("entropy of the rank, H(R), nats")
    titled(
        ax,
        f"{data['tokens']} tokens; the draft turns from the target to its mirror image.  "
        "Coloured lines: exact; dots: simulated, 95%",
        9.5,
    )
    name_ends(ax, labels)
