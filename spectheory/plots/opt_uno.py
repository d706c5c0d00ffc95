"""OPT against UNO along whole texts: bias for rejections, and win rates by independent scores."""

from __future__ import annotations

from typing import Any

from spectheory.plots.line_ends import name_ends
from spectheory.plots.observed import dots
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, PINK, Axes, Figure, caption, plain_axes, titled

Data = dict[str, Any]
Rows = list[dict[str, Any]]

SCORES = (("judge", "third model", GREEN, "s"), ("target", "target", GREY, "^"), ("typical", "typical", PINK, "v"))
DECODERS = (("opt", "OPT", BLUE, "o"), ("uno", "UNO", ORANGE, "D"))


def draw(figure: Figure, data: Data) -> None:
    """Left: the front. Middle: OPT against UNO. Right: both against plain sampling."""
    axes = figure.subplots(1, 3)
    draw_front(axes[0], data["settings"])
    ladder = [row for row in data["settings"] if row["form"] == "threshold"]
    draw_against_uno(axes[1], ladder)
    draw_against_plain(axes[2], ladder)
    caption(
        figure,
        f"built-in pair, {data['trials']:,} prompts a setting, {data['tokens']} tokens a text, 95% intervals;\n"
        "filled: thresholds e, b = min(1, (p + e)/q);  open: share t = 0.4",
    )


def draw_front(ax: Axes, rows: Rows) -> None:
    """Bias against rejections of both decoders, and the front."""
    distance = rows[0]["opt: distance"]["best"]
    ax.plot([distance, 0], [0, distance], color=GREY, linewidth=1.2)
    for key, _, colour, marker in DECODERS:
        for form in ("threshold", "share"):
            part = [row for row in rows if row["form"] == form]
            x, y = ([row[f"{key}: {what}"] for row in part] for what in ("rejections", "loss"))
            dots(ax, x, y, colour, marker=marker, filled=form == "threshold", size=5, clip=False)
    ax.set_xlim(0, 1.12 * distance)
    ax.set_ylim(0, 1.12 * distance)
    ax.set_xlabel("rejections per token")
    ax.set_ylabel("bias per token (total variation)")
    titled(ax, "a  Rejections and bias,\n    along texts")
    ax.annotate("OPT", (0.55 * distance, 0.36 * distance), color=BLUE, fontsize=9, ha="right")
    ax.annotate("UNO", (0.7 * distance, 0.52 * distance), color=ORANGE, fontsize=9)
    ax.annotate("front: rejections\n+ bias = TV", (0.03 * distance, 0.03 * distance), color=GREY, fontsize=8)
    plain_axes(ax)


def _frame(ax: Axes, rows: Rows, title: str) -> range:
    """Win rates over the thresholds, evenly spaced; one half is marked."""
    places = range(len(rows))
    ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_xticks(list(places), [f"{row['amount']:g}" for row in rows])
    ax.set_xlim(-0.3, len(rows) - 0.7)
    ax.set_ylim(0.25, 0.7)
    ax.set_xlabel("over-acceptance e")
    ax.set_ylabel("win rate (ties count half)")
    titled(ax, title)
    return places


def draw_against_uno(ax: Axes, rows: Rows) -> None:
    """Win rates of OPT over UNO by three scores."""
    places = _frame(ax, rows, "b  Texts that OPT\n    wins over UNO")
    ends = []
    for (key, name, colour, marker), beside in zip(SCORES, (-0.1, 0.0, 0.1), strict=True):
        seen = [row[f"{key}: opt over uno"] for row in rows]
        at = [place + beside for place in places]
        ax.plot(at, [each["best"] for each in seen], color=colour, linewidth=1.2)
        dots(ax, at, seen, colour, marker=marker, clip=False)
        ends.append((at[-1], seen[-1]["best"], name, colour))
    name_ends(ax, ends)


def draw_against_plain(ax: Axes, rows: Rows) -> None:
    """Win rates of both decoders over plain sampling."""
    places = _frame(ax, rows, "c  Texts that win over plain\n    (third model's score)")
    ends = []
    for key, name, colour, marker in DECODERS:
        seen = [row[f"judge: {key} over plain"] for row in rows]
        ax.plot(places, [each["best"] for each in seen], color=colour, linewidth=1.2)
        dots(ax, list(places), seen, colour, marker=marker, size=5, clip=False)
        ends.append((float(places[-1]), seen[-1]["best"], name, colour))
    name_ends(ax, ends)
