"""Other tools' logs read as traces, calls or totals: a file per format, and a line in :data:`FORMATS`."""

from spectheory.trace.importers.base import Evidence, Format
from spectheory.trace.importers.call_log import CALL_LOG
from spectheory.trace.importers.logprobs import LOG_PROBABILITIES
from spectheory.trace.importers.vllm_bench import VLLM_BENCH

__all__ = ["FORMATS", "Evidence", "Format"]

FORMATS: dict[str, Format] = {each.name: each for each in (CALL_LOG, VLLM_BENCH, LOG_PROBABILITIES)}
"""Every format by its name, tried in this order."""
