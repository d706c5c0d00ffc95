"""One prompt decoded by the built-in pair in three ways, every call timed: the run behind the figure ``schematic``.

``python -m simulations.sweeps.decoding_run`` decodes again and writes the file anew; its seconds are those of the
machine, everything else is the same up to rounding.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from spectheory.files import write_whole

FILE = Path(__file__).with_suffix(".json")
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


if __name__ == "__main__":
    write_whole(FILE, partial(_write, run()))
