"""Timed runs of SGLang: bench_serving, bench_one_batch, bench_one_batch_server and bench_speculative.

Keys as in sgl-project/sglang: python/sglang/benchmark/serving.py, one_batch.py, one_batch_server.py, and
scripts/playground/bench_speculative.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.importers.answers import Json, at, entries
from spectheory.trace.timed import TimedFormat, TimedRun, Untimed, k_named

_SWEPT = ("batch_size", "steps", "topk", "step_time", "acc_length")
_LENGTH = "SGLang's accept length counts the prompt's token: high by about one token in a request."
_UNPROMPTED = "The sweep says no prompt lengths: the context is half of the output."


def _each(read: Callable[[Json, str, Path], TimedRun | None]) -> Callable[[Path], Iterator[TimedRun]]:
    """A reader of all lines of a file; a line that gives nothing is passed over."""

    def runs(path: Path) -> Iterator[TimedRun]:
        for where, entry in entries(path).items():
            if run := read(entry, where, path):
                yield run

    return runs


def _served(entry: Json, where: str, path: Path) -> TimedRun:
    """A line of bench_serving: time after the first token over the further tokens, times tokens per call."""
    length, completed, concurrency = entry["accept_length"], entry["completed"], entry["max_concurrency"]
    if not concurrency:
        raise TextError(
            f"{where} has no concurrency", limit="the batch must be known", remedy="run with --max-concurrency"
        )
    prompts, outputs = entry["total_input_tokens"] / completed, entry["total_output_tokens"] / completed
    k = _k_served(entry, where, path)
    per_token = 1e-3 * (entry["mean_e2e_latency_ms"] - entry["mean_ttft_ms"]) / (outputs - 1)
    per_call = min(length, k + 1.0) if k else None
    return TimedRun(
        "sglang",
        concurrency,
        prompts + outputs / 2,
        k,
        per_token * (per_call or 1.0),
        per_call,
        prompts,
        outputs,
        completed,
        entry["duration"],
        ttft=1e-3 * entry["mean_ttft_ms"],
        name=str(entry.get("tag") or path.stem),
        note=_LENGTH if k else "",
    )


def _k_served(entry: Json, where: str, path: Path) -> int:
    """Drafts of a call: what the server said of itself, or the name of the run."""
    server: Any = at(entry, "server_info.decode.0", "server_info") or {}
    named = next((k for name in (entry.get("tag") or "", path.stem) if (k := k_named(name)) is not None), None)
    if server.get("speculative_adaptive"):
        raise TextError(f"{where} is of an adaptive server", limit="calls must draft k tokens each", remedy="fix k")
    if (server.get("speculative_eagle_topk") or 1) > 1:
        raise TextError(f"{where} drafted trees", limit="chains are planned", remedy="serve with topk 1")
    if server.get("speculative_algorithm"):
        return int(server.get("speculative_num_steps") or server["speculative_num_draft_tokens"] - 1)
    if server or entry["accept_length"] is None:
        return 0
    return _named(named, where)


def _named(k: int | None, where: str) -> int:
    if not k:
        raise TextError(
            f"{where} does not say k", limit="the drafts of a call must be known", remedy="name it k3.jsonl"
        )
    return k


def _one_batch(entry: Json, where: str, path: Path) -> TimedRun | None:
    """A line of bench_one_batch, which never speculates: the median of its decoding steps."""
    if "median_decode_latency" not in entry:
        return None
    lengths = entry["input_len"], entry["output_len"]
    context = lengths[0] + lengths[1] / 2
    return TimedRun("sglang", entry["batch_size"], context, 0, entry["median_decode_latency"], None, *lengths)


def _one_batch_server(entry: Json, where: str, path: Path) -> TimedRun | None:
    """A line of bench_one_batch_server: time after the last first token, over the further tokens of a sequence."""
    prompts, outputs, length = entry["input_len"], entry["output_len"], entry["acc_length"]
    if outputs < 2:
        return None
    name = next((name for name in (entry["run_name"], path.stem) if k_named(name) is not None), "")
    k = 0 if length is None or length <= 1 else _named(k_named(name), where)
    per_call = min(length, k + 1.0) if k else None
    step = (entry["latency"] - entry["last_ttft"]) / (outputs - 1) * (per_call or 1.0)
    sizes = (prompts, outputs, entry["batch_size"], entry["latency"])
    context = prompts + outputs / 2
    note = _LENGTH if k else ""
    return TimedRun("sglang", entry["batch_size"], context, k, step, per_call, *sizes, name=name, note=note)


def _sweep(entry: Json, where: str, path: Path) -> TimedRun | None:
    """A line of bench_speculative: the 20th percentile of its steps. With topk 1 a call verifies `steps` drafts."""
    k, outputs = entry["steps"], entry["completion_tokens"]
    if entry["topk"] > 1:
        return None
    per_call = min(max(entry["acc_length"], 1.0), k + 1.0) if k else None
    name = f"k{k}_b{entry['batch_size']}"
    return TimedRun(
        "sglang",
        entry["batch_size"],
        outputs / 2,
        k,
        entry["step_time"],
        per_call,
        output_tokens=outputs,
        name=name,
        note=_UNPROMPTED,
    )


def _holds(*names: str) -> Callable[[bytes], bool]:
    return lambda head: all(f'"{name}"'.encode() in head for name in names)


TIMED = (
    TimedFormat(
        "sglang-bench",
        _holds("accept_length", "request_throughput", "mean_e2e_latency_ms"),
        _each(_served),
        title="SGLang's `bench_serving --output-file`, every line",
        lacks="k before rows had `server_info`: name the file or `--tag` k3",
    ),
    TimedFormat(
        "sglang-one-batch",
        _holds("prefill_latency", "batch_size", "input_len"),
        _each(_one_batch),
        title="SGLang's `bench_one_batch`",
        lacks="speculation: plain steps alone",
    ),
    TimedFormat(
        "sglang-one-batch-server",
        _holds("last_ttft", "acc_length", "batch_size"),
        _each(_one_batch_server),
        title="SGLang's `bench_one_batch_server`",
        lacks="k: name the file or `--run-name` k3",
    ),
    TimedFormat(
        "sglang-sweep",
        _holds(*_SWEPT),
        _each(_sweep),
        title="SGLang's `bench_speculative.py`",
        lacks="prompt lengths; trees are left out",
    ),
)
UNTIMED = (
    Untimed(
        lambda head: b"accept len:" in head or b"sglang:" in head,
        "a log or scrape of SGLang",
        "it has counts, and no time of a step",
        "run python -m sglang.bench_serving --max-concurrency 8 --output-file runs.jsonl",
    ),
)
