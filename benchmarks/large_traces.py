"""Time and peak memory of ``spectheory predict`` on large traces, in fresh processes: 10^4 to 10^6 positions.

Every column of a measurement is in the file; the usual answer: all rules, chains to 16, trees, intervals over prompts.
Equality first: compiled loops against arrays, and a file read in blocks against the trace in memory.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _rows import Row, median_seconds, publish
from _traces import made_up

from spectheory import kernels
from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain, KAry
from spectheory.prediction import Plan, plan
from spectheory.trace import Trace
from spectheory.trace.on_disk import OnDisk
from spectheory.verification import PATH_RULES

SIZES = (10_000, 100_000, 300_000, 1_000_000)
OF_PEER = (10_000,)
HEADS, DEPTH = (100_000, 300_000), 8
OF_HEADS = [by + name for name in ("log_draft", "race_g", "rejection_rank", "race_rank") for by in ("", "start_")]
"""Columns of a head's trace, beside log p."""
TEXT = 1000
CLOSE = 1e-12
in_arrays = partial(patch.object, kernels, "pays", lambda positions: False)
EQUAL = "loops against arrays, blocks against the whole trace, to 1e-12"


def check_equal(folder: Path) -> None:
    """Loops against arrays, and the blocks of a file against the trace in memory, on chains and a tree."""
    trace = made_up(300_000, np.random.default_rng(1), text=TEXT, ended=True)
    trace.write(folder / "trace.parquet")
    opened = Trace.open(folder)
    assert isinstance(opened.columns, OnDisk)
    rules = [PATH_RULES[name] for name in ("token", "block", "race", "lookup", "recursive")]
    shapes = [Chain(1), Chain(4), Chain(16), KAry((2, 2))]
    ours = numbers(plan(opened, ConstantRatio(0.1), rules=rules, shapes=shapes))
    np.testing.assert_allclose(ours, numbers(plan(trace, ConstantRatio(0.1), rules=rules, shapes=shapes)), rtol=CLOSE)
    with in_arrays():
        again = plan(trace, ConstantRatio(0.1), rules=rules, shapes=shapes)
    np.testing.assert_allclose(ours, numbers(again), rtol=CLOSE)


def numbers(answer: Plan) -> list[float]:
    """Tokens per call, acceptance, limits and speed-ups with their ranges."""
    intervals = [
        each
        for p in answer.predictions
        for each in (p.tokens_per_call, p.acceptance, p.speedup, p.limits.text, p.limits.decoding)
        if each
    ]
    return [end for each in intervals for end in (each.low, each.best, each.high)]


def one(folder: Path, arrays: bool) -> None:
    """Predict in this process; CPU seconds and megabytes as JSON."""
    from spectheory.cli import main as command

    way, silent = in_arrays() if arrays else nullcontext(), redirect_stdout(io.TextIOWrapper(io.BytesIO()))
    with way, silent, suppress(SystemExit):
        command(["predict", str(folder), "--c", "0.1", "--json"])
    print(json.dumps({"seconds": time.process_time(), "peak": peak()}))


def peak() -> float:
    """Megabytes that this process held at most; what its parent held before it began is not counted."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measured(trace: Trace, arrays: bool = False) -> dict[str, Any]:
    """CPU seconds and peak megabytes of a fresh process that predicts from the trace's file, and of reading it."""
    with tempfile.TemporaryDirectory() as folder:
        trace.write(Path(folder) / "trace.parquet")
        command = [sys.executable, __file__, "--one", folder, *(["--arrays"] if arrays else [])]
        done = subprocess.run(command, capture_output=True, check=True, text=True, env={**os.environ})
        reading = median_seconds(lambda: Trace.read(Path(folder)), 1)
    return {**json.loads(done.stdout), "reading": reading}


def main() -> None:
    """Check equality, then measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", type=Path)
    parser.add_argument("--arrays", action="store_true")
    asked = parser.parse_args()
    if asked.one:
        return one(asked.one, asked.arrays)
    with tempfile.TemporaryDirectory() as folder:
        check_equal(Path(folder))
    rng, rows, memory, seconds = np.random.default_rng(0), [], [], []
    for positions in SIZES:
        trace, name = made_up(positions, rng, text=TEXT, ended=True), f"{positions:,} positions"
        costs = measured(trace)
        peer = (measured(trace, arrays=True)["seconds"], "arrays") if positions in OF_PEER else (None, "")
        others = *peer, costs["reading"], "reading and checking every column", 15.0 if positions == SIZES[-1] else None
        rows.append(Row(f"predict, {name}", "s", costs["seconds"], EQUAL, *others, {"positions": positions}, "predict"))
        memory.append(Row(f"peak memory, {name}", "MB", costs["peak"], EQUAL, wanted=2048.0))
        seconds.append(costs["seconds"])
    for starts in HEADS:
        costs, name = (
            measured(made_up(starts, rng, text=TEXT, depth=DEPTH, only=("log_target", *OF_HEADS))),
            f"a head's trace, {starts:,} starts x {DEPTH}",
        )
        rows.append(Row(f"predict, {name}", "s", costs["seconds"], EQUAL))
        memory.append(Row(f"peak memory, {name}", "MB", costs["peak"], EQUAL, wanted=2048.0))
    slope = float(np.polyfit(np.log(SIZES), np.log(seconds), 1)[0])
    last = float(np.polyfit(np.log(SIZES[-2:]), np.log(seconds[-2:]), 1)[0])
    note = f"Seconds grow as positions to the power {slope:.2f}; {last:.2f} between the two largest."
    title = "Large traces: the usual answer of predict, CPU seconds of a fresh process with its imports"
    publish(__file__, title, [*rows, *memory], note)


if __name__ == "__main__":
    main()
