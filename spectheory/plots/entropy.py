"""The entropy of the rank against KL, with the bounds of i.i.d. candidates."""

from __future__ import annotations

from typing import Any

from spectheory.plots.line_ends import LineEnd, name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import GREY, LOOKS, Axes, Figure, caption, titled

RULES = {
    "poisson": "R1 Poisson race, i.i.d.",
    "recursive": "R3 recursive rejection, i.i.d.",
    "race": "R2 race, distinct tokens",
}
"""What a line is called."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """One panel, and what its pairs are below it."""
    draw_entropy(figure.add_subplot(), data)
    caption(
        figure,
        f"Pairs of {data['tokens']} tokens: the draft turns from the target to its mirror image.  "
        "Coloured lines: exact; markers: simulated, 95% intervals.",
    )


def draw_entropy(ax: Axes, data: dict[str, Any]) -> None:
    """H(R) up, KL to the right, both in nats; what i.i.d. candidates cannot reach is shaded."""
    x, upper = zip(*data["upper"], strict=True)
    ax.plot(x, upper, "--", color=GREY)
    ax.plot(x, x, "-", color=GREY)
    ax.fill_between(x, 0, x, color=GREY, alpha=0.10, linewidth=0)
    labels: list[LineEnd] = [
        (x[-1], upper[-1], "upper bound of R1 (li2018)", GREY),
        (x[-1], x[-1], "KL, lower bound of i.i.d.", GREY),
    ]
    for rule, name in RULES.items():
        line, seen, look = data["lines"][rule], data["dots"][rule], LOOKS[rule]
        ax.plot(*zip(*line, strict=True), color=look.colour)
        dots(ax, [dot["kl"] for dot in seen], seen, look.colour, marker=look.marker, size=5)
        labels.append((*line[-1], name, look.colour))
    ax.set_xlim(-0.06, 1.015 * x[-1])
    ax.set_ylim(-0.1, 1.02 * upper[-1])
    ax.text(0.97 * x[-1], 0.12, "out of reach of i.i.d. candidates", color=GREY, fontsize=8.5, ha="right")
    ax.set_xlabel("divergence of the draft, KL(P‖Q), nats")
    ax.set_ylabel("entropy of the rank, H(R), nats")
    titled(ax, "Entropy of the rank: i.i.d. candidates stay above KL, distinct ones do not")
    name_ends(ax, labels)
