"""Time and peak memory of ``spectheory predict`` on large traces, in fresh processes: 10^4 to 10^6 positions.

Every column of a measurement is in the file; the usual answer: all rules, chains to 16, trees, intervals over prompts.
Equality first: compiled loops against arrays, and a file read in blocks against the trace in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _rows import Row, median_seconds, publish

from spectheory import kernels
from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain, KAry
from spectheory.prediction import Plan, plan
from spectheory.trace import DISTINCT_RANKS, MEASURED, RECORDED_RANKS, START_RANKS, UNO_SHARES, TextInfo, Trace
from spectheory.trace.on_disk import OnDisk
from spectheory.verification import PATH_RULES

SIZES = (10_000, 100_000, 300_000, 1_000_000)
OF_PEER = (10_000,)
HEADS, DEPTH = (100_000, 300_000), 8
TEXT = 1000
CLOSE = 1e-12
EQUAL = "loops against arrays, blocks against the whole trace, to 1e-12"


def made_up(positions: int, rng: np.random.Generator) -> Trace:
    """Every column of a measurement; texts of 1,000 tokens, two to a prompt, most of which ended by themselves."""
    n = positions
    target = -rng.exponential(1.0, n)
    draft = np.minimum(0.0, target + rng.normal(-0.2, 0.7, n))
    ratio, entropy, drafted = np.exp(target - draft), np.minimum(rng.exponential(1.5, n), 20.0), rng.integers(0, 11, n)
    g = np.maximum(ratio - 1, 0.0) + rng.random(n) * np.minimum(ratio, 1.0)
    law = _law(np.minimum(1.0, 1 / ratio), RECORDED_RANKS, rng)
    shares = {name: rng.random(n) for name in ("total_variation", "draft_top", "harmonic_similarity")}
    columns: dict[str, np.ndarray] = {
        **{name: values.astype(np.float32) for name, values in shares.items()},
        "token": rng.integers(0, 50_000, n),
        "log_target": target,
        "log_draft": draft,
        "kl": rng.exponential(1.0, n).astype(np.float32),
        "target_entropy": entropy.astype(np.float32),
        "target_second_moment": (entropy**2 + rng.random(n)).astype(np.float32),
        "draft_entropy": entropy[::-1].astype(np.float32),
        "race_acceptance": rng.random(n).astype(np.float32),
        "race_g": g,
        "draft_rank": rng.geometric(0.5, n),
        "target_rank": rng.geometric(0.6, n),
        "greedy_agreement": rng.random(n) < 0.7,
        "rejection_rank": law,
        "race_rank": _law(1 / (1 + g), RECORDED_RANKS, rng),
        "distinct_rank": law[:, :DISTINCT_RANKS].copy(),
        "uno_loss": rng.random((n, len(UNO_SHARES))).astype(np.float32),
        "lookup_drafted": drafted,
        "lookup_match": rng.integers(0, drafted + 1),
    }
    assert set(columns) == set(MEASURED)
    texts = tuple(TextInfo(f"t{i}", TEXT, prompt=f"p{i // 2}", ended=bool(i % 3)) for i in range(n // TEXT))
    return Trace(columns, texts, {"origin": "sampled from the target"})


def of_head(starts: int, depth: int, rng: np.random.Generator) -> Trace:
    """A draft head's trace: log q, g and the rank laws by start and depth."""
    target = -rng.exponential(1.0, starts)
    ahead = target[np.minimum(np.add.outer(np.arange(starts), np.arange(depth)), starts - 1)]
    draft = np.minimum(0.0, ahead + rng.normal(-0.2, 0.7, ahead.shape))
    ratio = np.exp(ahead - draft)
    g = np.maximum(ratio - 1, 0.0) + rng.random(ahead.shape) * np.minimum(ratio, 1.0)
    by_start = {
        "log_draft": draft,
        "race_g": g,
        "rejection_rank": _law(np.minimum(1.0, 1 / ratio), START_RANKS, rng),
        "race_rank": _law(1 / (1 + g), START_RANKS, rng),
    }
    firsts = {name: values[:, 0] for name, values in by_start.items()}
    columns = {"log_target": target, **firsts, **{f"start_{name}": values for name, values in by_start.items()}}
    texts = tuple(TextInfo(f"t{i}", TEXT, prompt=f"p{i // 2}") for i in range(starts // TEXT))
    return Trace(columns, texts, {"origin": "sampled from the target", "settings": {"depth": depth}})


def _law(first: np.ndarray, ranks: int, rng: np.random.Generator) -> np.ndarray:
    others = rng.dirichlet(np.ones(ranks), first.shape)[..., :-1]
    law = np.concatenate([first[..., None], (1 - first)[..., None] * others], axis=-1)
    return np.asarray(law.astype(np.float32))


def in_arrays() -> None:
    """From here on nothing is compiled."""
    kernels.pays = lambda positions: False  # type: ignore[assignment]


def check_equal(folder: Path) -> None:
    """Loops against arrays, and the blocks of a file against the trace in memory, on chains and a tree."""
    trace = made_up(300_000, np.random.default_rng(1))
    trace.write(folder / "trace.parquet")
    opened = Trace.open(folder)
    assert isinstance(opened.columns, OnDisk)
    rules = [PATH_RULES[name] for name in ("token", "block", "race", "lookup", "recursive")]
    shapes = [Chain(1), Chain(4), Chain(16), KAry((2, 2))]
    ours = numbers(plan(opened, ConstantRatio(0.1), rules=rules, shapes=shapes))
    np.testing.assert_allclose(ours, numbers(plan(trace, ConstantRatio(0.1), rules=rules, shapes=shapes)), rtol=CLOSE)
    loops, kernels.pays = kernels.pays, lambda positions: False
    np.testing.assert_allclose(ours, numbers(plan(trace, ConstantRatio(0.1), rules=rules, shapes=shapes)), rtol=CLOSE)
    kernels.pays = loops


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

    if arrays:
        in_arrays()
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.suppress(SystemExit):
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
        trace, name = made_up(positions, rng), f"{positions:,} positions"
        found = measured(trace)
        peer = (measured(trace, arrays=True)["seconds"], "arrays") if positions in OF_PEER else (None, "")
        others = *peer, found["reading"], "reading and checking every column", 15.0 if positions == SIZES[-1] else None
        rows.append(Row(f"predict, {name}", "s", found["seconds"], EQUAL, *others, {"positions": positions}, "predict"))
        memory.append(Row(f"peak memory, {name}", "MB", found["peak"], EQUAL, wanted=2048.0))
        seconds.append(found["seconds"])
    for starts in HEADS:
        found, name = measured(of_head(starts, DEPTH, rng)), f"a head's trace, {starts:,} starts x {DEPTH}"
        rows.append(Row(f"predict, {name}", "s", found["seconds"], EQUAL))
        memory.append(Row(f"peak memory, {name}", "MB", found["peak"], EQUAL, wanted=2048.0))
    slope = float(np.polyfit(np.log(SIZES), np.log(seconds), 1)[0])
    last = float(np.polyfit(np.log(SIZES[-2:]), np.log(seconds[-2:]), 1)[0])
    note = f"Seconds grow as positions to the power {slope:.2f}; {last:.2f} between the two largest."
    title = "Large traces: the usual answer of predict, CPU seconds of a fresh process with its imports"
    publish(__file__, title, [*rows, *memory], note)


if __name__ == "__main__":
    main()
