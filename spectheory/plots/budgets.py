"""A plan of budgets as a figure: tokens per second of every policy against the concurrency."""

from __future__ import annotations

from pathlib import Path

from spectheory.deployment.budgets import BudgetAnswer, BudgetPoint
from spectheory.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    Axes,
    LineEnd,
    doubling,
    name_ends,
    plain_axes,
    save_figure,
    titled,
)

_LINES = (("plain", "plain decoding", GREY, "v-"), ("fixed", "best k of every call", ORANGE, "s-"))
_BUDGETS = (("confident", "budget by\nconfidence", BLUE, "o-"), ("informed", "by true\nacceptance", GREEN, "D:"))


def budgets(ax: Axes, answer: BudgetAnswer) -> None:
    """Tokens per second by concurrency, with intervals; the limit dashed, the longest fixed chain beside."""
    labels: list[LineEnd] = []
    sizes = [choice.batch for choice in answer.choices]
    for name, label, colour, how in (*_LINES, *_BUDGETS):
        points: list[BudgetPoint] = [getattr(choice, name) for choice in answer.choices if getattr(choice, name)]
        if points:
            at, rates = [point.batch for point in points], [point.per_second for point in points]
            ax.plot(at, [rate.best for rate in rates], how, color=colour, mfc="white" if ":" in how else colour)
            ax.vlines(at, [rate.low for rate in rates], [rate.high for rate in rates], color=colour, alpha=0.6)
            labels.append((at[-1], rates[-1].best, label, colour))
    longest = [(choice.batch, choice.longest.per_second.best) for choice in answer.choices]
    ax.plot(*zip(*longest, strict=True), "^--", color=PINK)
    labels.append((*longest[-1], f"k = {answer.k_max} of\nevery call", PINK))
    ax.plot(sizes, [choice.limit for choice in answer.choices], "--", color=GREY, linewidth=1.3)
    labels.append((sizes[-1], answer.choices[-1].limit, "limit of\nevery budget", GREY))
    doubling(ax, sizes)
    ax.set_ylim(0, ax.get_ylim()[1])
    ax.set_xlabel("requests decoded together")
    ax.set_ylabel("tokens per second of all requests")
    plain_axes(ax)
    name_ends(ax, labels)
    titled(ax, f"Which drafts of a batch to verify: {answer.rule.label}, bars 95% over prompts")


def write_budgets(answer: BudgetAnswer, folder: Path) -> list[Path]:
    """Write ``budgets``."""
    return save_figure(lambda figure: budgets(figure.add_subplot(), answer), (8.4, 4.6), folder / "budgets")
