"""Tokens per call by rule against the optimum over all policies; and a gadget where block's tail is heavier."""

from __future__ import annotations

from typing import Any

from spectheory.plots.line_ends import name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import GREY, LOOKS, PINK, Axes, Figure, Look, caption, note, plain_axes, titled

EARLY = Look(PINK, "D")
TAILS = (
    ("block", "block verification", LOOKS["block"], -0.2),
    ("early", "first call stops after one draft", EARLY, 0.2),
)
"""Policies on the gadget: name, words, look, and where their bars stand beside a tick."""

NAMES = {"block": "block", "token": "token", "race": "race"}


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Means on the left, tails on the right."""
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    draw_means(left, data)
    draw_tails(right, data["gadget"])
    caption(
        figure,
        "Lines, bars, numbers: exact.  Markers: simulated, with 95% intervals.\n"
        "Circles: the best of all lossless fresh policies, by a linear programme.",
        8,
    )


def draw_means(ax: Axes, data: dict[str, Any]) -> None:
    """Tokens per call of every rule against k, and the optimum where it is known."""
    labels = []
    for rule, row in data["rules"].items():
        colour, marker = LOOKS[rule]
        ax.plot(data["drafts"], row["exact"], color=colour)
        dots(ax, data["drafts"], row["observed"], colour, marker=marker)
        labels.append((data["drafts"][-1], row["exact"][-1], NAMES[rule], colour))
    best = data["optimum"]
    ax.plot(
        [each["k"] for each in best],
        [each["tokens"] for each in best],
        "o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=GREY,
        markeredgewidth=1.3,
    )
    note(ax, "optimum over\nall policies", (best[-1]["k"], best[-1]["tokens"]), (-12, 14), GREY, 8, ha="right")
    ax.set_xticks(data["drafts"])
    ax.set_xlabel("drafts per call, k")
    ax.set_ylabel("tokens per call, N / E[calls]")
    ax.set_ylim(1.5, None)
    titled(ax, f"Mean: Markov chains of three tokens, texts of {data['length']}")
    name_ends(ax, labels)


def draw_tails(ax: Axes, gadget: dict[str, Any]) -> None:
    """Tails of the number of calls on the gadget."""
    for name, label, (colour, marker), shift in TAILS:
        row = gadget[name]
        places = [t + shift for t in range(len(row["exact"]))]
        ax.bar(
            places, row["exact"], width=0.36, color=colour, alpha=0.45, label=f"{label}:\nE[calls] = {row['mean']:g}"
        )
        shown = [
            (x, share, seen) for x, share, seen in zip(places, row["exact"], row["observed"], strict=True) if share
        ]
        dots(ax, [x for x, _, _ in shown], [seen for _, _, seen in shown], colour, marker=marker)
        for x, share, _ in shown:
            note(ax, f"{share:g}", (x, share), (0, 5), colour, ha="center")
    ax.set_ylim(0, 1.5)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_xticks(range(len(gadget["block"]["exact"])))
    ax.set_xlabel("t, calls")
    ax.set_ylabel("P(calls > t)")
    titled(ax, "Tail: gadget G, texts of 5, k = 2")
    ax.legend(loc="upper right", frameon=False, fontsize=8.5)
    plain_axes(ax)
