"""How the benchmarks of the kernels time, and what they write."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from _rows import Row, publish
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__


def nanoseconds(work: Callable[[Any], object], inputs: Sequence[Any], entries: int, repeats: int = 15) -> float:
    """Median thread CPU time per entry of `work` over all inputs, in turn."""

    def whole() -> None:
        for item in inputs:
            work(item)

    whole()
    return median_seconds(whole, repeats) * 1e9 / (entries * len(inputs))


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Median thread CPU time."""
    times = []
    for _ in range(repeats):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return statistics.median(times)


def dispatch() -> str:
    """The instruction sets beyond its baseline that numpy uses here."""
    return " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name]) or "baseline"


def _wide() -> list[str]:
    """Those of them with vectors of 512 bits."""
    return [name for name in dispatch().split() if "AVX512" in name or name == "X86_V4"]


def run(title: str, measure: Callable[[], list[Row]]) -> None:
    """Publish the rows of `measure` under each dispatch of numpy, one process and one thread each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--here", type=Path, help="in this process, with the environment as it is, written there")
    here = parser.parse_args().here
    if here:
        here.write_text(json.dumps([asdict(row) for row in measure()]))
        return
    rows = _in_a_process({}, dispatch())
    if _wide():
        narrow = " ".join(name for name in dispatch().split() if name not in _wide()) or "baseline"
        rows += _in_a_process({"NPY_DISABLE_CPU_FEATURES": " ".join(_wide())}, narrow)
    publish(sys.argv[0], title, rows)


def _in_a_process(environment: dict[str, str], features: str) -> list[Row]:
    """The rows of this script with its environment changed before numpy is loaded."""
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        whole = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | environment
        subprocess.run([sys.executable, sys.argv[0], "--here", path], env=whole, check=True)
        rows = [Row(**row) for row in json.loads(path.read_text())]
        return [replace(row, work=f"{row.work} (numpy: {features})") for row in rows]


def language_logits(tokens: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of rows as language models have them: 3 x normal, and the same with normal noise."""
    rng = np.random.default_rng(0)
    targets = [3 * rng.standard_normal(tokens) for _ in range(count)]
    return [(target, target + rng.standard_normal(tokens)) for target in targets]


def softmax(logits: np.ndarray) -> np.ndarray:
    """The pmf of a row of logits."""
    grown = np.exp(logits - logits.max())
    return grown / grown.sum()
