"""Tokens per call by rule against the optimum over all policies; and a gadget where block's tail is heavier."""

from __future__ import annotations

from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import COLOURS, GREY, PINK, Axes, Figure, caption, name_ends, note, plain_axes, titled

TAILS = (
    ("block", "block verification", COLOURS["block"], -0.2),
    ("early", "first call stops after one draft", PINK, 0.2),
)
"""Policies on the gadget: name, words, colour, and where their bars stand beside a tick."""

NAMES = {"block": "block verification", "token": "token verification", "race": "race"}


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Means on the left, tails on the right."""
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _means(left, data)
    _tails(right, data["gadget"])
    caption(
        figure,
        "Lines, bars, numbers: exact.  Dots: simulated, with 95% intervals.  "
        "Circles: the best of all lossless fresh policies, by a linear programme.",
        8,
    )


def _means(ax: Axes, data: dict[str, Any]) -> None:
    labels = []
    for rule, row in data["rules"].items():
        colour = COLOURS[rule]
        ax.plot(data["drafts"], row["exact"], color=colour, linewidth=1.4)
        dots(ax, data["drafts"], row["observed"], colour, size=3.6)
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
    note(ax, "optimum over\nall policies", (best[-1]["k"], best[-1]["tokens"]), (-12, 14), GREY, 8.5, ha="right")
    ax.set_xticks(data["drafts"])
    ax.set_xlabel("drafts per call, k")
    ax.set_ylabel("tokens per call, N / E[calls]")
    ax.set_ylim(1.5, None)
    titled(ax, f"The mean: Markov chains of three tokens, texts of {data['length']}", 9.5)
    name_ends(ax, labels)


def _tails(ax: Axes, gadget: dict[str, Any]) -> None:
    rows = (
        ("block", "block verification", COLOURS["block"], -0.2),
        ("early", "first call stops after one draft", PINK, 0.2),
    )
    for name, label, colour, shift in rows:
        row = gadget[name]
        places = [t + shift for t in range(len(row["exact"]))]
        ax.bar(places, row["exact"], width=0.36, color=colour, alpha=0.45, label=f"{label}: E[calls] = {row['mean']:g}")
        shown = [
            (x, share, seen) for x, share, seen in zip(places, row["exact"], row["observed"], strict=True) if share
        ]
        dots(ax, [x for x, _, _ in shown], [seen for _, _, seen in shown], colour, size=3.4)
        for x, share, _ in shown:
            note(ax, f"{share:g}", (x, share), (0, 5), colour, 8.5, ha="center")
    ax.set_ylim(0, 1.32)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_xticks(range(len(gadget["block"]["exact"])))
    ax.set_xlabel("t, calls")
    ax.set_ylabel("P(calls > t)")
    titled(ax, "The tail: gadget G, texts of 5, k = 2", 9.5)
    ax.legend(loc="upper right", frameon=False, fontsize=8.5)
    plain_axes(ax)
