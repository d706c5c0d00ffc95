"""Results of `vllm bench serve`: the JSON of --save-result, or the block that it prints."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spectheory.engines.vllm import NO_DRAFTS
from spectheory.errors import FOREIGN, TextError, argument, reason_of
from spectheory.trace.calls import is_count
from spectheory.trace.counters import PAST_END, BenchRun, Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import shares_of

_PREFIX = "spec_decode_"
_BANNER = "Serving Benchmark Result"
_BLOCK = "-Speculative Decoding-"
"""Part of the heading of the printed lines about speculation, which people paste alone."""
_ALL_DIGITS, _TWO_DIGITS = 1e-6, 0.005 + 1e-6
"""Rounding of percentages in JSON, and in the printed block (half a unit of the second decimal)."""
_SHARE_DIGITS = 4
"""Digits of a share that the printed block has as a percentage with two."""


VLLM_BENCH = Format(
    "vllm-bench",
    lambda head: _looks_like(head),
    lambda path: _counters(path),
    title="a result of `vllm bench serve`: `--save-result`, or what it prints, its lines on speculation alone too",
    gives="calls, drafted and accepted tokens, survival by position; several runs the time of steps (`plan --bench`)",
    lacks="requests, texts; calls without drafts",
)


def _counters(path: Path) -> Counters:
    """The totals of the only run, or of the printed lines on speculation where nothing else was pasted."""
    text = text_of(path)
    if _BANNER in text or _BLOCK not in text:
        return _counters_of(_read_run(path))
    if (blocks := text.count(_BLOCK)) > 1:
        raise TextError(
            f"{path} holds the lines of {blocks} runs", limit="one run is read at a time", remedy="split the file"
        )
    try:
        counts = _counts(_printed(text.partition(_BLOCK)[2], path), path, _TWO_DIGITS)
    except KeyError as error:
        raise _refused(path, f"lacks lines on speculation ({reason_of(error)})") from error
    if not counts:
        raise _refused(path, "has no number of drafts")
    return Counters(**counts, k=len(counts["survival"]), engine="vllm", remarks=(PAST_END, NO_DRAFTS))


def read_runs(path: Path) -> list[BenchRun]:
    """All runs of a file: one object, a list of them, a line each (--append-result), or a printed block."""
    text = text_of(path)
    if _BLOCK in text and _BANNER not in text:
        raise _refused(path, "holds the lines on speculation alone, without times")
    if _BANNER in text:
        return [_run(_printed(block, path), path, _TWO_DIGITS) for block in text.split(_BANNER)[1:]]
    return [_run(entry, path, _ALL_DIGITS) for entry in _objects(text, path)]


def _read_run(path: Path) -> BenchRun:
    """The run of a file that holds one."""
    runs = read_runs(path)
    if len(runs) != 1:
        raise TextError(
            f"{path} holds {len(runs)} runs",
            limit="one run is read at a time",
            remedy="split it, or give it to "
            + argument("spectheory.engines.vllm.bench.read_runs", "spectheory plan --bench"),
        )
    return runs[0]


def _counters_of(run: BenchRun) -> Counters:
    """The run's totals; the bench's own numbers are in the provenance."""
    remarks = [PAST_END, NO_DRAFTS] if run.k else ["A run without speculation: no calls were counted."]
    return Counters(
        calls=run.calls,
        drafted=run.drafted,
        accepted=run.accepted,
        survival=run.survival,
        k=run.k or None,
        tokens=run.output_tokens,
        rounding=run.rounding,
        engine="vllm",
        remarks=tuple(remarks),
        provenance={"bench": {name: value for name, value in asdict(run).items() if value is not None}},
    )


def _looks_like(head: bytes) -> bool:
    named = b'"num_prompts"' in head and b'"max_concurrency"' in head
    return _BANNER.encode() in head or _BLOCK.encode() in head or (named and head.lstrip()[:1] in (b"{", b"["))


def _objects(text: str, path: Path) -> list[Mapping[str, Any]]:
    """The JSON objects of a file, which may stand one after the other."""
    decoder, objects, at = json.JSONDecoder(), [], 0
    try:
        while at < len(text) and text[at:].strip():
            value, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
            objects += value if isinstance(value, list) else [value]
    except FOREIGN as error:
        raise _refused(path, f"is no whole JSON ({error})") from error
    if not objects or not all(isinstance(each, dict) for each in objects):
        raise _refused(path, "holds no results")
    return objects


def _run(entry: Mapping[str, Any], path: Path, slack: float) -> BenchRun:
    """One result, its numbers checked against each other."""
    try:
        completed, output = int(entry["completed"]), int(entry["total_output_tokens"])
        ttft, tpot = float(entry["mean_ttft_ms"]) / 1e3, float(entry["mean_tpot_ms"]) / 1e3
        run = BenchRun(
            name=path.stem,
            concurrency=int(entry["max_concurrency"]) if entry.get("max_concurrency") else None,
            completed=completed,
            failed=int(entry.get("failed") or 0),
            duration=float(entry["duration"]) if entry.get("duration") else None,
            input_tokens=int(entry["total_input_tokens"]),
            output_tokens=output,
            ttft=ttft,
            tpot=tpot,
            decoding=_decoding(entry, completed, ttft, tpot, output),
            **_counts(entry, path, slack),
        )
    except FOREIGN as error:
        if isinstance(error, TextError):
            raise
        raise _refused(path, f"is no result ({reason_of(error)})") from error
    if not (completed > 0 and output > completed and 0 < tpot < math.inf and 0 <= ttft < math.inf and run.decoding > 0):
        raise _refused(path, f"has {completed} requests with {output} tokens, {tpot:g} seconds each")
    return run


def _decoding(entry: Mapping[str, Any], completed: int, ttft: float, tpot: float, output: int) -> float:
    """Time after the first token, summed over requests."""
    latencies = entry.get("latencies")
    if isinstance(latencies, list) and len(latencies) == completed:
        return math.fsum(map(float, latencies)) - completed * ttft
    if entry.get("mean_e2el_ms"):
        return completed * (float(entry["mean_e2el_ms"]) / 1e3 - ttft)
    return tpot * (output - completed)


def _counts(entry: Mapping[str, Any], path: Path, slack: float) -> dict[str, Any]:
    """Counts of speculation: nothing without any."""
    if f"{_PREFIX}num_drafts" not in entry:
        return {}
    calls, drafted, accepted = (int(entry[_PREFIX + n]) for n in ("num_drafts", "draft_tokens", "accepted_tokens"))
    survival = tuple(float(share) for share in entry[f"{_PREFIX}per_position_acceptance_rates"])
    if not (calls > 0 and drafted > 0 and survival and all(map(is_count, (calls, drafted, accepted)))):
        raise _refused(path, "counted no calls with drafts")
    percent, stated = 100 * accepted / drafted, float(entry[f"{_PREFIX}acceptance_rate"])
    if abs(percent - stated) > slack:
        raise TextError(
            f"{path}: the acceptance rate is {stated:g}, {accepted} of {drafted} drafts are {percent:.2f} percent",
            limit="the rate must be the percentage of accepted drafts",
            remedy="check that the file is of one run",
        )
    if any(not 0 <= share <= 1 for share in survival):
        raise TextError(
            f"{path}: the acceptance rate of a position is {max(survival):g}",
            limit="must be a fraction in 0..1",
            remedy="divide percentages by 100",
        )
    if abs(math.fsum(survival) * calls - accepted) > slack / 100 * calls * len(survival):
        raise TextError(
            f"{path}: positions sum to {math.fsum(survival) * calls:.1f} accepted tokens, counted are {accepted}",
            limit="the two must agree",
            remedy="check that the file is of one run",
        )
    counts = {"calls": calls, "drafted": drafted, "accepted": accepted}
    if slack < _TWO_DIGITS:
        return {**counts, "survival": survival}
    exact, rounding = shares_of(survival, _SHARE_DIGITS, calls, accepted)
    return {**counts, "survival": exact, "rounding": rounding}


_LINES = {
    "Successful requests": "completed",
    "Failed requests": "failed",
    "Maximum request concurrency": "max_concurrency",
    "Benchmark duration (s)": "duration",
    "Total input tokens": "total_input_tokens",
    "Total generated tokens": "total_output_tokens",
    "Mean TTFT (ms)": "mean_ttft_ms",
    "Mean TPOT (ms)": "mean_tpot_ms",
    "Acceptance rate (%)": f"{_PREFIX}acceptance_rate",
    "Drafts": f"{_PREFIX}num_drafts",
    "Draft tokens": f"{_PREFIX}draft_tokens",
    "Accepted tokens": f"{_PREFIX}accepted_tokens",
}
"""Lines of the printed block, under the names of the JSON."""


def _printed(block: str, path: Path) -> dict[str, Any]:
    """A printed block as the JSON would have it; positions are percentages there."""
    run: dict[str, Any] = {}
    positions = []
    for label, value in re.findall(r"^\s*(.+?):\s+(-?[\d.]+)\s*$", block, flags=re.MULTILINE):
        if label in _LINES:
            run[_LINES[label]] = float(value)
        elif re.fullmatch(r"Position \d+", label):
            positions.append(float(value) / 100)
    if positions:
        run[f"{_PREFIX}per_position_acceptance_rates"] = positions
    return run


def _refused(path: Path, what: str) -> TextError:
    return TextError(
        f"{path} {what}",
        limit="needs results of vllm bench serve",
        remedy="run it with --save-result, and name that file",
    )
