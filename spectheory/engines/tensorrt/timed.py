"""Timed runs of TensorRT-LLM: reports of `trtllm-bench`.

Keys as in NVIDIA/TensorRT-LLM, tensorrt_llm/bench/dataclasses/reporting.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.importers.answers import Json, at, entries
from spectheory.trace.timed import TimedFormat, TimedRun, Untimed

_WHOLE = 0.02
"""How far drafts per iteration may be from a whole number: means are over requests."""


def _read(path: Path) -> Iterator[TimedRun]:
    for where, entry in entries(path).items():
        yield _run(entry, where, path)


def _run(entry: Json, where: str, path: Path) -> TimedRun:
    """Time per output token after the first, times tokens per call; the batch is the mean of concurrent requests."""
    requests, streaming = entry["request_info"], entry.get("streaming_metrics")
    if not streaming:
        raise TextError(
            f"{where} has no time per token", limit="needs streaming_metrics", remedy="run with --streaming"
        )
    prompts, outputs = requests["avg_input_length"], requests["avg_output_length"]
    drafted, accepted = (
        at(entry, f"decoding_stats.{name}.average") or 0.0
        for name in ("num_draft_tokens_percentiles", "num_accepted_draft_tokens_percentiles")
    )
    # Iterations of a request, the prompt's own among them, which is counted as one that drafts.
    iterations = outputs - accepted
    k = round(drafted / iterations)
    if abs(drafted / iterations - k) > _WHOLE or (at(entry, "decoding_stats") and not k):
        raise TextError(
            f"{where} has {drafted / iterations:.2f} drafts in an iteration",
            limit="calls must draft k tokens each",
            remedy="run with one draft length",
        )
    per_call = min((outputs - 1) / (iterations - 1), k + 1.0) if k else None
    return TimedRun(
        "tensorrt-llm",
        max(round(requests["avg_num_concurrent_requests"]), 1),
        prompts + outputs / 2,
        k,
        1e-3 * streaming["avg_tpot_ms"] * (per_call or 1.0),
        per_call,
        prompts,
        outputs,
        requests["num_requests"],
        1e-3 * entry["performance"]["total_latency_ms"],
        calls=round(requests["num_requests"] * (iterations - 1)) if k else None,
        ttft=1e-3 * streaming["avg_ttft_ms"],
        name=path.stem,
    )


TIMED = (
    TimedFormat(
        "trtllm-bench",
        lambda head: b'"avg_num_concurrent_requests"' in head and b'"performance"' in head,
        _read,
        title="TensorRT-LLM's `trtllm-bench ... --streaming --report_json`",
        lacks="the concurrency: the mean of concurrent requests, rounded, is the batch",
    ),
)
UNTIMED = (
    Untimed(
        lambda head: b'"specDecodingStats"' in head or b"trtllm_" in head,
        "statistics or a scrape of TensorRT-LLM",
        "iterations mix prompts and decoding",
        "run trtllm-bench throughput --streaming --report_json run.json",
    ),
)
