"""How often the interval of a speed-up contains what a quiet machine gives: one pair, timed again and again.

Each measurement is a fresh process, which measures groups of rounds before, between and after the first prompts of the
built-in pair. Every second one runs beside a process that multiplies matrices on one core from before its start to its
end. Speed-ups of one setting, the one that is best most often, are then computed from the recorded trace of the pair
and each table. The truth is the median of the quiet ones. Two intervals are counted: that of the answer, and that of
latencies alone, which leaves the error of prompts out and is therefore narrower; prompts are the same every time.

The number of threads is fixed, as another number is another machine. ``--keep FOLDER`` keeps the tables; the same
command then goes on. Beside the shares the medians with and without load are compared with a quiet interval, which says
what load moves a speed-up by more than its interval.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _rows import RESULTS, machine, print_machine
from scipy.stats import binomtest

from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.files import write_whole
from spectheory.intervals import Interval
from spectheory.measure import MeasureSettings, Timing, load_pair
from spectheory.measure.job import measurement_of
from spectheory.measure.run import run_measurement
from spectheory.pairs import PROMPTS, resolve
from spectheory.prediction import Prediction, plan, predict
from spectheory.prediction.over_prompts import deviation, reach
from spectheory.prompts import read_prompts
from spectheory.trace import Trace

ROOT = Path(__file__).parent.parent
TRACE = ROOT / "docs" / "figures" / "pair" / "distilled" / "trace.parquet"
COUNT, PROMPTS_READ, TOKENS, CONTEXT, K_MAX = 30, 12, 64, 96, 8
WANTED = 0.9
"""Share of the intervals that should contain the truth."""
BUSY = "import numpy as np; m = np.random.default_rng(0).random((600, 600))\nwhile True: m @ m"
SETTLES = 1.0
"""Seconds that the busy process runs before a measurement begins."""


@dataclass(frozen=True)
class Measured:
    """One measurement: whether beside a busy process, cores of all others, and the speed-up of the setting."""

    loaded: bool
    others: float | None
    disturbed: bool
    seconds: float
    groups: int
    answer: Interval
    latencies_alone: Interval


def main() -> None:
    """Measure, or as a process of its own make one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help=f"measurements, half of them loaded ({COUNT})")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads (1)")
    parser.add_argument("--keep", type=Path, help="folder of the tables; a run with the same folder goes on")
    parser.add_argument("--out", type=Path, default=RESULTS / f"{Path(__file__).stem}.json", help="where results go")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.count < 2:
        parser.error("--count must be 2 or more: one quiet measurement and one beside a busy process")
    if asked.one:
        torch.set_num_threads(asked.threads)
        one_table().write(asked.one)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        tables = [(i % 2 == 1, table_of(folder / f"{i}.json", i, asked)) for i in range(asked.count)]
    publish(summary(tables), asked.threads, asked.out)


def table_of(path: Path, number: int, asked: argparse.Namespace) -> LatencyTable:
    """The table of one measurement, made in a fresh process unless it is there."""
    if not path.exists():
        with busy(number % 2 == 1):
            command = [sys.executable, __file__, "--one", str(path), "--threads", str(asked.threads)]
            subprocess.run(command, check=True)
        table = LatencyTable.read(path)
        ended = table.provenance["rounds"]
        print(
            f"{number + 1} of {asked.count}: c = {table.ratio:.3f}, {ended['seconds']:.0f} s for groups, "
            f"others {table.others if table.others is None else round(table.others, 2)}",
            flush=True,
        )
    return LatencyTable.read(path)


@contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """A process that keeps one core busy, if it is wanted."""
    if not wanted:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        time.sleep(SETTLES)
        yield
    finally:
        process.kill()
        process.wait()


def one_table() -> LatencyTable:
    """Latencies of the built-in pair, measured before, between and after its first prompts."""
    pair = load_pair(resolve("builtin:target"), resolve("builtin:distilled"), device="cpu")
    timing = Timing(pair, CONTEXT, loop=Sampling())
    timing.reach(0.0)
    job = measurement_of(pair, read_prompts(PROMPTS)[:PROMPTS_READ], MeasureSettings(tokens=TOKENS, race=False))
    with tempfile.TemporaryDirectory() as folder:
        run_measurement(job, Path(folder) / "trace.parquet", on_idle=timing.reach)
    timing.reach(1.0)
    return timing.table


