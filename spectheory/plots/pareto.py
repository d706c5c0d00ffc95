"""Rejections against bias at one position, and one biased output law token by token."""

from __future__ import annotations

from typing import Any

from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, Axes, Figure, caption, plain_axes, titled

_LOOKS = {"OPT": (BLUE, "o"), "UNO": (ORANGE, "D")}


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """The front with both rules, and where the bias of one setting lies."""
    front, law = figure.subplots(1, 2, width_ratios=(1.2, 1))
    draw_front(front, data)
    draw_law(law, data["law"])
    for ax in (front, law):
        plain_axes(ax)
    caption(
        figure,
        f"Lines: exact; markers: {data['trials']:,} trials each, 95% intervals, mostly narrower than the markers.",
    )


def draw_front(ax: Axes, data: dict[str, Any]) -> None:
    """Rejections against bias of both rules, and what no rule reaches."""
    distance, line = data["distance"], data["uno_line"]
    ax.fill_between([0, distance], [distance, 0], color=GREY, alpha=0.12, linewidth=0)
    ax.plot([0, distance], [distance, 0], color=GREY, linewidth=1.2)
    ax.plot(line["reject"], line["bias"], color=ORANGE, linewidth=1)
    for rule, points in data["rules"].items():
        colour, marker = _LOOKS[rule]
        for even in (True, False):
            chosen = [point for point in points if point["name"].startswith("theta") == even]
            across, up = ([point[name] for point in chosen] for name in ("reject", "bias"))
            dots(ax, across, up, colour, marker=marker, filled=even, size=4.5)
    ax.set_xlim(-0.02 * distance, 1.12 * distance)
    ax.set_ylim(-0.02 * distance, 1.08 * distance)
    ax.set_aspect("equal")
    ax.set_xlabel("probability of a rejection")
    ax.set_ylabel("bias: TV between output and target")
    titled(ax, f"Rejection against bias at one position, TV(P, Q) = {distance:g}")
    _notes(ax, distance)


def _notes(ax: Axes, distance: float) -> None:
    notes = (
        (0.06, 0.36, "rejection + bias < TV:\nno rule for one draft (Y6)", GREY),
        (0.06, 0.14, "OPT, recovery from (P - Q)$_+$:\non the exact front", BLUE),
        (0.55, 0.86, "UNO, recovery from P:\non its own exact curve", ORANGE),
        (0.55, 0.75, "filled: one share of over-\nacceptance; open: one per token", GREY),
    )
    for x, y, text, colour in notes:
        ax.annotate(text, (x * distance, y * distance), fontsize=8, color=colour, va="center")


def draw_law(ax: Axes, law: dict[str, Any]) -> None:
    """The output law of both rules beside target and draft."""
    tokens = range(len(law["target"]))
    ax.bar(tokens, law["target"], width=0.8, color=GREY, alpha=0.2)
    ax.hlines(law["draft"], [x - 0.4 for x in tokens], [x + 0.4 for x in tokens], color=GREEN, linewidth=1.5)
    for shift, (rule, found) in zip((-0.18, 0.18), law["rules"].items(), strict=True):
        colour, marker = _LOOKS[rule]
        ax.hlines(found["exact"], [x + shift - 0.15 for x in tokens], [x + shift + 0.15 for x in tokens], color=colour)
        dots(ax, [x + shift for x in tokens], found["observed"], colour, marker=marker, size=4)
    ax.set_xticks(tokens, [str(x) for x in tokens])
    ax.set_xlabel("token")
    ax.set_ylabel("probability of the token")
    titled(ax, f"Output law of both rules at the share {law['theta']:g}")
    notes = (("target P (bars)", GREY), ("draft Q (lines)", GREEN), ("OPT", BLUE), ("UNO", ORANGE))
    for i, (text, colour) in enumerate(notes):
        ax.annotate(text, (0.97, 0.95 - 0.06 * i), xycoords="axes fraction", ha="right", fontsize=8.5, color=colour)
