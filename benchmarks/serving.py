"""Does a fit of few timed points predict an engine? llama.cpp on the built-in pair, with and without speculation.

`spectheory bench` times the engine twice, with other prompts: the first run is fitted, the second one is what is to be
predicted. Each concurrency of 1, 4 and 8 is left out of the fit when it is predicted, at every k. Tokens per call are
counted by the fitted run at other concurrencies, or predicted from a trace of the pair, which knows nothing of the
engine. The miss is predicted over measured throughput of all requests together, while all decode.

Times need a quiet machine. On a busy one `chrt --rr 1` before the command keeps other work away; the load is recorded.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _rows import machine
from _serving_page import ANSWER, PAGE, renewed, table

from spectheory.cli import main
from spectheory.cost.served import fit_server
from spectheory.deployment.served import TimedServer
from spectheory.errors import SettingError
from spectheory.files import write_whole
from spectheory.measure.engines import find_engine
from spectheory.measure.engines.bench import BENCH_FILE
from spectheory.trace import TRACE_FILE, Trace
from spectheory.trace.timed import TimedRun, timed_runs

BATCHES, KS, CONTEXT, OUTPUT = (1, 2, 3, 4, 6, 8, 12, 16), (1, 2, 4), 128, 64
PREDICTED, FEW = (1, 4, 8), ((1, 4, 16), (1, 2, 4, 8, 16))
ARGUMENTS = "--threads 1 --threads-batch 1"
"""One thread: two wait for each other, which takes most of the time where other work runs."""


def timed(engine: str, out: Path, seed: int, repeats: int) -> list[TimedRun]:
    """The points of one run; finished ones are kept."""
    ks, batches = ",".join(map(str, KS)), ",".join(map(str, BATCHES))
    command = ["bench", "--engine", engine, "--k", ks, "--batch", batches, "--context", str(CONTEXT)]
    command += ["--output-tokens", str(OUTPUT), "--repeats", str(repeats), "--seed", str(seed)]
    if status := main([*command, f"--arguments={ARGUMENTS}", "--out", str(out)]):
        raise SystemExit(status)
    return timed_runs(out / BENCH_FILE)


def traced(out: Path) -> Trace:
    """The pair's trace at temperature 0, of the built-in prompts' own continuations."""
    if status := main(["measure", "--temperature", "0", "--tokens", str(OUTPUT), "--out", str(out)]):
        raise SystemExit(status)
    return Trace.read(out / TRACE_FILE)


def per_second(run: TimedRun) -> float:
    """Measured output tokens of all requests together."""
    seconds = run.token_seconds
    assert seconds
    return run.batch / seconds


def row_of(run: TimedRun, others: Sequence[TimedRun], trace: Trace) -> dict[str, Any]:
    """One setting of the second run, predicted from the others of the first, none of this concurrency."""
    server, fit = TimedServer.of(others), fit_server([each.step for each in others])
    step = fit.seconds(run.batch, run.context, run.k)
    of_runs, of_trace = (
        {0: 1.0, **{each.k: each.per_call.best for each in made.tokens}}
        for made in (server, TimedServer.of(others, trace))
    )
    measured = per_second(run)
    predicted = {
        name: run.batch * tokens[run.k] / step.best for name, tokens in (("counts", of_runs), ("trace", of_trace))
    }
    return {
        "concurrency": run.batch,
        "k": run.k,
        "measured": measured,
        "tokens_per_call": run.tokens_per_call,
        "law": fit.law,
        "step": {"measured": run.step_seconds, "low": step.low, "best": step.best, "high": step.high},
        **{f"predicted_by_{name}": value for name, value in predicted.items()},
        **{f"miss_by_{name}": value / measured - 1 for name, value in predicted.items()},
        "trace_tokens_per_call": of_trace[run.k] if run.k else None,
    }


def few_points(few: Sequence[int], fitted: Sequence[TimedRun], checked: Sequence[TimedRun]) -> dict[str, Any]:
    """The miss of step times between few concurrencies, at every k; or why their fit is refused."""
    try:
        fit = fit_server([run.step for run in fitted if run.batch in few])
    except SettingError as error:
        return {"concurrencies": few, "refused": error.what}
    misses = [
        abs(fit.seconds(run.batch, run.context, run.k).best / run.step_seconds - 1)
        for run in checked
        if run.batch not in few
    ]
    return {"concurrencies": few, "law": fit.law, "median": statistics.median(misses), "largest": max(misses)}


def loads_of(out: Path) -> list[float]:
    """The load averages at which the runs in a folder began and ended, which are kept there."""
    file = out / "loads.json"
    known: list[float] = json.loads(file.read_text()) if file.exists() else []
    if not known or not (out / "checked" / BENCH_FILE).exists():
        known.append(os.getloadavg()[0])
        out.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(known))
    return known


def run() -> None:
    """Time, predict, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="llama.cpp", help="NAME=PROGRAM of the engine")
    parser.add_argument("--out", type=Path, default=Path("serving"), help="folder of the runs, which are continued")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    loads_of(asked.out)
    fitted = timed(asked.engine, asked.out / "fitted", 0, asked.repeats)
    loads_of(asked.out)
    checked = timed(asked.engine, asked.out / "checked", 1, asked.repeats)
    trace = traced(asked.out / "trace")
    rows = []
    for batch in PREDICTED:
        others = [each for each in fitted if each.batch != batch]
        rows += [row_of(each, others, trace) for each in checked if each.batch == batch]
    again = [
        abs(math.log(per_second(one) / per_second(other)))
        for one in fitted
        for other in checked
        if (one.k, one.batch) == (other.k, other.batch)
    ]
    whole = {
        "machine": machine(),
        "engine": find_engine(asked.engine).version(),
        "arguments": ARGUMENTS,
        "context": CONTEXT,
        "output_tokens": OUTPUT,
        "repeats": asked.repeats,
        "load_average": loads_of(asked.out),
        "two_runs_differ": {"median": statistics.median(again), "largest": max(again)},
        "few_points": [few_points(few, fitted, checked) for few in FEW],
        "settings": rows,
    }
    text = json.dumps(whole, indent=1) + "\n"
    write_whole(ANSWER, lambda partial: partial.write_text(text))
    PAGE.write_text(renewed(PAGE.read_text()))
    print(table())


if __name__ == "__main__":
    try:
        run()
    except SettingError as error:
        raise SystemExit(f"serving.py: {error}") from error