def summary(tables: Sequence[tuple[bool, LatencyTable]]) -> dict[str, Any]:
    """What each measurement gives for the one setting, and how many intervals contain the median of the quiet ones."""
    trace = Trace.read(TRACE)
    shapes = [Chain(k) for k in range(1, K_MAX + 1)]
    best = Counter(
        (one.rule, one.shape) for one in (plan(trace, table, shapes=shapes, trees=False).best for _, table in tables)
    )
    (rule, shape), chosen = best.most_common(1)[0]

    def of(cost: Any) -> Prediction:
        return predict(trace, rule, shape, cost)

    rows = []
    for loaded, table in tables:
        answer = of(table.looped).speedup
        assert answer is not None
        ends = [[of(end).speedup for end in pair] for pair in table.looped.errors()]
        variance = sum(deviation(low.best, high.best) ** 2 for low, high in ends if low and high)
        error = float(np.exp(reach(np.inf) * np.sqrt(variance)))
        alone = Interval(answer.best / error, answer.best, answer.best * error, "statistical")
        seconds = table.provenance["rounds"]["seconds"]
        rows.append(Measured(loaded, table.others, table.disturbed, seconds, len(table.groups), answer, alone))
    middle = {loaded: _median([row for row in rows if row.loaded is loaded]) for loaded in (False, True)}
    quiet = [row.latencies_alone for row in rows if not row.loaded]
    return {
        "setting": f"{rule.name}, {shape}",
        "best_in": chosen,
        "truth": middle[False],
        "loaded_median": middle[True],
        "shift_of_load": None if middle[True] is None else middle[True] / middle[False] - 1,
        "half_width_of_a_quiet_interval": float(np.median([one.high / one.best - 1 for one in quiet])),
        "inside": {
            f"{kind}, {which}": inside([getattr(row, kind) for row in rows if row.loaded in those], middle[False])
            for kind in ("answer", "latencies_alone")
            for which, those in (("all", (False, True)), ("quiet", (False,)), ("loaded", (True,)))
        },
        "measurements": [asdict(row) for row in rows],
    }


def _median(rows: Sequence[Measured]) -> float:
    return float(np.median([row.answer.best for row in rows])) if rows else float("nan")


def inside(intervals: Sequence[Interval], truth: float) -> dict[str, Any]:
    """How many contain the truth, with the 95% interval of the share (Clopper and Pearson)."""
    count = sum(one.low <= truth <= one.high for one in intervals)
    if not intervals:
        return {"inside": 0, "of": 0, "share": None, "low": 0.0, "high": 1.0}
    ends = binomtest(count, len(intervals)).proportion_ci(0.95)
    share = count / len(intervals)
    return {"inside": count, "of": len(intervals), "share": share, "low": float(ends.low), "high": float(ends.high)}


def publish(results: dict[str, Any], threads: int, out: Path) -> None:
    """Print the shares, and write everything with machine and date."""
    print_machine()
    print(
        f"{results['setting']}: quiet {results['truth']:.3f}x, beside a busy process {results['loaded_median']:.3f}x "
        f"({results['shift_of_load']:+.1%}); half a quiet interval is {results['half_width_of_a_quiet_interval']:.1%}"
    )
    for name, share in results["inside"].items():
        if share["of"]:
            print(
                f"{name}: {share['inside']} of {share['of']} intervals contain the quiet median "
                f"({share['share']:.2f}, 95%: {share['low']:.2f} to {share['high']:.2f}; wanted {WANTED})"
            )
    made = {"title": "Coverage of speed-ups' intervals when latencies are measured again", "wanted": WANTED, **results}
    made |= {"threads": threads, "machine": machine(), "date": datetime.now(UTC).date().isoformat()}
    write_whole(out, lambda partial: partial.write_text(json.dumps(made, indent=1) + "\n"))


if __name__ == "__main__":
    main()
