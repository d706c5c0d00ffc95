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
from pathlib import Path
from typing import Any

import numpy as np
from _machine import print_machine
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

Row = dict[str, float | str]


def nanoseconds(work: Callable[[Any], object], inputs: Sequence[Any], entries: int, repeats: int = 15) -> float:
    """Median thread CPU time per entry of `work` over all inputs, in turn."""
    for item in inputs:
        work(item)
    times = []
    for _ in range(repeats):
        started = time.thread_time()
        for item in inputs:
            work(item)
        times.append(time.thread_time() - started)
    return statistics.median(times) * 1e9 / (entries * len(inputs))


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


def run(measure: Callable[[], list[Row]]) -> None:
    """Print the rows of `measure` under each dispatch of numpy, one process and one thread each; JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--here", action="store_true", help="in this process, with the environment as it is")
    options = parser.parse_args()
    if options.here:
        results = [_show(measure())]
    else:
        print_machine()
        results = [_in_a_process({})]
        if _wide():
            results.append(_in_a_process({"NPY_DISABLE_CPU_FEATURES": " ".join(_wide())}))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")


def _show(rows: list[Row]) -> dict[str, Any]:
    width = max(len(str(row["work"])) for row in rows) + 2
    print(f"numpy dispatch: {dispatch()}")
    print(f"{'':<{width}}{'ours':>8}{'peer':>9}{'limit':>8}{'peer/ours':>11}{'ours/limit':>12}   ns per entry")
    for row in rows:
        ours, peer, limit = (float(row[name]) for name in ("ours", "peer", "limit"))
        print(f"{row['work']:<{width}}{ours:>8.2f}{peer:>9.2f}{limit:>8.2f}{peer / ours:>11.1f}{ours / limit:>12.2f}")
    return {"numpy": np.__version__, "numpy_dispatch": dispatch(), "rows": rows}


def _in_a_process(environment: dict[str, str]) -> dict[str, Any]:
    """The results of this script with its environment changed before numpy is loaded."""
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        whole = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | environment
        subprocess.run([sys.executable, sys.argv[0], "--here", "--json", path], env=whole, check=True)
        return json.loads(path.read_text())[0]


def language_logits(tokens: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of rows as language models have them: 3 x normal, and the same with normal noise."""
    rng = np.random.default_rng(0)
    targets = [3 * rng.standard_normal(tokens) for _ in range(count)]
    return [(target, target + rng.standard_normal(tokens)) for target in targets]


def softmax(logits: np.ndarray) -> np.ndarray:
    """The pmf of a row of logits."""
    grown = np.exp(logits - logits.max())
    return grown / grown.sum()
