"""How long a pool of two workers takes until each has finished a first batch: wall-clock seconds.

Ours are forked from a process that has loaded the kernels beside the run. The peer starts an interpreter for each
worker, which loads them. The limit is two interpreters that load nothing. The tallies are equal first. All take turns.
"""

from __future__ import annotations

import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing.context import BaseContext

from _rows import Row, publish

from simulations.counts.tally import Tally
from simulations.experiments import PRELOADED
from simulations.experiments.batches import Failure, run_batch
from simulations.experiments.tasks import task
from simulations.simulators import lists
from spectheory.processes import begin, fresh_processes, prepare

WORKERS, REPEATS = 2, 5
PAIR = {"target": [0.5, 0.3, 0.2], "draft": [0.2, 0.3, 0.5], "k": 2}


def first_batches(context: BaseContext) -> list[Tally | Failure]:
    """A batch for each worker of a pool that starts and ends here."""
    work = task("gumbel-list", PAIR, seed=1, trials=1000)
    with ProcessPoolExecutor(WORKERS, mp_context=context, initializer=begin) as pool:
        return list(pool.map(run_batch, [work] * WORKERS, range(WORKERS), [lists.__name__] * WORKERS))


def interpreters() -> None:
    """As many interpreters that do nothing, at once."""
    for each in [subprocess.Popen([sys.executable, "-c", "pass"]) for _ in range(WORKERS)]:
        each.wait()


def measure() -> list[Row]:
    """Check, then time in turn."""
    began = time.perf_counter()
    prepare(PRELOADED)
    forked, spawned = fresh_processes(PRELOADED), multiprocessing.get_context("spawn")
    ours = first_batches(forked)
    first = time.perf_counter() - began
    assert ours == first_batches(spawned), "however workers start, they count the same"
    ways: list[Callable[[], object]] = [partial(first_batches, forked), partial(first_batches, spawned), interpreters]
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(REPEATS):
        for way, found in zip(ways, times, strict=True):
            began = time.perf_counter()
            way()
            found.append(time.perf_counter() - began)
    own, peer, limit = map(statistics.median, times)
    same, other, least = "both count the same", "an interpreter for each worker", "two bare interpreters"
    return [
        Row("first pool of a run, nothing loaded before", "s", first, same, peer, other, limit, least),
        Row("a pool while modules are loaded", "s", own, same, peer, other, limit, least),
    ]


if __name__ == "__main__":
    publish(__file__, f"Start of {WORKERS} workers, and their first batches", measure())
