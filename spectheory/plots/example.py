"""Decision trees of five shapes; one call by recursive rejection and one by a race, with real words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectheory.plots.draft_tree import Path, Place, children, decisions, places
from spectheory.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    Axes,
    Figure,
    caption,
    note,
    plain_axes,
    titled,
)

_MARK = {"accepted": GREEN, "rejected": ORANGE, "not output": ORANGE, "not tried": "#BBBBBB"}
_SIGN = {"accepted": "✓", "rejected": "✗", "not output": "✗", "not tried": ""}
_PLAIN = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20)
_LEFT_OUT = 20.0
"""Arrivals later than this are not drawn."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Shapes above, the two calls below them, the clocks of the race at the bottom."""
    parts: Any = figure.subfigures(3, 1, height_ratios=(0.8, 1.05, 0.95))
    top, middle, bottom = parts
    shapes = data["shapes"]
    widths = [max(x for x, _ in places(_paths(paths)).values()) + 1.6 for paths in shapes.values()]
    axes = top.subplots(1, len(shapes), width_ratios=widths)
    for letter, ax, (name, paths) in zip("abcde", axes, shapes.items(), strict=True):
        _decision_tree(ax, _paths(paths), f"{letter}\n{name}")
    words = data["words"]
    for letter, ax, (rule, call) in zip("fg", middle.subplots(1, 2), data["calls"].items(), strict=True):
        _call(ax, call, words, words[data["last"]], f"{letter}  {_title(rule, data)}")
    races = data["calls"]["race"]["races"]
    for number, (ax, race) in enumerate(zip(bottom.subplots(1, len(races)), races, strict=True)):
        before = words[data["last"]] if number == 0 else words[races[number - 1]["output"]]
        _race(ax, race, words, f'{"hij"[number]}  the race after "{before}"')
    caption(
        bottom,
        "a-e: black: drafted; green and orange: where an accepted and a rejected draft lead; blue: sampled.\n"
        "f, g: p and q are the word's probability under target and draft; ✓ accepted, ✗ rejected or not output, "
        "grey: not tried.\n"
        "h-j: each word has one clock, which the draft divides by q (dots) and the target by p (bars); the first dots "
        "are\n"
        f"drafted, the first bar is output; what arrives after {_LEFT_OUT:g}, or never, is left out.",
    )


def _title(rule: str, data: Mapping[str, Any]) -> str:
    """What the call did, and what a text of that pair takes by prediction and by simulation."""
    output = " ".join(data["words"][token] for token in data["calls"][rule]["output"])
    name = {"recursive": "recursive rejection", "race": "race"}[rule]
    text = data["per_text"][rule]
    tokens = (text["length"] / text[end] for end in ("predicted", "best"))
    predicted, simulated = (f"{each:.3f}" for each in tokens)
    return f'{name}: one call outputs "{output}"\n    tokens per call: {predicted} predicted, {simulated} simulated'


def _paths(listed: Sequence[Sequence[int]]) -> list[Path]:
    return [tuple(path) for path in listed]


def _decision_tree(ax: Axes, paths: list[Path], title: str) -> None:
    """A shape with all decisions that may be taken on it."""
    at = places(paths)
    _blank(ax, at)
    for node in paths:
        _line(ax, at[node[:-1]], at[node], BLACK, 1.4)
    first = children(paths, ())
    _arrow(ax, at[()], at[first[0] if first else (0,)], GREY)
    for source, goal, accepted in decisions(paths):
        _arrow(ax, at[source], at[goal], GREEN if accepted else ORANGE)
    for node, (x, y) in at.items():
        colour = GREY if node == () else SKY if node[-1] == 0 else BLACK
        ax.plot([x], [y], "o", color=colour, markersize=7, zorder=3)
    titled(ax, title)


