"""Where calls start and where they are lost: four panels of all texts. Pages show one text in colour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spectheory.plots.chart import arms, banded
from spectheory.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    YELLOW,
    Axes,
    Figure,
    Look,
    caption,
    note,
    plain_axes,
    save_figure,
    titled,
    whole_ticks,
)
from spectheory.prediction.where import Where

_SEEN = 0.01
"""Share of the calls below which a group is left out of a panel."""
_LOOKS = tuple(map(Look, (SKY, BLUE, GREEN, YELLOW, ORANGE, PINK, BLACK), "os^DvPX"))
"""One for each length."""


def write_where(settings: Sequence[Where], folder: Path) -> list[Path]:
    """Write ``where`` of the last setting."""
    last = settings[-1]

    def draw(figure: Figure) -> None:
        for ax, panel in zip(figure.subplots(2, 2).flat, (_by_depth, _first_draft, _along, _classes), strict=True):
            panel(ax, last)
        caption(
            figure,
            f"{last.rule.label}, {last.shape}: exact for the texts of the trace; bars and bands are 95% intervals over "
            "prompts",
        )

    return save_figure(draw, (9.0, 7.0), folder / "where")


def _by_depth(ax: Axes, losses: Where) -> None:
    """Survival at the calls' own starts, a line per length, and its mean over positions."""
    if not losses.depths:
        return ax.set_axis_off()
    everywhere = losses.depths[-1].everywhere
    ax.plot(range(1, len(everywhere) + 1), everywhere, color=GREY, linestyle="--", linewidth=1.2, label="all positions")
    for at, look in reversed(list(zip(losses.depths, _LOOKS, strict=False))):  # short lines above long ones
        banded(ax, range(1, len(at.survival) + 1), at.survival, look, 0.15, label=_length(at.shape))
    ax.set_xlabel("depth i")
    ax.set_ylabel("P(the call accepts i drafts or more)")
    ax.set_ylim(0, 1)
    ax.xaxis.set_major_locator(whole_ticks())
    titled(ax, "a  acceptance by depth at the calls' own starts")
    ax.legend(frameon=False)
    plain_axes(ax)


def _first_draft(ax: Axes, losses: Where) -> None:
    """Acceptance of a call's first draft by k, and its mean over positions."""
    if not losses.depths:
        return ax.set_axis_off()
    ks = list(range(len(losses.depths)))
    firsts = [at.survival[0] for at in losses.depths]
    for x, first, (colour, marker) in zip(ks, firsts, _LOOKS, strict=False):
        ax.errorbar([x], [first.best], arms(first), fmt=marker, color=colour, markersize=6, capsize=3)
        note(ax, f"{first.best:.3f}", (x, first.best), (7, -3), colour)
    ax.plot(ks, [first.best for first in firsts], color=GREY, linewidth=0.8, zorder=0)
    mean = losses.depths[0].everywhere[0]
    ax.axhline(mean, color=GREY, linestyle="--", linewidth=1.2)
    note(ax, f"mean over all positions: {mean:.3f}", (ks[-1], mean), (0, 4), ha="right")
    ax.set_xticks(ks, [_length(at.shape) for at in losses.depths])
    ax.set_xlim(-0.4, ks[-1] + 0.7)
    ax.set_ylabel("P(a call's first draft is accepted)")
    titled(ax, "b  a call's first draft, by the length of its chain")
    plain_axes(ax)


def _along(ax: Axes, losses: Where) -> None:
    """Tokens per call by where the calls start."""
    if not losses.depths:
        return ax.set_axis_off()
    groups = [group for group in losses.by_context or losses.by_position if group.share.best >= _SEEN]
    xs = range(len(groups))
    rates = [group.rate for group in groups]
    below, above = [y.best - y.low for y in rates], [y.high - y.best for y in rates]
    best = [y.best for y in rates]
    ax.errorbar(xs, best, [below, above], fmt="o-", color=BLUE, markersize=5, capsize=3, linewidth=1)
    mean = 1 + sum(each.best for each in losses.depths[-1].survival)
    ax.axhline(mean, color=GREY, linestyle="--", linewidth=1.2)
    ax.set_xticks(xs, [group.name for group in groups], rotation=30, ha="right", rotation_mode="anchor")
    ax.set_xlabel("tokens before the call, prompt included" if losses.by_context else "position in the text")
    ax.set_ylabel("tokens per call there")
    titled(ax, "c  calls along the text (dashed: all calls)")
    plain_axes(ax)


def _classes(ax: Axes, losses: Where) -> None:
    """The share of tokens and the share of lost calls of each class, the most costly first."""
    groups = [group for group in losses.classes if group.share.best >= _SEEN]
    if not groups:
        return ax.set_axis_off()
    tokens = sum(group.tokens for group in losses.classes)
    ordered = sorted(groups, key=lambda group: group.calls)
    ys = range(len(ordered))
    for y, group in zip(ys, ordered, strict=True):
        share, of_tokens = group.share * 100.0, 100 * group.tokens / tokens
        ax.plot([of_tokens, share.best], [y, y], color=GREY, linewidth=0.8, zorder=0)
        ax.errorbar([share.best], [y], xerr=arms(share), fmt="o", color=ORANGE, markersize=6, capsize=3)
        ax.plot([of_tokens], [y], "|", color=BLACK, markersize=13, markeredgewidth=2)
        note(ax, f"{group.rate.best:.2f} lost per token", (max(share.high, of_tokens), y), (8, -3))
    ax.set_yticks(ys, [group.name for group in ordered])
    ax.set_xlim(0, 1.35 * max(100 * max(group.share.high, group.tokens / tokens) for group in ordered))
    ax.set_xlabel("share of all lost calls (dot), of all tokens (bar), in %")
    titled(ax, "d  tokens at which calls are lost")
    plain_axes(ax)


def _length(shape: object) -> str:
    """The length of a chain; another shape by its name."""
    k = getattr(shape, "k", None)
    return f"k = {k}" if k is not None else str(shape)
