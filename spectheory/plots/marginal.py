"""Probability that the k-th drafted token is accepted, under i.i.d. ranks and along real text."""

from __future__ import annotations

from typing import Any

from spectheory.plots.strategies import COLOURS, NAMES, captions, dots, names
from spectheory.plots.style import Axes, Figure

LEAST = 1e-3
"""Lower end of the axes."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Dots are simulated, lines exact."""
    left, right = figure.subplots(1, 2, sharey=True)
    iid, models = data["iid"], data["models"]
    for ax, panel in ((left, iid), (right, models)):
        draw_panel(ax, panel)
    left.set_ylabel("probability that the token is accepted")
    captions(figure, left, right, iid, models, f"{models['texts']} texts")


def draw_panel(ax: Axes, panel: dict[str, Any]) -> None:
    """One panel: a line for each way to draft."""
    labels = []
    most = max(len(drafted["exact"]) for drafted in panel["strategies"].values())
    for strategy, drafted in panel["strategies"].items():
        shown = [(k, value) for k, value in enumerate(drafted["exact"], start=1) if value >= LEAST]
        seen = [(k, each) for k, each in enumerate(drafted["observed"], start=1) if each["best"] >= LEAST]
        thin = strategy == "k-ary"  # its line goes up and down: depth by depth, first children first
        ax.plot(*zip(*shown, strict=True), color=COLOURS[strategy], linewidth=0.5 if thin else 1.3)
        dots(ax, strategy, [k for k, _ in seen], [each for _, each in seen], size=3.2)
        labels.append((*shown[-1], NAMES[strategy], COLOURS[strategy]))
    ax.set_yscale("log")
    ax.set_ylim(LEAST, 1)
    ax.set_xticks([1, *range(most // 4, most + 1, most // 4)])
    ax.set_xlabel("k-th drafted token, in the strategy's order")
    ax.grid(axis="y", color="0.92")
    names(ax, labels, most)
