"""Other tools' logs read as traces, calls or totals: a file per format, and a line in :data:`FORMATS`."""

from spectheory.trace.importers.base import Evidence, Format
from spectheory.trace.importers.call_log import CALL_LOG
from spectheory.trace.importers.llama_log import LLAMA_LOG
from spectheory.trace.importers.llama_timings import LLAMA_TIMINGS
from spectheory.trace.importers.logprobs import LOG_PROBABILITIES
from spectheory.trace.importers.measured import TRACE
from spectheory.trace.importers.own_counters import COUNTERS
from spectheory.trace.importers.prometheus import PROMETHEUS
from spectheory.trace.importers.sglang_log import SGLANG_LOG
from spectheory.trace.importers.speculators import SPECULATORS
from spectheory.trace.importers.trtllm_stats import TRTLLM_STATS
from spectheory.trace.importers.vllm_log import VLLM_LOG
from spectheory.trace.importers.vllm_offline import VLLM_OFFLINE

__all__ = ["FORMATS", "Evidence", "Format"]

FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        TRACE,
        CALL_LOG,
        COUNTERS,
        LOG_PROBABILITIES,
        PROMETHEUS,
        VLLM_LOG,
        VLLM_OFFLINE,
        TRTLLM_STATS,
        LLAMA_TIMINGS,
        LLAMA_LOG,
        SGLANG_LOG,
        SPECULATORS,
    )
}
"""Every format by its name, tried in this order."""
