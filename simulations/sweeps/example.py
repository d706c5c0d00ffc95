"""Decision trees of every shape, and one call of a small pair of models by recursive rejection and by a race."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simulations.counts import Mean
from simulations.reference.decoding import DraftTree, Pair
from simulations.reference.pictured import race_pictured, rejection_pictured
from simulations.simulators.decoding import calls_of
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from spectheory.drafting import Batch, Chain
from spectheory.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, Axes, Figure, caption, note

TITLE = "Draft trees and their decisions: recursive rejection, and the race beside it"
STATEMENTS = ("R3", "R2", "S1", "§7")
SIZE = (9.0, 10.2)

Path = tuple[int, ...]
Place = tuple[float, float]
"""Across, and down from 0 at the root."""


WORDS = ("the", "cat", "dog", "sat", "ran", ".")
TARGET = (
    (0.00, 0.55, 0.35, 0.04, 0.04, 0.02),
    (0.02, 0.00, 0.03, 0.60, 0.30, 0.05),
    (0.02, 0.03, 0.00, 0.25, 0.60, 0.10),
    (0.25, 0.00, 0.00, 0.00, 0.05, 0.70),
    (0.30, 0.00, 0.00, 0.05, 0.00, 0.65),
    (0.80, 0.08, 0.08, 0.02, 0.02, 0.00),
)
DRAFT = (
    (0.05, 0.25, 0.50, 0.05, 0.10, 0.05),
    (0.05, 0.05, 0.05, 0.30, 0.50, 0.05),
    (0.05, 0.05, 0.05, 0.50, 0.30, 0.05),
    (0.40, 0.05, 0.05, 0.05, 0.05, 0.40),
    (0.40, 0.05, 0.05, 0.05, 0.05, 0.40),
    (0.60, 0.10, 0.10, 0.05, 0.05, 0.10),
)
"""The pmf of the next word after each word, in the order of the words."""

LAST = WORDS.index("the")
PATHS = ((1,), (2,), (1, 1), (1, 2), (2, 1), (1, 2, 1))
"""A tree of six nodes, two of them after the root."""
SEEDS = {"recursive": 283, "race": 263}
"""Chosen so that the pictures show acceptances and rejections."""
LENGTH = 8
"""Words of a text that is decoded for the verdict."""

SHAPES = {
    "no drafts": (),
    "k = 1": tuple(Chain(1).tree().paths),
    "chain, k = 4": tuple(Chain(4).tree().paths),
    "batch, k = 4": tuple(Batch(4).tree().paths),
    "tree, k = 6": PATHS,
}
"""Shapes whose decision trees are drawn: those of the paper's figure."""


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Whole texts of the same pair, by the same algorithms, for the verdict."""
    pair = {"target": TARGET, "draft": DRAFT, "initial": np.eye(len(WORDS))[LAST].tolist()}
    given = {**pair, "paths": PATHS, "length": LENGTH}
    return tuple(ask(rule, "decode", {**given, "rule": rule}, scale, trials=scale.pick(400, 6000)) for rule in SEEDS)


def data(scale: Scale, tallies: Tallies) -> Data:
    """The two calls, the shapes, and the calls of a text as predicted and counted."""
    pair, tree = Pair(np.array(TARGET), np.array(DRAFT)), DraftTree(PATHS)
    calls = {
        "recursive": rejection_pictured(tree, pair, LAST, SEEDS["recursive"]),
        "race": race_pictured(tree, pair, LAST, SEEDS["race"]),
    }
    return {
        "words": WORDS,
        "last": LAST,
        "shapes": {name: [list(path) for path in paths] for name, paths in SHAPES.items()},
        "calls": {rule: call.as_dict() for rule, call in calls.items()},
        "per_text": {one.label: _per_text(one, tallies) for one in asks(scale)},
    }


def _per_text(one: Ask, tallies: Tallies) -> Data:
    seen = Mean("calls").estimate(tallies[one.label])
    predicted = calls_of(one.task.kind, one.task.parameters).expected
    return {"predicted": predicted, "low": seen.low, "best": seen.best, "high": seen.high, "length": LENGTH}


_MARK = {"accepted": GREEN, "rejected": ORANGE, "not output": ORANGE, "not tried": "#BBBBBB"}
_SIGN = {"accepted": "✓", "rejected": "✗", "not output": "✗", "not tried": ""}
_PLAIN = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20)
_LEFT_OUT = 20.0
"""Arrivals later than this are not drawn."""


def draw(figure: Figure, data: Data) -> None:
    """Shapes above, the two calls below them, the clocks of the race at the bottom."""
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=(0.8, 1.05, 0.95))  # type: ignore[misc]
    shapes = {name: [tuple(path) for path in paths] for name, paths in data["shapes"].items()}
    widths = [max(x for x, _ in places(paths).values()) + 1.6 for paths in shapes.values()]
    axes = top.subplots(1, len(shapes), width_ratios=widths)
    for letter, ax, (name, paths) in zip("abcde", axes, shapes.items(), strict=True):
        _decision_tree(ax, paths, f"{letter}\n{name}")
    words = data["words"]
    for letter, ax, (rule, call) in zip("fg", middle.subplots(1, 2), data["calls"].items(), strict=True):
        output, text = " ".join(words[token] for token in call["output"]), data["per_text"][rule]
        predicted, simulated = (f"{text['length'] / text[end]:.3f}" for end in ("predicted", "best"))
        name = {"recursive": "recursive rejection", "race": "race"}[rule]
        tokens = f"    tokens per call: {predicted} predicted, {simulated} simulated"
        _call(ax, call, words, words[data["last"]], f'{letter}  {name}: one call outputs "{output}"\n{tokens}')
    races, before = data["calls"]["race"]["races"], data["last"]
    for letter, ax, race in zip("hij", bottom.subplots(1, len(races)), races, strict=False):
        _race(ax, race, words, f'{letter}  the race after "{words[before]}"')
        before = race["output"]
    caption(
        bottom,
        "a-e: black: drafted; green and orange: where an accepted and a rejected draft lead; blue: sampled.\n"
        "f, g: p and q are the word's probability under target and draft; ✓ accepted, ✗ rejected or not output, "
        "grey: not tried.\n"
        "h-j: each word has one clock, which the draft divides by q (dots) and the target by p (bars); the first dots "
        "are\n"
        f"drafted, the first bar is output; what arrives after {_LEFT_OUT:g}, or never, is left out.",
    )


def _decision_tree(ax: Axes, paths: list[Path], title: str) -> None:
    """A shape with all decisions that may be taken on it."""
    at = places(paths)
    _blank(ax, at, title)
    for node in paths:
        _line(ax, at[node[:-1]], at[node], BLACK, 1.4)
    first = children(paths, ())
    _arrow(ax, at[()], at[first[0] if first else (0,)], GREY)
    for source, goal, accepted in decisions(paths):
        _arrow(ax, at[source], at[goal], GREEN if accepted else ORANGE)
    for node, (x, y) in at.items():
        colour = GREY if node == () else SKY if node[-1] == 0 else BLACK
        ax.plot([x], [y], "o", color=colour, markersize=7, zorder=3)


def _call(ax: Axes, call: Data, words: Sequence[str], start: str, title: str) -> None:
    """The drafted tree with its words, and what was decided of each node."""
    nodes, output = {tuple(node["path"]): node for node in call["nodes"]}, call["output"]
    after = max((path for path, node in nodes.items() if node["decision"] == "accepted"), key=len, default=())
    below = children(list(nodes), after)
    end = (*after, len(below) + 1)
    used = places([*nodes, end], 1.5, sampled=False)
    _blank(ax, used, title, 0.6)
    for path, node in nodes.items():
        _line(ax, used[path[:-1]], used[path], _MARK[node["decision"]], 2.4 if node["decision"] == "accepted" else 1.2)
    _line(ax, used[end[:-1]], used[end], BLUE, 2.4)
    _word(ax, used[()], start, GREY)
    for path, node in nodes.items():
        decision = node["decision"]
        _word(ax, used[path], f"{words[node['token']]} {_SIGN[decision]}".strip(), _MARK[decision])
        text = f"p {node['p']:.2f}  q {node['q']:.2f}"
        if node["coin"] is not None:
            text += f"\ncoin {node['coin']:.2f} {'<' if decision == 'accepted' else '≥'} {node['chance']:.2f}"
        note(ax, text, used[path], (0, -16), BLACK, 8, ha="center", va="top", bbox=_PLAIN, zorder=3)
    _word(ax, used[end], words[output[-1]], BLUE)
    note(ax, "recovered" if below else "bonus", used[end], (0, -17), BLUE, 8, ha="center", va="top")


def _race(ax: Axes, race: Data, words: Sequence[str], title: str) -> None:
    """When each word arrives, for draft and target; the drafts are numbered."""
    for y in range(len(words)):
        for time, marker, colour in ((race["target"][y], "|", ORANGE), (race["draft"][y], "o", BLUE)):
            if time is not None and time <= _LEFT_OUT:
                ax.plot([time], [y], marker, color=colour, markersize=13 if marker == "|" else 6, markeredgewidth=2.2)
        if y in race["candidates"]:
            before = race["target"][y] is None or race["target"][y] < race["draft"][y]
            beside, side = ((6, -3), "left") if before else ((-6, -3), "right")  # where the bar is not
            note(ax, f"draft {race['candidates'].index(y) + 1}", (race["draft"][y], y), beside, BLUE, 8, ha=side)
        if y == race["output"]:
            note(ax, "output", (race["target"][y], y), (-5, -3), ORANGE, 8, ha="right")
    ax.set_xscale("log")
    ax.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
    ax.minorticks_off()
    ax.set_yticks(range(len(words)), [f'"{word}"' for word in words])
    ends = {"xlim": (_TICKS[0], _LEFT_OUT * 1.1), "ylim": (len(words) - 0.3, -0.8)}
    ax.set(title=title, xlabel="time", **ends)


def _blank(ax: Axes, at: Mapping[Any, Place], title: str, below: float = 0.4) -> None:
    ax.set(title=title, xlim=(min(x for x, _ in at.values()) - 0.7, max(x for x, _ in at.values()) + 0.7))
    ax.set_ylim(max(y for _, y in at.values()) + below, -0.5)
    ax.set_axis_off()


def _line(ax: Axes, start: Place, end: Place, colour: str, width: float) -> None:
    ax.plot([start[0], end[0]], [start[1], end[1]], color=colour, linewidth=width, zorder=1)


def _arrow(ax: Axes, start: Place, end: Place, colour: str) -> None:
    bend = -0.35 if start[1] == end[1] else 0.25
    how = {
        "arrowstyle": "-|>",
        "color": colour,
        "linewidth": 1.3,
        "shrinkA": 4,
        "shrinkB": 4,
        "connectionstyle": f"arc3,rad={bend}",
    }
    ax.annotate("", end, start, arrowprops=how, zorder=2)


def _word(ax: Axes, place: Place, word: str, colour: str) -> None:
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "linewidth": 1.8}
    shown = GREY if colour == _MARK["not tried"] else colour
    ax.text(*place, word, ha="center", va="center", fontsize=10, color=shown, bbox=box, zorder=4)


# Where the nodes of a draft tree stand, and the decisions between them


def children(paths: Sequence[Path], node: Path) -> list[Path]:
    """The drafted children of a node, in order."""
    return sorted(path for path in paths if path[:-1] == node and path)


def places(paths: Sequence[Path], spread: float = 1.0, *, sampled: bool = True) -> dict[Path, Place]:
    """A place for every node, the root ``()`` included, and if `sampled` for the tokens that are sampled after them.

    Beside the children of a node, or below a leaf, stands the token that is sampled after them: its path ends with 0.

    Examples
    --------
    >>> places([(1,)])
    {(1, 0): (0.0, 2), (1,): (0.0, 1), (0,): (1.0, 1), (): (0.0, 0)}
    >>> places([(1,), (2,)], sampled=False)
    {(1,): (0.0, 1), (2,): (1.0, 1), (): (0.0, 0)}
    """
    place_of: dict[Path, Place] = {}
    across = 0.0

    def put(node: Path) -> None:
        nonlocal across
        below = children(paths, node)
        for child in below:
            put(child)
        if sampled:
            place_of[*node, 0] = (across, len(node) + 1)
        place_of[node] = (place_of[below[0]][0] if below else across, len(node))
        if sampled or not below:
            across += spread

    put(())
    return place_of


def decisions(paths: Sequence[Path]) -> Iterator[tuple[Path, Path, bool]]:
    """Every decision of recursive rejection: from which node to which, and whether by an acceptance.

    A candidate that is accepted leads to its first child, one that is rejected to its next sibling. After the last
    sibling, or below a leaf, a token is sampled: its path ends with 0.

    Examples
    --------
    >>> list(decisions([(1,)]))
    [((1,), (1, 0), True), ((1,), (0,), False)]
    """
    for node in paths:
        below = children(paths, node)
        yield node, below[0] if below else (*node, 0), True
        siblings = children(paths, node[:-1])
        after = siblings[siblings.index(node) + 1 :]
        yield node, after[0] if after else (*node[:-1], 0), False
