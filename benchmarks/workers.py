"""Two workers against one, through `simulations.experiments.collect`: wall-clock seconds, and their ratio.

Every run has a pool of processes that has started and loaded the kernel before its time is taken. The tallies are
equal, number for number, before anything is timed and after. One and two workers take turns. The ratio is that of the
medians; 2 is the limit on a machine with nothing else to do, 1.7 is wanted.
"""

from __future__ import annotations

import statistics
import time

from _rows import Row, publish

from simulations.counts.tally import Tally
from simulations.experiments.collect import collect
from simulations.experiments.pools import process_pool
from simulations.experiments.stopping import Stop
from simulations.experiments.tasks import Task, task
from simulations.simulators import decoding  # noqa: F401  registers the task's kind
from spectheory.processes import processors

CHAINS = {"chains": "yin2024", "length": 50, "k": 4}
TEXTS = 1_000_000
"""Of one batch: some 0.4 s of one core."""

BATCHES, REPEATS, WANTED = 24, 3, 1.7


def seconds(work: Task, workers: int, batches: int) -> tuple[float, Tally]:
    """Wall-clock time of a run in a fresh pool that is warm, and what it counted."""
    with process_pool(workers) as pool:
        warm = task(work.kind, work.parameters, seed=work.seed + 1, trials=TEXTS // 20)
        collect([warm], stop=Stop(trials=8 * workers * warm.trials), executor=pool)
        started = time.perf_counter()
        found = collect([work], stop=Stop(trials=batches * work.trials), executor=pool)
        return time.perf_counter() - started, found[work]


def measure(batches: int, repeats: int) -> list[Row]:
    """Check, then time in turn."""
    work = task("token", CHAINS, seed=1, trials=TEXTS)
    (_, one), (_, two) = (seconds(work, workers, 4) for workers in (1, 2))
    assert one == two, "one worker and two count the same"
    times: dict[int, list[float]] = {1: [], 2: []}
    tallies = []
    for _ in range(repeats):
        for workers, found in times.items():
            took, tally = seconds(work, workers, batches)
            found.append(took)
            tallies.append(tally)
    assert all(tally == tallies[0] for tally in tallies)
    one_worker, two_workers = (statistics.median(times[workers]) for workers in (1, 2))
    same, limit = "one worker and two count the same", f"{TEXTS * BATCHES:,} texts"
    wanted = one_worker / WANTED
    return [
        Row(f"one worker, {limit}", "s", one_worker, same, at={"workers": 1}, curve="simulations"),
        Row(
            f"two workers, {limit}", "s", two_workers, same, one_worker, "one worker", one_worker / 2, "half of that",
            wanted, {"workers": 2}, "simulations",
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    publish(__file__, f"Simulations on several workers, {processors()} processors", measure(BATCHES, REPEATS))
