"""A server that was timed at few points: the points, and the plan to ask for next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from spectheory.answers.measured import BenchJson
from spectheory.reports.base import Report
from spectheory.reports.table import Column, Table
from spectheory.trace.timed import TimedRun

_COLUMNS = (
    Column("k", meaning="drafted tokens per call; 0 is plain decoding"),
    Column("batch", at=lambda run: f"{run.batch}", meaning="requests that decoded together"),
    Column("context", digits=0, meaning="cached tokens of a request in the mean: its prompt and half of its output"),
    Column("step, ms", digits=3, at=lambda run: 1e3 * run.step_seconds, meaning="time of a step, or of a whole call"),
    Column("tokens per call", digits=3, meaning="counted by the server"),
    Column("tokens/s", digits=1, at=lambda run: run.batch / run.token_seconds, meaning="of all requests together"),
    Column("TTFT, ms", digits=1, at=lambda run: 1e3 * run.ttft, meaning="mean time to a first token", aside=True),
    Column("requests", aside=True, meaning="requests timed"),
)
_NOTES = (
    "A step's time is taken while all requests of a point decode: prefill is not in it, as it is in runs of "
    "`vllm bench serve`. It is the median of the repeats (estimates; the fit of a plan shows their error).",
    "tokens/s: output tokens of all requests together while all decode.",
)


def bench_report(runs: Sequence[TimedRun], file: Path, lacking: Mapping[int, str], seconds: float) -> Report:
    """The points as a table; the last note is the command to run next."""
    plannable = len({bool(run.k) for run in runs}) == 2
    command = f"spectheory plan --bench {shlex.quote(str(file))}"
    ordered = sorted(runs, key=lambda run: (run.k, run.batch, run.context))
    content = BenchJson.view(
        file=str(file),
        seconds=seconds,
        runs=ordered,
        lacking=sorted(lacking),
        plan=command if plannable else None,
    )
    times = (
        f"{kind} {1e3 * min(each):.3g} to {1e3 * max(each):.3g} ms"
        for kind, each in (
            ("a plain step takes", [run.step_seconds for run in runs if not run.k]),
            ("a call", [run.step_seconds for run in runs if run.k]),
        )
        if each
    )
    said = ", ".join(times)
    headline = f"{said[:1].upper()}{said[1:]} ({len(runs)} points)."
    return Report(
        content, [Table.of("Points", _COLUMNS, ordered)], headline, [*_NOTES, *_next(lacking, plannable), command]
    )


def _next(lacking: Mapping[int, str], plannable: bool) -> list[str]:
    """What is still to be timed, and how the server is started for it."""
    words = [f"with {start} (k = {k})" if k else f"with {start}" for k, start in sorted(lacking.items())]
    said = [f"Not timed yet: start the server {each} and run the same command again." for each in words]
    return [*said, "Plan with:" if plannable else "Then plan with:"]
