"""A measurement by worker processes, each on its own core with one thread: wall-clock seconds.

Every number of workers measures the same prompts of the built-in pair. The traces are compared byte for byte with that
of one process before anything is timed. Times begin with the first finished prompt, so that starting
processes and loading models, which has a row of its own, is left out. All numbers of workers take turns;
the rows are medians. The peer is this process without workers, on one thread; the limit is its time over the workers.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter as now

import torch
from _rows import Row, publish

from spectheory.measure import MeasureSettings, ModelPair, measure
from spectheory.measure.runners import Runner, here, local_workers
from spectheory.pairs import PROMPTS, PairSource
from spectheory.processes import processors
from spectheory.prompts import Prompt, read_prompts
from spectheory.trace import Trace

SOURCE = PairSource("builtin:target", "builtin:distilled", device="cpu")
EQUAL = "the trace of this process, byte for byte"


def run(runner: Runner, pair: ModelPair, prompts: Sequence[Prompt], tokens: int) -> tuple[Trace, float, float]:
    """The trace, seconds until the first prompt is finished, and seconds of all others."""
    moments: list[float] = []
    settings = MeasureSettings(tokens=tokens)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.parquet"
        trace = measure(pair, prompts, settings, path, runner=runner, on_progress=lambda _: moments.append(now()))
    begun, first, *_, last = moments
    return trace, first - begun, last - first


def equal(one: Trace, other: Trace) -> bool:
    """Whether all columns have the same bytes."""
    return one.texts == other.texts and all(
        values.tobytes() == other.columns[name].tobytes() for name, values in one.columns.items()
    )


def rows_of(work: Callable[[Runner], tuple[Trace, float, float]], others: int, most: int, repeats: int) -> list[Row]:
    """Check, then time in turn."""
    runners = {0: here} | {n: local_workers(SOURCE.load, ["cpu"] * n, threads=1) for n in range(1, most + 1)}
    runs_of = {n: [work(runner)] for n, runner in runners.items()}
    (alone, *_), *_ = runs_of[0]
    assert all(equal(trace, alone) for runs in runs_of.values() for trace, *_ in runs), EQUAL
    for _ in range(repeats - 1):
        for n, runner in runners.items():
            runs_of[n].append(work(runner))
    starts = {n: statistics.median(start for _, start, _ in runs) for n, runs in runs_of.items()}
    each = {n: statistics.median(seconds for _, _, seconds in runs) for n, runs in runs_of.items()}
    after, until = f"{others} prompts after the first", "until the first prompt is finished"
    rows = []
    for n in range(1, most + 1):
        at, limit = {"workers": n}, (each[0] / n, f"no workers, over {n}")
        peers = (each[0], "no workers", *limit), (starts[0], "no workers")
        rows.append(Row(f"workers: {n}, {after}", "s", each[n], EQUAL, *peers[0], at=at, curve="measuring"))
        rows.append(Row(f"workers: {n}, {until}", "s", starts[n], EQUAL, *peers[1], at=at))
    return rows


def main() -> None:
    """Take the times and publish them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=min(processors(), 8), help="the most workers")
    parser.add_argument("--prompts", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    prompts = read_prompts(PROMPTS)[: options.prompts]
    work = partial(run, pair=SOURCE.load(), prompts=prompts, tokens=options.tokens)
    rows = rows_of(work, len(prompts) - 1, options.workers, options.repeats)
    publish(__file__, f"Measuring with several workers, {processors()} processors", rows)


if __name__ == "__main__":
    main()
