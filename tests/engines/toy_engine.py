"""An engine of the driver that needs nothing: it repeats the prompt's last token, and fails on demand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any


def generator(job: dict[str, Any]) -> Callable[[list[int], int], dict[str, Any]]:
    """Answers whose calls accept every draft; ``at`` is the token of a prompt that ``fault`` befalls."""
    print("a toy engine says hello")  # to standard output, which is the driver's

    def generate(prompt: list[int], seed: int) -> dict[str, Any]:
        if prompt[-1] == job["at"]:
            faults[job["fault"]]()
        output = [prompt[-1]] * (job["tokens"] - 1) + [job["end"][0] if seed % 2 else prompt[-1]]
        calls = -(-(job["tokens"] - 1) // (job["k"] + 1)) if job["k"] else 0
        return {"output": output, **({"accepted": [job["k"]] * calls} if job["k"] else {})}

    faults: dict[str, Callable[[], object]] = {
        "raises": lambda: generate([], seed=0),
        "dies": lambda: os._exit(9),
        "tears": tear,
    }
    return generate


def tear() -> None:
    """Die in the middle of a line."""
    frame = sys._getframe()
    while "answers" not in frame.f_locals:
        assert frame.f_back
        frame = frame.f_back
    print('{"id": "to', end="", file=frame.f_locals["answers"], flush=True)
    os._exit(9)
