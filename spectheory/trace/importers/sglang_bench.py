"""SGLang's benchmark of a server: the results of ``sglang.bench_serving --output-file``, one a line."""

from __future__ import annotations

from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.calls import is_number
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, entries

LENGTH = "accept_length"
BIASED = "SGLang's mean counts the prompt's token and the cut last call: biased by about one token per request."


def read_sglang_bench(path: Path) -> Counters:
    """The one run of a file, or its last one: each is a mean of its own, without counts that could be added."""
    found = [(where, entry) for where, entry in entries(path).items() if entry.get(LENGTH) is not None]
    if not found:
        raise TextError(f"{path} has no {LENGTH}", limit="a run with speculation says it", remedy="serve with a draft")
    where, run = found[-1]
    return _counters(run, where, len(found) - 1)


def _counters(run: Json, where: str, others: int) -> Counters:
    length, tokens = run[LENGTH], run.get("total_output_tokens")
    if not is_number(length) or not 1 <= length <= 1024:
        raise TextError(
            f"{where} has {LENGTH} {length!r}", limit="tokens per call are 1 to 1024", remedy="run it again"
        )
    remarks = (BIASED, *((f"{others} earlier runs of the file are left out.",) if others else ()))
    known = {name: run[name] for name in ("backend", "request_rate", "max_concurrency", "completed") if name in run}
    return Counters(
        mean_length=float(length),
        tokens=tokens if type(tokens) is int and tokens >= 0 else None,
        engine="sglang",
        remarks=remarks,
        provenance=known,
    )


SGLANG_BENCH = Format(
    "sglang-bench",
    lambda head: b'"accept_length"' in head and b'"request_throughput"' in head,
    read_sglang_bench,
    title="SGLang's `bench_serving --output-file`, the last run of a file",
    gives="tokens per call, a mean",
    lacks="counts, survival by position, k",
)
