"""Seconds of ``spectheory predict --check`` on the built-in pair until it shows what: wall-clock, an idle machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from _rows import Row, publish

from spectheory import Trace
from spectheory.drafting import Chain
from spectheory.prediction import plan
from spectheory.verification import BlockVerification, TokenVerification

HERE = Path(__file__).parents[1]
TICK = 0.2
"""Seconds between two lines that say what the program does: the resolution of the seconds of a stage."""
PROGRAM = f"import sys; from spectheory.cli import main, progress; progress.EVERY = {TICK}; sys.exit(main())"
STAGES = {
    "loading the models": "loading",
    "measuring latencies": "latencies: passes",
    "timing the decoding loop": "latencies: loop",
    "measuring prompts": "prompts",
    "predicting": "predicting",
    "assisted generation": "check",
    "checking against assisted generation": "check",
}
"""Stages by what their lines begin with."""
LIMIT = "imports and loading alone"
KEPT = "tokens per call of chains as predicted from the saved trace"
SAME = f"{KEPT}, and as before within 1e-4"


@dataclass
class Run:
    """One run: seconds from its start to each line, by stream, and to its end."""

    answer: dict[str, object] = field(default_factory=dict)
    lines: list[tuple[float, str, str]] = field(default_factory=list)
    end: float = 0.0

    def first(self, stream: str, words: str = "") -> float:
        """Seconds to the first line of a stream with these words."""
        return next(at for at, where, line in self.lines if where == stream and words in line)

    @property
    def stages(self) -> dict[str, float]:
        """Seconds of each stage, from its first line to its last."""
        seen: dict[str, list[float]] = {}
        for at, where, line in self.lines:
            stage = STAGES.get(line.split(":")[0]) if where == "err" else None
            if stage:
                seen.setdefault(stage, []).append(at)
        return {"imports": min(seen["loading"]) - TICK} | {name: at[-1] - at[0] + TICK for name, at in seen.items()}


def run(root: Path, *options: str) -> Run:
    """Run the program of a checkout."""
    made = Run()
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [sys.executable, "-c", PROGRAM, "predict", "--out", str(out), *options]
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        def read(stream: IO[str], name: str) -> None:
            for line in stream:
                made.lines.append((time.perf_counter() - began, name, line.rstrip()))

        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            threading.Thread(target=read, args=each) for each in ((process.stdout, "out"), (process.stderr, "err"))
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert process.wait() == 0, [line for _, where, line in made.lines if where == "err"][-3:]
        made.end = time.perf_counter() - began
        made.answer = json.loads((out / "prediction.json").read_text())
        check_kept(made.answer, Trace.read(out / "trace.parquet"))
    made.lines.sort()
    return made


def check_kept(answer: dict[str, object], trace: Trace) -> None:
    """The answer is that of the saved trace."""
    shown = chains(answer)
    for prediction in plan(
        trace, rules=[TokenVerification(), BlockVerification()], shapes=[Chain(1), Chain(4)]
    ).predictions:
        best = prediction.tokens_per_call.best
        assert abs(shown[prediction.rule.name, prediction.shape.nodes] / best - 1) < 1e-9


def chains(answer: dict[str, object]) -> dict[tuple[str, int], float]:
    """Tokens per call of every chain."""
    predictions = answer["predictions"]
    assert isinstance(predictions, list)
    return {(p["rule"], p["k"]): p["tokens_per_call"]["best"] for p in predictions if p["depth"] == p["k"]}


def rows_of(ours: Run, before: tuple[Run, Run] | None) -> list[Row]:
    """Until the provisional answer, the whole one and the end; then every stage."""
    plain, checked = before or (None, None)
    loaded = ours.stages["imports"] + ours.stages["loading"]
    peer = "the version before" if before else ""
    shown = {
        "provisional answer": (ours.first("err", "Provisional"), plain.first("out") if plain else None, 20.0),
        "whole answer": (ours.first("out"), plain.first("out") if plain else None, 35.0),
        "answer, figures and check": (ours.end, checked.end if checked else None, 60.0),
    }
    equal = SAME if before else KEPT
    rows = [
        Row(f"until: {work}", "s", mine, equal, other, peer, limit=loaded, limit_is=LIMIT, wanted=wanted)
        for work, (mine, other, wanted) in shown.items()
    ]
    others = checked.stages if checked else {}
    return rows + [
        Row(f"stage: {name}", "s", taken, equal, others.get(name), peer if name in others else "")
        for name, taken in ours.stages.items()
    ]


def main() -> None:
    """Time this checkout, and another one of the version before."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="checkout of the version before")
    parser.add_argument("--out", type=Path, help="file of the rows")
    asked = parser.parse_args()
    ours = run(HERE, "--check")
    before = (run(asked.before), run(asked.before, "--check")) if asked.before else None
    if before:
        mine, theirs = chains(ours.answer), chains(before[0].answer)
        assert mine.keys() == theirs.keys()
        assert all(abs(mine[key] / theirs[key] - 1) < 1e-4 for key in mine)
    rows = rows_of(ours, before)
    publish(__file__, "Until the first answer: predict --check on the built-in pair", rows, out=asked.out)


if __name__ == "__main__":
    main()
