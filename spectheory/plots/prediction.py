"""A prediction as figures: each takes a plan and an axes, draws, and returns its artists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spectheory.intervals import Interval
from spectheory.limits.claims import (
    BY_START,
    IDEALISED,
    IID_BRANCHING,
    IID_CHANNEL,
    IID_FORMULA,
    TEXT,
    WHOLE_DECODING,
    LimitClaim,
)
from spectheory.plots.style import GREY, Artist, Axes, LineEnd, colours_of, name_ends, note, save_figure, whole_ticks
from spectheory.prediction import Label, Plan, Prediction


def tokens_per_call(ax: Axes, plan: Plan) -> list[Artist]:
    """Tokens per call of chains against k: every rule with its interval, the i.i.d. formula, and the limits."""

    def name(label: Label, top: Prediction) -> str:
        rule = f"{top.rule.label}, the limit B7" if label.rule == "block" and top.limits.decoding else top.rule.label
        return f"{top.rule.label}, {label.stop}" if label.stop else rule

    artists, labels = _curves(ax, plan, plan.chains, _tokens_of, name)
    shown = [claim for claim in _LINES if claim is not WHOLE_DECODING or not plan.of("block")]
    artists += _limits(ax, plan.of(plan.chains[0]), {claim: _LINES[claim] for claim in shown}, labels)
    _finish(ax, labels, "drafted tokens per call, k", "tokens per target call")
    ax.set_title("What the pair gives (colour), and what to compare it with (grey)", loc="left")
    return artists


def trees(ax: Axes, plan: Plan) -> list[Artist]:
    """Tokens per call of trees against their nodes: every rule with ranks, and the limits of such trees."""
    artists, labels = _curves(ax, plan, plan.trees, _tokens_of, lambda label, _: str(label))
    artists += _limits(ax, plan.of(plan.trees[0]), {claim: _LINES[claim] for claim in (TEXT, IID_BRANCHING)}, labels)
    of_rule = {label.rule: label for label in reversed(plan.trees)}  # T1 once per rule
    for rule, label in of_rule.items():
        artists += _limits(ax, plan.of(label), {IID_CHANNEL: _LINES[IID_CHANNEL]}, labels, f", {rule}")
    _finish(ax, labels, "draft nodes per call, k", "tokens per target call")
    ax.set_title("Draft trees: best found (colour), and limits (grey)", loc="left")
    return artists


def speedup(ax: Axes, plan: Plan) -> list[Artist]:
    """Predicted speed-up against k for every rule and kind of shape, with its interval, and where each is best."""

    def name(label: Label, top: Prediction) -> str:
        return f"{label}: {_speedup_of(top).best:.2f}x at k = {top.shape.nodes}"

    artists, labels = _curves(ax, plan, plan.labels, _speedup_of, name, mark_best=True)
    artists.append(ax.axhline(1.0, color=GREY, linewidth=1.0, linestyle=":"))
    note(ax, "plain decoding", (1, 1.0), (2, 4))
    _finish(ax, labels, "drafted tokens per call, k", "speed-up over plain decoding")
    ax.set_title("Predicted speed-up", loc="left")
    return artists


def write_figures(plan: Plan, folder: Path) -> list[Path]:
    """Write ``tokens_per_call``, ``trees`` and, with costs, ``speedup``."""
    figures: dict[str, Callable[[Axes, Plan], list[Artist]]] = {}
    if plan.chains:
        figures["tokens_per_call"] = tokens_per_call
    if plan.trees:
        figures["trees"] = trees
    if plan.best.speedup is not None:
        figures["speedup"] = speedup
    written = []
    for name, draw in figures.items():
        written += save_figure(lambda figure, draw=draw: draw(figure.add_subplot(), plan), (8.4, 4.6), folder / name)  # type: ignore[misc]
    return written


_LINES: Mapping[LimitClaim, tuple[str, Any]] = {
    WHOLE_DECODING: ("any lossless rule", "-"),
    BY_START: ("any lossless rule", "-"),
    IID_FORMULA: ("token", (0, (1, 1))),
    TEXT: ("drafts that do not sample", "--"),
    IID_BRANCHING: ("B6", "-."),
    IID_CHANNEL: ("trees", (0, (5, 1, 1, 1, 1, 1))),
}
"""What each limit is about, in few words, and how its line is drawn."""


def _tokens_of(prediction: Prediction) -> Interval:
    return prediction.tokens_per_call


def _speedup_of(prediction: Prediction) -> Interval:
    assert prediction.speedup is not None
    return prediction.speedup


def _curves(
    ax: Axes,
    plan: Plan,
    names: Sequence[Label],
    value: Callable[[Prediction], Interval],
    describe: Callable[[Label, Prediction], str],
    *,
    mark_best: bool = False,
) -> tuple[list[Artist], list[LineEnd]]:
    """A line with its interval for every rule and kind of shape, dashed where the draft stops; trees have dots."""
    artists: list[Artist] = []
    labels: list[LineEnd] = []
    of_rules = colours_of(list({p.rule.name: p.rule for p in plan.predictions}.values()))
    for name in names:
        predictions, colour = plan.of(name), of_rules[name.rule]
        style = "--" if name.stop else "-"
        artists += _band(ax, predictions, value, colour, marker=None if name.chain else ".", style=style)
        top = max(predictions, key=lambda p: value(p).best)
        if mark_best:
            artists += ax.plot([top.shape.nodes], [value(top).best], "o", color=colour, markersize=6)
        labels.append((predictions[-1].shape.nodes, value(predictions[-1]).best, describe(name, top), colour))
    return artists, labels


def _limits(
    ax: Axes,
    predictions: Sequence[Prediction],
    lines: Mapping[LimitClaim, tuple[str, Any]],
    labels: list[LineEnd],
    of: str = "",
) -> list[Artist]:
    """Grey lines of the limits that are known at every size; their names join `labels`."""
    artists: list[Artist] = []
    ks = [p.shape.nodes for p in predictions]
    for claim, (about, style) in lines.items():
        heights = [height for p in predictions if (height := p.compared(claim)) is not None]
        if len(heights) == len(ks):
            artists += ax.plot(ks, heights, linestyle=style, color=GREY, linewidth=1.2)
            idealised = " if i.i.d." if claim.scope is IDEALISED else ""
            labels.append((ks[-1], heights[-1], f"{claim.heading} ({about}{idealised}){of}", GREY))
    return artists


def _band(
    ax: Axes,
    predictions: Sequence[Prediction],
    value: Callable[[Prediction], Interval],
    colour: str,
    marker: str | None,
    style: str = "-",
) -> list[Artist]:
    ks = [p.shape.nodes for p in predictions]
    intervals = [value(p) for p in predictions]
    marker = "o" if len(ks) == 1 else marker
    artists: list[Artist] = list(
        ax.plot(ks, [i.best for i in intervals], style, color=colour, linewidth=1.2 if marker else 2, marker=marker)
    )
    low, high = [i.low for i in intervals], [i.high for i in intervals]
    artists.append(ax.fill_between(ks, low, high, color=colour, alpha=0.2, linewidth=0))
    return artists


def _finish(ax: Axes, labels: Sequence[LineEnd], below: str, beside: str) -> None:
    """Whole numbers of drafts from 1 to the last, heights as drawn so far, names of axes and at the ends of lines."""
    ax.set_xlim(1.0, max(2.0, *(x for x, *_ in labels)))
    ax.set_ylim(ax.get_ylim())
    ax.xaxis.set_major_locator(whole_ticks())
    ax.set_xlabel(below)
    ax.set_ylabel(beside)
    name_ends(ax, labels)
