"""What the benchmarks share: how they time, the logits that they time with, and the rows that they print and write."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from spectheory.files import write_whole

PACKAGES = ("spectheory", "numpy", "scipy", "numba", "torch", "transformers", "pyarrow", "distributed")
RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, str]:
    """Processor, cores, Python, and the versions of what is installed."""
    versions, info = {}, Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    processor = names[0] if names else platform.processor() or "unknown processor"
    return {"processor": processor, "cores": str(os.cpu_count()), "python": platform.python_version(), **versions}


def print_machine() -> None:
    """One line: processor, cores, Python and numpy."""
    info = machine()
    print(f"{info['processor']}, {info['cores']} cores, Python {info['python']}, numpy {info['numpy']}")


@dataclass(frozen=True)
class Row:
    """What a piece of work takes, beside a peer that does the same and a limit, all of one process.

    `unit` is that of all four numbers, such as ``ms per position``. `wanted` is the goal that was set. `equal` says
    which equality was asserted before anything was timed; it is never empty. `at` is where the row stands on the
    scaling curve `curve`, as ``{"V": 151936}``.
    """

    work: str
    unit: str
    ours: float
    equal: str
    peer: float | None = None
    peer_is: str = ""
    limit: float | None = None
    limit_is: str = ""
    wanted: float | None = None
    at: Mapping[str, float] | None = None
    curve: str = ""


def publish(script: str, title: str, rows: Sequence[Row], *notes: str, out: Path | None = None) -> Path:
    """Print rows and notes, and write them to ``results/SCRIPT.json`` or `out` with machine, versions and date."""
    print_machine()
    print(title)
    for line in (*map(line_of, rows), *notes):
        print(line, flush=True)
    path = out or RESULTS / f"{Path(script).stem}.json"
    made = {
        "title": title,
        "rows": [asdict(row) for row in rows],
        "notes": list(notes),
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
    }
    write_whole(path, lambda partial: partial.write_text(json.dumps(made, indent=1) + "\n"))
    return path


def line_of(row: Row) -> str:
    """Ours, the goal, the peer, the limit and both ratios in a line."""
    said = [f"{row.work}: {row.ours:.3g} {row.unit}"]
    if row.wanted is not None:
        said.append(f"wanted {row.wanted:.3g}")
    if row.peer is not None:
        said.append(f"{row.peer_is} {row.peer:.3g} ({row.peer / row.ours:.1f} times ours)")
    if row.limit is not None:
        said.append(f"{row.limit_is} {row.limit:.3g} (ours takes {row.ours / row.limit:.2f} times that)")
    return "; ".join(said)


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


def language_logits(tokens: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of rows as language models have them: 3 x normal, and the same with normal noise."""
    rng = np.random.default_rng(0)
    targets = [3 * rng.standard_normal(tokens) for _ in range(count)]
    return [(target, target + rng.standard_normal(tokens)) for target in targets]


def softmax(logits: np.ndarray) -> np.ndarray:
    """The pmf of a row of logits."""
    grown = np.exp(logits - logits.max())
    return grown / grown.sum()
