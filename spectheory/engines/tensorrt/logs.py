"""Logs of TensorRT-LLM: iteration statistics, which ``trtllm-serve`` gives at ``/metrics``, and its counters."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.calls import is_count
from spectheory.trace.counters import Counters
from spectheory.trace.importers.answers import Json, entries
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.prometheus import SPECULATION, Metrics

_KEY = "specDecodingStats"
_COUNTS = {"calls": "numRequestsWithDraftTokens", "drafted": "numDraftTokens", "accepted": "numAcceptedTokens"}
_TOLERANCE = 5e-3
"""How far `acceptanceLength` may be from 1 + accepted / requests: it may be printed with two digits."""
_PER_ITERATION = "Seconds are of iterations, which decode several requests at once."
_ARGMAX = "TensorRT-LLM drafts first choices and accepts exact matches unless rejection sampling is switched on."


def _read_stats(path: Path) -> Counters:
    """The sum over the iterations that verified drafts."""
    records = list(entries(path).values())
    seen: list[Any] = []
    for number in (record.get("iter") for record in records if _KEY in record):
        if number is not None and number in seen:
            raise TextError(
                f"{path} has iteration {number} twice",
                limit="an iteration counts once",
                remedy="keep one run in a file",
            )
        seen.append(number)
    steps = [_iteration(record, f"{path}, iteration {record.get('iter', '?')}") for record in records if _KEY in record]
    steps = [each for each in steps if each["calls"]]
    if not steps:
        raise TextError(f"{path} has no iteration with drafts", limit=f"needs {_KEY}", remedy="serve with speculation")
    totals: dict[str, Any] = {name: sum(each[name] for each in steps) for name in _COUNTS}
    for name in ("seconds", "draft_seconds"):
        known = [each[name] for each in steps if each[name] is not None]
        totals[name] = math.fsum(known) if len(known) == len(steps) else None
    per_call = {each["drafted"] / each["calls"] for each in steps}
    most = max(per_call)
    return Counters(
        **totals,
        k=int(most) if len(per_call) == 1 and most.is_integer() else None,
        engine="tensorrt-llm",
        remarks=(_ARGMAX, *((_PER_ITERATION,) if totals["seconds"] is not None else ())),
        provenance={"iterations": len(steps)},
    )


def _iteration(record: Json, where: str) -> dict[str, Any]:
    stats = record[_KEY]
    try:
        counts: dict[str, Any] = {name: stats[key] for name, key in _COUNTS.items()}
        if not all(map(is_count, counts.values())):
            raise TypeError
        times = {"seconds": record.get("iterLatencyMS"), "draft_seconds": stats.get("iterLatencyMS")}
        length = stats.get("acceptanceLength")
        off = (
            length is not None
            and counts["calls"]
            and abs(1 + counts["accepted"] / counts["calls"] - length) > _TOLERANCE
        )
        seconds = {name: None if value is None else value / 1000 for name, value in times.items()}
    except (KeyError, TypeError, OverflowError) as error:
        raise TextError(
            f"{where} has no whole {_KEY}",
            limit=f"needs counts {', '.join(_COUNTS.values())}",
            remedy="export it again",
        ) from error
    if off:
        raise TextError(
            f"{where} says acceptanceLength {length}, its counts {1 + counts['accepted'] / counts['calls']:.4g}",
            limit="1 + accepted / requests with drafts",
            remedy="check the record for other counts",
        )
    return {**counts, **seconds}


TOTALS = (
    Format(
        "tensorrt-llm-stats",
        lambda head: f'"{_KEY}"'.encode() in head,
        _read_stats,
        title="TensorRT-LLM's iteration statistics, JSON or JSON lines",
        gives="calls, drafted and accepted tokens, k if every call drafts as much, the draft's share of the time",
        lacks="survival by position, requests, texts",
    ),
)
METRICS = (
    Metrics(
        "tensorrt-llm",
        "trtllm_",
        {name: SPECULATION[name] for name in ("drafted", "accepted")},
        gauges={"mean_length": "spec_decode_acceptance_length", "draft_share": "spec_decode_draft_overhead"},
        remarks=("Tokens per call is a gauge of the last iterations; the totals have no number of calls.",),
    ),
)
