"""Plain, speculative and batch decoding beside each other, from a recorded run of the built-in pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulations.sweeps.base import Data, Scale, Sweep, Tallies
from simulations.sweeps.decoding_run import BRANCHES, DRAFTS, recorded
from spectheory.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, Axes, Figure, caption, plain_axes, titled

TITLES = {
    "plain": "plain decoding: every token takes a pass of the target",
    "token": f"speculative decoding: {DRAFTS} drafts a call, token verification",
    "batch": f"batch decoding: {BRANCHES} chains of {DRAFTS} drafts a call, recursive rejection",
}


def data(_: Scale, __: Tallies) -> Data:
    """The recorded calls; nothing is simulated."""
    run = recorded()
    return {
        "rows": [{"title": TITLES[name], "calls": calls} for name, calls in run["methods"].items()],
        **{name: run[name] for name in ("prompt", "settings", "pair", "hardware")},
    }


_LOOP = "#DDDDDD"
_OUTPUT = {"recovered": ORANGE, "bonus": BLUE, "plain": GREY}
_MILLI = 1000.0
_HEIGHT = 0.8
"""Of an output token, where the bars of passes are 1 high."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """The rows below each other on one axis of time."""
    rows = data["rows"]
    most = [max(len(call["output"]) for call in row["calls"]) for row in rows]
    axes = figure.subplots(len(rows), 1, sharex=True, height_ratios=[1.25 + _HEIGHT * (each + 0.2) for each in most])
    longest = max(_seconds(row) for row in rows) * _MILLI
    for letter, ax, row, lines in zip("abc", axes, rows, most, strict=True):
        draw_row(ax, row, longest, lines)
        tokens = sum(len(call["output"]) for call in row["calls"])
        titled(ax, f"{letter}  {row['title']}:  {tokens} tokens in {len(row['calls'])} calls, "
                   f"{_seconds(row) * _MILLI:.1f} ms")  # fmt: skip
    axes[-1].set_xlabel("time, ms")
    caption(
        figure,
        "Bars: passes of the draft (blue) and of the target (black), drawing and verifying (light); ✗: drafts "
        "verified in vain.\nBelow, what a call outputs: accepted drafts (green), the recovered token after a rejection "
        "(orange),\nthe bonus token after the last draft (blue), tokens of plain decoding (grey).",
    )


def _seconds(row: Mapping[str, Any]) -> float:
    return float(sum(call["seconds"] for call in row["calls"]))


def draw_row(ax: Axes, row: Mapping[str, Any], longest: float, lines: int) -> None:
    """One way to decode: its calls one after the other, with room for so many output tokens each."""
    begin = 0.0
    for call in row["calls"]:
        end = begin + call["seconds"] * _MILLI
        _passes(ax, call, begin, end)
        _tokens(ax, call, begin, end)
        begin = end
    ax.set_ylim(-_HEIGHT * (lines + 0.2), 1.05)
    ax.set_xlim(0, longest * 1.005)
    ax.set_yticks([])
    plain_axes(ax)
    ax.spines["left"].set_visible(False)


def _passes(ax: Axes, call: Mapping[str, Any], begin: float, end: float) -> None:
    """Draft passes, alike in length as their sum alone is recorded, then the target's; the rest is the loop."""
    drafts = call["depth"] if call["draft_seconds"] else 0
    each = call["draft_seconds"] * _MILLI / drafts if drafts else 0.0
    target = call["target_seconds"] * _MILLI
    ax.barh(0.5, end - begin, left=begin, height=1.0, color=_LOOP)
    for i in range(drafts):
        ax.barh(0.5, each, left=begin + i * each, height=1.0, color=BLUE, edgecolor="white", linewidth=0.8)
    ax.barh(0.5, target, left=begin + drafts * each, height=1.0, color=BLACK)
    ax.axvline(end, color=GREY, linewidth=0.6)
    if lost := call["drafted"] - call["accepted"]:
        at = begin + drafts * each + target / 2
        ax.text(at, 0.5, f"✗ {lost}", ha="center", va="center", fontsize=8, color="white")


def _tokens(ax: Axes, call: Mapping[str, Any], begin: float, end: float) -> None:
    """What the call outputs, one token below the other, in the colour of its kind."""
    middle = (begin + end) / 2
    for i, token in enumerate(call["output"]):
        colour = GREEN if i < call["accepted"] else _OUTPUT[call["last"]]
        box = {"boxstyle": "round,pad=0.18", "facecolor": "white", "edgecolor": colour, "linewidth": 1.3}
        ax.text(middle, -_HEIGHT * (i + 0.6), _shown(token), ha="center", va="center", fontsize=8, family="monospace",
                color=colour, bbox=box)  # fmt: skip


def _shown(token: str) -> str:
    """White space made visible; a dollar sign would be read as mathematics."""
    return token.replace("\n", "⏎").replace(" ", "·").replace("$", r"\$")


SWEEP = Sweep(
    "schematic",
    "Plain, speculative and batch decoding of one prompt, call by call",
    ("A1", "R3", "Y3"),
    lambda _: (),
    data,
    draw,
    (9.0, 6.4),
)
