"""Plain, speculative and batch decoding beside each other, from a recorded run of the built-in pair, every call timed.

``python -m simulations.sweeps.schematic`` decodes again and writes the record anew; its seconds are those of the
machine, everything else is the same up to rounding.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from simulations.sweeps.base import Ask, Data, Scale, Tallies
from spectheory.files import write_whole
from spectheory.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, Axes, Figure, caption

TITLE = "Plain, speculative and batch decoding of one prompt, call by call"
STATEMENTS = ("A1", "R3", "Y3")
SIZE = (9.0, 6.4)

FILE = Path(__file__).with_name("decoding_run.json")
PROMPT = "def read_lines(path):\n    "
TOKENS, SEED, REPEATS = 16, 20, 400
DRAFTS, BRANCHES = 4, 3
"""Depth of the drafts of a call, and chains of a batch."""
METHODS = ("plain", "token", "batch")


def recorded() -> dict[str, Any]:
    """The run in the file."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def run() -> dict[str, Any]:
    """Decode the prompt by every method, several times: the repetitions give the same text."""
    from spectheory.distributions import Sampling
    from spectheory.drafting import Chain, KAry
    from spectheory.measure import Method, decode, load_pair
    from spectheory.measure.machine import hardware, versions
    from spectheory.pairs import resolve

    pair = load_pair(resolve("builtin:target"), resolve("builtin:distilled"))
    ids = pair.tokenizer(PROMPT, return_tensors="pt").input_ids[0]
    shapes = {"token": Chain(DRAFTS), "batch": KAry((BRANCHES, *[1] * (DRAFTS - 1)))}
    methods = {name: Method({"batch": "recursive"}.get(name, name), shapes.get(name)) for name in METHODS}
    texts: dict[str, list[Any]] = {name: [] for name in METHODS}
    for _ in range(REPEATS):  # in turn, so that other work on the machine slows all of them alike
        for name, method in methods.items():
            texts[name] += decode(pair, [ids], method, tokens=TOKENS, seed=SEED)
    return {
        "prompt": PROMPT,
        "settings": {"tokens": TOKENS, "seed": SEED, "repeats": REPEATS, "sampling": asdict(Sampling())},
        "pair": {"target": pair.target.name, "draft": pair.draft.name},
        "hardware": hardware(),
        "versions": versions(),
        "methods": {name: _least(repeated, pair.tokenizer) for name, repeated in texts.items()},
    }


def _least(texts: list[Any], tokenizer: Any) -> list[dict[str, Any]]:
    """The calls with the strings of their tokens; every time is the least of the repetitions, without interruptions."""
    strings = [tokenizer.decode([token]) for token in texts[0].output_ids.tolist()]
    calls, first = [], 0
    for repeated in zip(*(text.calls for text in texts), strict=True):
        parts = [(c.draft_seconds, c.target_seconds, c.seconds - c.draft_seconds - c.target_seconds) for c in repeated]
        draft, target, rest = map(min, zip(*parts, strict=True))
        times = {"draft_seconds": draft, "target_seconds": target, "seconds": draft + target + rest}
        last = first + repeated[0].tokens
        calls.append({**asdict(repeated[0]), **times, "output": strings[first:last]})
        first = last
    return calls


def _write(content: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


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


def draw(figure: Figure, data: Data) -> None:
    """The rows below each other on one axis of time."""
    rows = data["rows"]
    most = [max(len(call["output"]) for call in row["calls"]) for row in rows]
    axes = figure.subplots(len(rows), 1, sharex=True, height_ratios=[1.25 + _HEIGHT * (each + 0.2) for each in most])
    longest = max(sum(call["seconds"] for call in row["calls"]) for row in rows) * _MILLI
    for letter, ax, row, lines in zip("abc", axes, rows, most, strict=True):
        calls, end = row["calls"], 0.0
        for call in calls:
            begin, end = end, end + call["seconds"] * _MILLI
            _passes(ax, call, begin, end)
            _tokens(ax, call, (begin + end) / 2)
        tokens, took = sum(len(call["output"]) for call in calls), sum(call["seconds"] for call in calls) * _MILLI
        title = f"{letter}  {row['title']}:  {tokens} tokens in {len(calls)} calls, {took:.1f} ms"
        ax.set(title=title, xlim=(0, longest * 1.005), ylim=(-_HEIGHT * (lines + 0.2), 1.05), yticks=[])
        ax.spines["left"].set_visible(False)
    axes[-1].set_xlabel("time, ms")
    caption(
        figure,
        "Bars: passes of the draft (blue) and of the target (black), drawing and verifying (light); ✗: drafts "
        "verified in vain.\nBelow, what a call outputs: accepted drafts (green), the recovered token after a rejection "
        "(orange),\nthe bonus token after the last draft (blue), tokens of plain decoding (grey).",
    )


def _passes(ax: Axes, call: Data, begin: float, end: float) -> None:
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


def _tokens(ax: Axes, call: Data, middle: float) -> None:
    """What the call outputs, one token below the other, in the colour of its kind."""
    for i, token in enumerate(call["output"]):
        colour = GREEN if i < call["accepted"] else _OUTPUT[call["last"]]
        box = {"boxstyle": "round,pad=0.18", "facecolor": "white", "edgecolor": colour, "linewidth": 1.3}
        # White space is made visible; a dollar sign would be read as mathematics.
        shown = token.replace("\n", "⏎").replace(" ", "·").replace("$", r"\$")
        how: Data = {"ha": "center", "va": "center", "fontsize": 8, "family": "monospace", "bbox": box}
        ax.text(middle, -_HEIGHT * (i + 0.6), shown, color=colour, **how)


def asks(_: Scale) -> tuple[Ask, ...]:
    """Nothing is simulated."""
    return ()


if __name__ == "__main__":
    write_whole(FILE, partial(_write, run()))
