"""A prediction as figures: each takes a plan and an axes, draws, and returns its artists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.errors import load_extra
from spectheory.intervals import Interval
from spectheory.plots.style import GREY, Label, colours_of, name_ends, save_figure
from spectheory.prediction import Plan, Prediction

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


def tokens_per_call(ax: Axes, plan: Plan) -> list[Artist]:
    """Tokens per call of chains against k: every rule with its interval, the i.i.d. formula, and the limits."""
    artists, labels = _curves(
        ax,
        plan,
        plan.chains,
        _tokens_of,
        lambda _, top: top.rule.label,
    )
    first = plan.of(plan.chains[0])
    lines = [(label, style, [value(p) for p in first]) for label, style, value in _LIMIT_LINES]
    artists += _limits(ax, [p.shape.nodes for p in first], lines, labels)
    _finish(ax, labels)
    ax.set_xlabel("drafted tokens per call, k")
    ax.set_ylabel("tokens per target call")
    ax.set_title("What the pair gives (colour), and what to compare it with (grey)", loc="left")
    return artists


def trees(ax: Axes, plan: Plan) -> list[Artist]:
    """Tokens per call of trees against their nodes: every rule with ranks, and the limits of such trees."""
    names = plan.trees
    artists, labels = _curves(ax, plan, names, _tokens_of, lambda label, _: label)
    first = plan.of(names[0])
    lines = [(label, style, [value(p) for p in first]) for label, style, value in _LIMIT_LINES if label in _OF_TREES]
    artists += _limits(ax, [p.shape.nodes for p in first], lines, labels)
    of_rule = {name.split()[0]: name for name in reversed(names)}  # T1 once per rule
    for name in of_rule.values():
        channel = [p.limits.iid_channel for p in plan.of(name)]
        line = (f"i.i.d. reading T1, {name.split()[0]}", (0, (5, 1, 1, 1, 1, 1)), channel)
        artists += _limits(ax, [p.shape.nodes for p in plan.of(name)], [line], labels)
    _finish(ax, labels)
    ax.set_xlabel("draft nodes per call, k")
    ax.set_ylabel("tokens per target call")
    ax.set_title("Draft trees: best found (colour), and limits (grey)", loc="left")
    return artists


def speedup(ax: Axes, plan: Plan) -> list[Artist]:
    """Predicted speed-up against k for every rule and kind of shape, with its interval, and where each is best."""

    def name(label: str, top: Prediction) -> str:
        return f"{label}: {_speedup_of(top).best:.2f}x at k = {top.shape.nodes}"

    artists, labels = _curves(ax, plan, plan.labels, _speedup_of, name, mark_best=True)
    artists.append(ax.axhline(1.0, color=GREY, linewidth=1.0, linestyle=":"))
    ax.annotate("plain decoding", (1, 1.0), textcoords="offset points", xytext=(2, 4), color=GREY, fontsize=8)
    _finish(ax, labels)
    ax.set_xlabel("drafted tokens per call, k")
    ax.set_ylabel("speed-up over plain decoding")
    ax.set_title("Predicted speed-up", loc="left")
    return artists


def write_figures(plan: Plan, folder: Path) -> list[Path]:
    """Write ``tokens_per_call``, ``trees`` and, with costs, ``speedup`` as PNG and SVG; return the paths.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    OutputError
        If the folder cannot be written.
    """
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


def _interval_best(interval: Interval | None) -> float | None:
    return None if interval is None else interval.best


_LIMIT_LINES: Sequence[tuple[str, Any, Callable[[Prediction], float | None]]] = (
    ("any lossless rule, one call ≤", "-", lambda p: _interval_best(p.limits.one_call)),
    ("i.i.d. formula C1 (token)", (0, (1, 1)), lambda p: p.iid_tokens_per_call),
    ("drafts that do not sample ≤ (B6)", "--", lambda p: _interval_best(p.limits.text)),
    ("i.i.d. reading B2'", "-.", lambda p: p.limits.iid_branching),
    ("i.i.d. reading T1", (0, (5, 1, 1, 1, 1, 1)), lambda p: p.limits.iid_channel),
)


_OF_TREES = ("drafts that do not sample ≤ (B6)", "i.i.d. reading B2'")


def _tokens_of(prediction: Prediction) -> Interval:
    return prediction.tokens_per_call


def _speedup_of(prediction: Prediction) -> Interval:
    assert prediction.speedup is not None
    return prediction.speedup


def _curves(
    ax: Axes,
    plan: Plan,
    names: Sequence[str],
    value: Callable[[Prediction], Interval],
    describe: Callable[[str, Prediction], str],
    *,
    mark_best: bool = False,
) -> tuple[list[Artist], list[Label]]:
    """A line with its interval for every rule and kind of shape; trees are dotted with their sizes."""
    artists: list[Artist] = []
    labels: list[Label] = []
    of_rules = colours_of(list({p.rule.name: p.rule for p in plan.predictions}.values()))
    for name in names:
        predictions = plan.of(name)
        colour = of_rules[predictions[0].rule.name]
        artists += _band(ax, predictions, value, colour, marker="." if " " in name else None)
        top = max(predictions, key=lambda p: value(p).best)
        if mark_best:
            artists += ax.plot([top.shape.nodes], [value(top).best], "o", color=colour, markersize=6)
        labels.append((predictions[-1].shape.nodes, value(predictions[-1]).best, describe(name, top), colour))
    return artists, labels


def _limits(
    ax: Axes, ks: Sequence[int], lines: Sequence[tuple[str, Any, list[float | None]]], labels: list[Label]
) -> list[Artist]:
    """Grey lines of what is known at every size; their names join `labels`."""
    artists: list[Artist] = []
    for label, style, values in lines:
        heights = [height for height in values if height is not None]
        if len(heights) == len(ks):
            artists += ax.plot(ks, heights, linestyle=style, color=GREY, linewidth=1.2)
            labels.append((ks[-1], heights[-1], label, GREY))
    return artists


def _band(
    ax: Axes,
    predictions: Sequence[Prediction],
    value: Callable[[Prediction], Interval],
    colour: str,
    marker: str | None,
) -> list[Artist]:
    ks = [p.shape.nodes for p in predictions]
    intervals = [value(p) for p in predictions]
    marker = "o" if len(ks) == 1 else marker
    artists: list[Artist] = list(
        ax.plot(ks, [i.best for i in intervals], color=colour, linewidth=2 if marker is None else 1.2, marker=marker)
    )
    low, high = [i.low for i in intervals], [i.high for i in intervals]
    artists.append(ax.fill_between(ks, low, high, color=colour, alpha=0.2, linewidth=0))
    return artists


def _finish(ax: Axes, labels: Sequence[Label]) -> None:
    """Whole numbers of drafts from 1 to the last, heights as drawn so far, names at the ends."""
    ax.set_xlim(1.0, max(2.0, *(x for x, *_ in labels)))
    ax.set_ylim(ax.get_ylim())
    ax.xaxis.set_major_locator(load_extra("matplotlib.ticker", extra="plots").MaxNLocator(integer=True))
    name_ends(ax, labels)
