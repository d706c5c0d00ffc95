"""Timed runs of vLLM: results of `vllm bench serve`, and of its sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spectheory.engines.vllm.bench import VLLM_BENCH, read_runs
from spectheory.errors import TextError
from spectheory.trace.counters import BenchRun
from spectheory.trace.timed import TimedFormat, TimedRun, Untimed

_UNDRAFTED = 0.01
"""Tokens that no counted call output, as a share, from which on a run is refused: steps without drafts were slower or
faster than calls, and its mean mixes them."""


def _timed_run(run: BenchRun) -> TimedRun:
    """The mean time of a step of a run: a plain step, or a call.

    Seconds after the first token, summed over requests, over the tokens that followed it or over the calls. So accepted
    tokens past the end of a text do not matter. The batch is the concurrency.
    """
    if run.concurrency is None:
        raise _refused(run, "has no concurrency", "the batch must be known", "run with --max-concurrency")
    if run.failed:
        raise _refused(run, f"has {run.failed} failed requests", "their tokens are not counted", "run it again")
    calls = run.calls or run.decoded
    per_call = None
    if run.calls:
        _require_one_length(run, run.calls)
        per_call = min(max(run.decoded / run.calls, 1.0), run.k + 1.0)
    return TimedRun(
        "vllm",
        run.concurrency,
        run.context,
        run.k if run.calls else 0,
        run.decoding / calls,
        per_call,
        run.input_tokens / run.completed,
        run.output_tokens / run.completed,
        run.completed,
        run.duration,
        calls=run.calls,
        survival=run.survival,
        ttft=run.ttft,
        name=run.name,
    )


def _require_one_length(run: BenchRun, calls: int) -> None:
    if run.drafted != run.k * calls:
        drafted = f"drafted {(run.drafted or 0) / calls:.2f} tokens per call, {run.k} at most"
        raise _refused(run, drafted, "calls must be of one length", "fix k")
    beside = run.decoded / (calls + (run.accepted or 0)) - 1
    if beside > _UNDRAFTED:
        raise _refused(
            run,
            f"has {beside:.1%} of its tokens from steps without drafts",
            f"at most {_UNDRAFTED:.0%} may be",
            "keep outputs shorter than the model's longest text",
        )


def _refused(run: BenchRun, what: str, limit: str, remedy: str) -> TextError:
    return TextError(f"run {run.name} {what}", limit=limit, remedy=remedy)


def _read(path: Path) -> Iterator[TimedRun]:
    yield from map(_timed_run, read_runs(path))


_SERVE = "use vllm bench serve --max-concurrency 8 --save-result"
TIMED = (
    TimedFormat(
        "vllm-bench",
        VLLM_BENCH.recognises,
        _read,
        title="`vllm bench serve`: `--save-result`, its printed block, and the folder of `vllm bench sweep serve`",
    ),
)
UNTIMED = (
    Untimed(
        lambda head: b"vllm:" in head or b"SpecDecoding metrics" in head,
        "a log or scrape of vLLM or LMDeploy",
        "it has counts, and no time of a step",
        _SERVE,
    ),
    Untimed(
        lambda head: b'"avg_latency"' in head and b'"percentiles"' in head,
        "a result of vllm bench latency",
        "it says no batch, lengths or acceptance",
        _SERVE,
    ),
    Untimed(
        lambda head: b'"elapsed_time"' in head and b'"total_num_tokens"' in head,
        "a result of vllm bench throughput",
        "it has no time of a step",
        _SERVE,
    ),
)
"""Keys as in vllm-project/vllm, vllm/benchmarks/latency.py and throughput.py."""
