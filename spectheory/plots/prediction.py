"""A prediction as figures: each takes a plan and an axes, draws, and returns its artists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

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
from spectheory.plots.line_ends import LineEnd, name_ends
from spectheory.plots.style import GREY, Artist, Axes, colours_of, looks_of, save_figure, titled, whole_ticks
from spectheory.prediction import Label, Plan, Prediction
from spectheory.verification import Rule


def tokens_per_call(ax: Axes, plan: Plan) -> list[Artist]:
    """Tokens per call of chains against k: every rule with its interval, the i.i.d. formula, and the limits of chains.

    T1 and B2' bound what trees give and are drawn by :func:`trees`.
    """

    def name(label: Label, top: Prediction) -> str:
        rule = f"{top.rule.label}, the limit B7" if label.rule == "block" and top.limits.decoding else top.rule.label
        return f"{top.rule.label}, {label.stop}" if label.stop else rule

    artists, labels = _curves(ax, plan, plan.chains, _tokens_of, name)
    shown = (BY_START, IID_FORMULA, TEXT) if plan.of("block") else (WHOLE_DECODING, BY_START, IID_FORMULA, TEXT)
    artists += _limits(ax, plan.of(plan.chains[0]), shown, labels)
    _finish(ax, labels, "drafted tokens per call, k", "tokens per target call")
    titled(ax, "Tokens per call of chains; grey: limits (dashed) and values as if i.i.d. (dotted)")
    return artists


def trees(ax: Axes, plan: Plan) -> list[Artist]:
    """Tokens per call of trees against their nodes: every rule with ranks, and the limits of such trees.

    T1 depends on the law of a rule's ranks: each rule has its own, in its colour.
    """
    artists, labels = _curves(ax, plan, plan.trees, _tokens_of, lambda label, _: str(label))
    artists += _limits(ax, plan.of(plan.trees[0]), (TEXT, IID_BRANCHING), labels)
    colours = colours_of(_rules(plan))
    for rule in dict.fromkeys(label.rule for label in plan.trees):
        first = next(label for label in plan.trees if label.rule == rule)
        artists += _limits(ax, plan.of(first), (IID_CHANNEL,), labels, of=f", {rule}", colour=colours[rule])
    _finish(ax, labels, "draft nodes per call, k = P", "tokens per target call")
    titled(ax, "Tokens per call of the best trees found; dashed: limit, dotted: values as if i.i.d.")
    return artists


def speedup(ax: Axes, plan: Plan) -> list[Artist]:
    """Predicted speed-up against k for every rule and kind of shape; its interval where each is best."""

    def name(label: Label, top: Prediction) -> str:
        return f"{label}: {_speedup_of(top).best:.2f}x at k = {top.shape.nodes}"

    artists, labels = _curves(ax, plan, plan.labels, _speedup_of, name, best_alone=True)
    artists.append(ax.axhline(1.0, color=GREY, linewidth=1.0, linestyle=":"))
    labels.append((1.0, 1.0, "plain decoding", GREY))
    _finish(ax, labels, "drafted tokens per call, k", "speed-up over plain decoding")
    titled(ax, "Predicted speed-up; bars: 95% intervals where each is largest")
    return artists


_APART = 0.06
"""How far the bars of two curves stand apart, in drafted tokens."""
_ROOM = 0.2
"""Beside the first and the last number of drafts."""


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


_ABOUT: Mapping[LimitClaim, str] = {
    WHOLE_DECODING: "any lossless rule",
    BY_START: "any lossless rule",
    IID_FORMULA: "token",
    TEXT: "drafts that do not sample",
    IID_BRANCHING: "B6",
    IID_CHANNEL: "trees",
}
"""What each limit is about, in few words."""


def _rules(plan: Plan) -> list[Rule]:
    return list({p.rule.name: p.rule for p in plan.predictions}.values())


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
    best_alone: bool = False,
) -> tuple[list[Artist], list[LineEnd]]:
    """A line for every rule and kind of shape, with intervals.

    Trees beside chains are dashed and hollow, and so are drafts that stop.

    With `best_alone` intervals are drawn where each line is highest only, one beside the other: many would overlap.
    """
    artists: list[Artist] = []
    labels: list[LineEnd] = []
    looks, mixed = looks_of(_rules(plan)), any(name.chain for name in names)
    for place, name in enumerate(names):
        predictions, look = plan.of(name), looks[name.rule]
        top = max(predictions, key=lambda p: value(p).best)
        ks, best = [p.shape.nodes for p in predictions], [value(p).best for p in predictions]
        solid = (name.chain or not mixed) and not name.stop
        colour, marker = look
        face = colour if solid else "white"
        artists += ax.plot(ks, best, f"{marker}-" if solid else f"{marker}--", color=colour, mfc=face, ms=4.5, lw=1.4)
        barred = [top] if best_alone else predictions
        shift = _APART * (place - (len(names) - 1) / 2) if best_alone else 0.0
        artists += _bars(ax, [p.shape.nodes + shift for p in barred], [value(p) for p in barred], look.colour)
        labels.append((ks[-1], best[-1], describe(name, top), look.colour))
    return artists, labels


def _bars(ax: Axes, ks: Sequence[float], intervals: Sequence[Interval], colour: str) -> list[Artist]:
    """A bar from low to high at each k."""
    low, high = [i.low for i in intervals], [i.high for i in intervals]
    return [ax.vlines(ks, low, high, color=colour, linewidth=1.8, alpha=0.6)]


def _limits(
    ax: Axes,
    predictions: Sequence[Prediction],
    claims: Iterable[LimitClaim],
    labels: list[LineEnd],
    of: str = "",
    colour: str = GREY,
) -> list[Artist]:
    """Lines of the limits that are known at every size: dashed, or dotted if idealised; their names join `labels`."""
    artists: list[Artist] = []
    ks = [p.shape.nodes for p in predictions]
    for claim in claims:
        heights = [height for p in predictions if (height := p.compared(claim)) is not None]
        if len(heights) == len(ks):
            idealised = claim.scope is IDEALISED
            artists += ax.plot(ks, heights, linestyle=":" if idealised else "--", color=colour, linewidth=1.3)
            about = f"{_ABOUT[claim]}{' if i.i.d.' if idealised else ''}{of}"
            labels.append((ks[-1], heights[-1], f"{claim.heading} ({about})", colour))
    return artists


def _finish(ax: Axes, labels: Sequence[LineEnd], below: str, beside: str) -> None:
    """Whole numbers of drafts from 1 to the last, heights as drawn so far, names of axes and at the ends of lines."""
    ax.set_xlim(1.0 - _ROOM, max(2.0, *(x for x, *_ in labels)) + _ROOM)
    ax.set_ylim(ax.get_ylim())
    ax.xaxis.set_major_locator(whole_ticks())
    ax.set_xlabel(below)
    ax.set_ylabel(beside)
    name_ends(ax, labels)
