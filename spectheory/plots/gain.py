"""What M drafts save over one at a single position: against M, and against the draft's share."""

from __future__ import annotations

from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, Axes, Figure, name_ends, note, titled

_COLOURS = (BLUE, GREEN, ORANGE)


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Uniform pairs on the left, Bernoulli pairs on the right."""
    uniform, bernoulli = figure.subplots(1, 2)
    _uniform(uniform, data)
    _bernoulli(bernoulli, data["bernoulli"])
    uniform.set_ylabel("rejections saved by M drafts over one, per position")


def _uniform(ax: Axes, data: dict[str, Any]) -> None:
    labels = []
    for row, colour in zip(data["uniform"], _COLOURS, strict=True):
        ax.axhline(row["limit"], color=GREY, linewidth=0.8, linestyle="--")
        ax.plot(data["drafts"], row["exact"], color=colour, linewidth=1)
        dots(ax, data["drafts"], row["observed"], colour)
        labels.append((data["drafts"][-1], row["exact"][-1], f"r = {row['ratio']:g}", colour))
    ax.set_xlabel(f"drafts, M ({data['trials']:,} positions a curve)")
    ax.set_xticks(data["drafts"][::3])
    titled(
        ax,
        "Target uniform, draft uniform on r times the tokens:\n"
        "(1 - 1/r) - (1 - 1/r)$^M$, exact; dashed: TV = 1 - 1/r, many drafts",
        9.5,
    )
    name_ends(ax, labels)


def _bernoulli(ax: Axes, data: dict[str, Any]) -> None:
    labels = []
    v, shares = data["target_share"], data["shares"]
    ax.plot(shares, [u - v for u in shares], color=GREY, linewidth=0.8, linestyle="--")
    for line, colour in zip(data["lines"], _COLOURS, strict=True):
        ax.plot(shares, line["exact"], color=colour, linewidth=1)
        dots(ax, data["draft_shares"], line["observed"], colour)
        top = max(range(len(shares)), key=lambda i, of=line["exact"]: of[i])  # type: ignore[misc]
        labels.append((shares[top], line["exact"][top], f"M = {line['drafts']}", colour))
    labels.append((shares[-1], shares[-1] - v, "u - v", GREY))
    ax.set_xlabel(f"u, the draft's share of a token; the target's is v = {v:g}")
    titled(
        ax,
        "Draft Bernoulli(u), target Bernoulli(v), u ≥ v:\n"
        "(u - v)(1 - u$^{M-1}$), exact; dashed: TV = u - v, many drafts",
        9.5,
    )
    for x, y, text, colour in labels[:-1]:
        note(ax, text, (x, y), (2, 5), colour, 8.5)
    name_ends(ax, labels[-1:])
