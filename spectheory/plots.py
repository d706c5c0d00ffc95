"""Figures: each takes data and an axes, draws, and returns its artists. No global style is touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.errors import load_extra
from spectheory.files import write_whole
from spectheory.intervals import Interval
from spectheory.prediction import Plan, Prediction

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

COLOURS = {
    "token": "#0072B2",
    "block": "#D55E00",
    "race": "#009E73",
    "independent": "#CC79A7",
    "argmax": "#E69F00",
    "greedy": "#56B4E9",
}
"""One colour per rule (Okabe and Ito's palette, distinct for every kind of colour vision)."""
LIMIT_COLOUR = "#555555"


def tokens_per_call(ax: Axes, plan: Plan) -> list[Artist]:
    """Tokens per call against k: every rule with its interval, the i.i.d. formula, and the limits."""
    artists: list[Artist] = []
    labels: list[tuple[float, float, str, str]] = []
    for rule, predictions in _by_rule(plan).items():
        artists += _band(ax, predictions, lambda p: p.tokens_per_call, COLOURS[rule])
        labels.append(
            (predictions[-1].shape.k, predictions[-1].tokens_per_call.best, f"{rule} verification", COLOURS[rule])
        )
    first = next(iter(_by_rule(plan).values()))
    ks = [p.shape.k for p in first]
    for label, style, value in _LIMIT_LINES:
        heights = [height for p in first if (height := value(p)) is not None]
        if len(heights) < len(first):
            continue
        artists += ax.plot(ks, heights, linestyle=style, color=LIMIT_COLOUR, linewidth=1.2)
        labels.append((ks[-1], heights[-1], label, LIMIT_COLOUR))
    _label_ends(ax, labels)
    ax.set_xlabel("drafted tokens per call, k")
    ax.set_ylabel("tokens per target call")
    ax.set_title("What the pair gives (colour), and what to compare it with (grey)", loc="left")
    return artists


def speedup(ax: Axes, plan: Plan) -> list[Artist]:
    """Predicted speed-up against k for every rule, with its interval, and where each is best."""
    artists: list[Artist] = []
    labels: list[tuple[float, float, str, str]] = []
    for rule, predictions in _by_rule(plan).items():
        artists += _band(ax, predictions, _speedup_of, COLOURS[rule])
        top = max(predictions, key=lambda p: _speedup_of(p).best)
        artists += ax.plot([top.shape.k], [_speedup_of(top).best], "o", color=COLOURS[rule], markersize=6)
        labels.append(
            (
                predictions[-1].shape.k,
                _speedup_of(predictions[-1]).best,
                f"{rule}: {_speedup_of(top).best:.2f}x at k = {top.shape.k}",
                COLOURS[rule],
            )
        )
    artists.append(ax.axhline(1.0, color=LIMIT_COLOUR, linewidth=1.0, linestyle=":"))
    ax.annotate("plain decoding", (1, 1.0), textcoords="offset points", xytext=(2, 4), color=LIMIT_COLOUR, fontsize=8)
    _label_ends(ax, labels)
    ax.set_xlabel("drafted tokens per call, k")
    ax.set_ylabel("speed-up over plain decoding")
    ax.set_title("Predicted speed-up", loc="left")
    return artists


def write_figures(plan: Plan, folder: Path) -> list[Path]:
    """Write ``tokens_per_call`` and, with costs, ``speedup`` as PNG and SVG; return the paths.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    OutputError
        If the folder cannot be written.
    """
    figure_module = load_extra("matplotlib.figure", extra="plots")
    figures: dict[str, Callable[[Axes, Plan], list[Artist]]] = {"tokens_per_call": tokens_per_call}
    if plan.best.speedup is not None:
        figures["speedup"] = speedup
    written = []
    for name, draw in figures.items():
        figure = figure_module.Figure(figsize=(8.4, 4.6), layout="constrained")
        draw(figure.add_subplot(), plan)
        for suffix in ("png", "svg"):
            path = folder / f"{name}.{suffix}"
            details = {"format": suffix, "dpi": 160, "metadata": {"Date": None} if suffix == "svg" else None}
            write_whole(path, partial(figure.savefig, **details))
            written.append(path)
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


def _by_rule(plan: Plan) -> dict[str, list[Prediction]]:
    rules = dict.fromkeys(p.rule.name for p in plan.predictions)
    return {rule: sorted(plan.of(rule), key=lambda p: p.shape.k) for rule in rules}


def _speedup_of(prediction: Prediction) -> Interval:
    assert prediction.speedup is not None
    return prediction.speedup


def _band(
    ax: Axes, predictions: Sequence[Prediction], value: Callable[[Prediction], Interval], colour: str
) -> list[Artist]:
    ks = [p.shape.k for p in predictions]
    intervals = [value(p) for p in predictions]
    artists: list[Artist] = list(
        ax.plot(ks, [i.best for i in intervals], color=colour, linewidth=2, marker="o" if len(ks) == 1 else None)
    )
    low, high = [i.low for i in intervals], [i.high for i in intervals]
    artists.append(ax.fill_between(ks, low, high, color=colour, alpha=0.2, linewidth=0))
    return artists


def _label_ends(ax: Axes, labels: Sequence[tuple[float, float, str, str]]) -> None:
    """Write each line's name at its right end, with a leader to the line, pushed apart so that no two overlap."""
    ax.spines[["top", "right"]].set_visible(False)
    left, right = 1.0, max(2.0, *(x for x, *_ in labels))
    low, high = ax.get_ylim()
    gap, near, far = (high - low) / 18, right + (right - left) * 0.01 + 0.05, right + (right - left) * 0.05 + 0.2
    height = -float("inf")
    for x, y, text, colour in sorted(labels, key=lambda label: label[1]):
        height = max(y, height + gap)
        ax.plot([x, near, far], [y, height, height], color=colour, linewidth=0.7, clip_on=False)
        ax.annotate(
            text,
            (far, height),
            xytext=(2, 0),
            textcoords="offset points",
            color=colour,
            fontsize=8,
            va="center",
            annotation_clip=False,
        )
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    ax.xaxis.set_major_locator(load_extra("matplotlib.ticker", extra="plots").MaxNLocator(integer=True))
