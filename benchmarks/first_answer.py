"""Seconds of ``spectheory predict --check`` on the built-in pair until it shows what: wall-clock, an idle machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
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
    "checking against assisted generation": "check",
}
"""Stages by what their lines begin with."""
LIMIT = "imports and loading alone"
KEPT = "tokens per call of chains as predicted from the saved trace"


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
            stage = STAGES.get(line.removeprefix("last step: ").split(":")[0]) if where == "err" else None
            if stage:
                seen.setdefault(stage, []).append(at)
        return {"imports": min(seen["loading"]) - TICK} | {name: at[-1] - at[0] + TICK for name, at in seen.items()}


def run(*options: str) -> Run:
    """Run the program of this checkout."""
    made = Run()
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [sys.executable, "-c", PROGRAM, "predict", "--out", str(out), *options]
        began = time.perf_counter()
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(HERE)}, **pipes)

        def read(stream: IO[str], name: str) -> None:
            for line in stream:
                made.lines.append((time.perf_counter() - began, name, line.rstrip()))

        assert process.stdout is not None
        assert process.stderr is not None
        streams = (process.stdout, "out"), (process.stderr, "err")
        readers = [threading.Thread(target=read, args=each) for each in streams]
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
    predictions = answer["predictions"]
    assert isinstance(predictions, list)
    shown = {(p["rule"], p["k"]): p["tokens_per_call"]["best"] for p in predictions if p["depth"] == p["k"]}
    rules, shapes = [TokenVerification(), BlockVerification()], [Chain(1), Chain(4)]
    for prediction in plan(trace, rules=rules, shapes=shapes).predictions:
        best = prediction.tokens_per_call.best
        assert abs(shown[prediction.rule.name, prediction.shape.nodes] / best - 1) < 1e-9


def rows_of(ours: Run) -> Iterator[Row]:
    """Until the provisional answer, the whole one and the end; then every stage."""
    loaded = ours.stages["imports"] + ours.stages["loading"]
    for work, seconds, wanted in (
        ("provisional answer", ours.first("err", "Provisional"), 20.0),
        ("whole answer", ours.first("out"), 35.0),
        ("answer, figures and check", ours.end, 60.0),
    ):
        yield Row(f"until: {work}", "s", seconds, KEPT, limit=loaded, limit_is=LIMIT, wanted=wanted)
    for name, seconds in ours.stages.items():
        yield Row(f"stage: {name}", "s", seconds, KEPT)


if __name__ == "__main__":
    rows = list(rows_of(run("--check")))
    publish(__file__, "Until the first answer: predict --check on the built-in pair", rows)