def _call(ax: Axes, call: Mapping[str, Any], words: Sequence[str], start: str, title: str) -> None:
    """The drafted tree with its words, and what was decided of each node."""
    nodes = {tuple(node["path"]): node for node in call["nodes"]}
    after, output = (
        max((p for p, n in nodes.items() if n["decision"] == "accepted"), key=len, default=()),
        call["output"],
    )
    below = children(list(nodes), after)
    end = (*after, len(below) + 1)
    used = places([*nodes, end], 1.5, sampled=False)
    _blank(ax, used, 0.6)
    for path, node in nodes.items():
        _line(ax, used[path[:-1]], used[path], _MARK[node["decision"]], 2.4 if node["decision"] == "accepted" else 1.2)
    _line(ax, used[end[:-1]], used[end], BLUE, 2.4)
    _word(ax, used[()], start, GREY)
    for path, node in nodes.items():
        colour = _MARK[node["decision"]]
        _word(ax, used[path], f"{words[node['token']]} {_SIGN[node['decision']]}".strip(), colour)
        lines = [f"p {node['p']:.2f}  q {node['q']:.2f}"]
        if node["coin"] is not None:
            lines.append(
                f"coin {node['coin']:.2f} {'<' if node['decision'] == 'accepted' else '≥'} {node['chance']:.2f}"
            )
        note(ax, "\n".join(lines), used[path], (0, -16), BLACK, 8, ha="center", va="top", bbox=_PLAIN, zorder=3)
    _word(ax, used[end], words[output[-1]], BLUE)
    note(ax, "recovered" if below else "bonus", used[end], (0, -17), BLUE, 8, ha="center", va="top")
    titled(ax, title)


def _race(ax: Axes, race: Mapping[str, Any], words: Sequence[str], title: str) -> None:
    """When each word arrives, for draft and target; the drafts are numbered."""
    for y in range(len(words)):
        for time, marker, colour in ((race["target"][y], "|", ORANGE), (race["draft"][y], "o", BLUE)):
            if time is not None and time <= _LEFT_OUT:
                ax.plot([time], [y], marker, color=colour, markersize=13 if marker == "|" else 6, markeredgewidth=2.2)
        if y in race["candidates"]:
            note(ax, f"draft {race['candidates'].index(y) + 1}", (race["draft"][y], y), (0, 7), BLUE, 8, ha="center")
        if y == race["output"]:
            note(ax, "output", (race["target"][y], y), (-5, -3), ORANGE, 8, ha="right")
    ax.set_xscale("log")
    ax.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
    ax.minorticks_off()
    ax.set_xlim(_TICKS[0], _LEFT_OUT * 1.1)
    ax.set_ylim(len(words) - 0.3, -0.8)
    ax.set_yticks(range(len(words)), [f'"{word}"' for word in words])
    ax.set_xlabel("time")
    plain_axes(ax)
    titled(ax, title)


def _blank(ax: Axes, at: Mapping[Any, Place], below: float = 0.4) -> None:
    ax.set_xlim(min(x for x, _ in at.values()) - 0.7, max(x for x, _ in at.values()) + 0.7)
    ax.set_ylim(max(y for _, y in at.values()) + below, -0.5)
    ax.set_axis_off()


def _line(ax: Axes, start: Place, end: Place, colour: str, width: float) -> None:
    ax.plot([start[0], end[0]], [start[1], end[1]], color=colour, linewidth=width, zorder=1)


def _arrow(ax: Axes, start: Place, end: Place, colour: str) -> None:
    bend = -0.35 if start[1] == end[1] else 0.25
    how = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.3, "shrinkA": 4, "shrinkB": 4,
           "connectionstyle": f"arc3,rad={bend}"}  # fmt: skip
    ax.annotate("", end, start, arrowprops=how, zorder=2)


def _word(ax: Axes, place: Place, word: str, colour: str) -> None:
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "linewidth": 1.8}
    shown = GREY if colour == _MARK["not tried"] else colour
    ax.text(*place, word, ha="center", va="center", fontsize=10, color=shown, bbox=box, zorder=4)
