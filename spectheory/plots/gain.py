"""What M drafts save over one at a single position: against M, and against the draft's share."""

from __future__ import annotations

from typing import Any

from spectheory.plots.line_ends import name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, Axes, Figure, Look, caption, note, titled

_LOOKS = (Look(BLUE, "o"), Look(GREEN, "s"), Look(ORANGE, "D"))


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Uniform pairs on the left, Bernoulli pairs on the right."""
    uniform, bernoulli = figure.subplots(1, 2)
    draw_uniform(uniform, data)
    draw_bernoulli(bernoulli, data["bernoulli"])
    for ax in (uniform, bernoulli):
        ax.set_ylabel("rejections saved over one draft, per position")
    caption(
        figure,
        f"Lines: exact; markers: simulated, {data['trials']:,} positions a curve, 95% intervals; dashed: many drafts.",
    )


def draw_uniform(ax: Axes, data: dict[str, Any]) -> None:
    """Savings against M where target and draft are uniform."""
    labels = []
    for row, (colour, marker) in zip(data["uniform"], _LOOKS, strict=True):
        ax.axhline(row["limit"], color=GREY, linewidth=0.8, linestyle="--")
        ax.plot(data["drafts"], row["exact"], color=colour, linewidth=1.2)
        dots(ax, data["drafts"], row["observed"], colour, marker=marker)
        labels.append((data["drafts"][-1], row["exact"][-1], f"r = {row['ratio']:g}", colour))
    ax.set_xlabel("drafts, M")
    ax.set_xticks(data["drafts"][::3])
    titled(
        ax,
        "Target uniform, draft uniform on r times as many:\n(1 - 1/r) - (1 - 1/r)$^M$; dashed: TV = 1 - 1/r",
    )
    name_ends(ax, labels)


def draw_bernoulli(ax: Axes, data: dict[str, Any]) -> None:
    """Savings against the draft's share where both have two tokens."""
    labels = []
    v, shares = data["target_share"], data["shares"]
    ax.plot(shares, [u - v for u in shares], color=GREY, linewidth=0.8, linestyle="--")
    for line, (colour, marker) in zip(data["lines"], _LOOKS, strict=True):
        ax.plot(shares, line["exact"], color=colour, linewidth=1.2)
        dots(ax, data["draft_shares"], line["observed"], colour, marker=marker)
        top = max(range(len(shares)), key=lambda i, of=line["exact"]: of[i])  # type: ignore[misc]
        labels.append((shares[top], line["exact"][top], f"M = {line['drafts']}", colour))
    labels.append((shares[-1], shares[-1] - v, "u - v", GREY))
    ax.set_xlabel(f"the draft's share u of a token; the target's: v = {v:g}")
    titled(
        ax,
        "Draft Bernoulli(u), target Bernoulli(v), u ≥ v:\n(u - v)(1 - u$^{M-1}$); dashed: TV = u - v",
    )
    for x, y, text, colour in labels[:-1]:
        note(ax, text, (x, y), (2, 5), colour, 8.5)
    name_ends(ax, labels[-1:])
