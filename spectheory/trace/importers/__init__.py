"""Logs read as traces, calls, totals or scores: formats of any tool here, those of an engine in its folder."""

from __future__ import annotations

from functools import cache

from spectheory.engines import of_engines
from spectheory.trace.importers.acceptance import ACCEPTANCE, LENGTHS
from spectheory.trace.importers.base import CALL_LOG, COUNTERS, TRACE, Evidence, Format
from spectheory.trace.importers.evaluations import AIPERF, EAGLE, SPEC_BENCH, SPECDECODE
from spectheory.trace.importers.logprobs import LOG_PROBABILITIES, OPENAI_LOGPROBS
from spectheory.trace.importers.prometheus import PROMETHEUS

__all__ = ["Evidence", "Format", "formats"]


@cache
def formats() -> dict[str, Format]:
    """Every built-in format by its name, tried in this order: answers of one request before totals of many."""
    requests, scores, totals = (
        [each for of_one in of_engines("logs", kind) for each in of_one] for kind in ("REQUESTS", "SCORES", "TOTALS")
    )
    calls = (CALL_LOG, COUNTERS, AIPERF, *requests, SPEC_BENCH, EAGLE)
    texts = (*SPECDECODE, *scores, OPENAI_LOGPROBS, LOG_PROBABILITIES)
    return {each.name: each for each in (TRACE, *calls, *texts, PROMETHEUS, *totals, ACCEPTANCE, *LENGTHS)}
