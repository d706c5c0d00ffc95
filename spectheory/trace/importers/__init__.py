"""Other tools' logs read as traces, calls, totals or scores: a file per format, and a line in :data:`FORMATS`."""

from spectheory.trace.importers.aiperf import AIPERF
from spectheory.trace.importers.base import Evidence, Format
from spectheory.trace.importers.call_log import CALL_LOG
from spectheory.trace.importers.eagle import EAGLE
from spectheory.trace.importers.llama_log import LLAMA_LOG
from spectheory.trace.importers.llama_logprobs import LLAMA_LOGPROBS
from spectheory.trace.importers.llama_requests import LLAMA_REQUESTS
from spectheory.trace.importers.llama_timings import LLAMA_TIMINGS
from spectheory.trace.importers.lm_studio import LM_STUDIO
from spectheory.trace.importers.logprobs import LOG_PROBABILITIES
from spectheory.trace.importers.measured import TRACE
from spectheory.trace.importers.onnxruntime_requests import ONNXRUNTIME_REQUESTS
from spectheory.trace.importers.openai_logprobs import OPENAI_LOGPROBS
from spectheory.trace.importers.openvino_requests import OPENVINO_REQUESTS
from spectheory.trace.importers.own_counters import COUNTERS
from spectheory.trace.importers.prometheus import PROMETHEUS
from spectheory.trace.importers.sglang_bench import SGLANG_BENCH
from spectheory.trace.importers.sglang_log import SGLANG_LOG
from spectheory.trace.importers.sglang_logprobs import SGLANG_LOGPROBS
from spectheory.trace.importers.sglang_requests import SGLANG_REQUESTS
from spectheory.trace.importers.spec_bench import SPEC_BENCH
from spectheory.trace.importers.specdecode_bench import (
    SPECDECODE_AGREEING,
    SPECDECODE_BENCH,
    SPECDECODE_MODEL,
    SPECDECODE_NGRAM,
)
from spectheory.trace.importers.speculators import SPECULATORS
from spectheory.trace.importers.trtllm_stats import TRTLLM_STATS
from spectheory.trace.importers.vllm_bench import VLLM_BENCH
from spectheory.trace.importers.vllm_log import VLLM_LOG
from spectheory.trace.importers.vllm_logprobs import VLLM_LOGPROBS
from spectheory.trace.importers.vllm_offline import VLLM_OFFLINE
from spectheory.trace.importers.vllm_requests import VLLM_REQUESTS

__all__ = ["FORMATS", "Evidence", "Format"]

FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        TRACE,
        CALL_LOG,
        COUNTERS,
        AIPERF,
        VLLM_REQUESTS,
        SGLANG_REQUESTS,
        SPEC_BENCH,
        EAGLE,
        SPECDECODE_BENCH,
        SPECDECODE_AGREEING,
        SPECDECODE_MODEL,
        SPECDECODE_NGRAM,
        OPENVINO_REQUESTS,
        ONNXRUNTIME_REQUESTS,
        LLAMA_REQUESTS,
        VLLM_LOGPROBS,
        SGLANG_LOGPROBS,
        LLAMA_LOGPROBS,
        OPENAI_LOGPROBS,
        LOG_PROBABILITIES,
        PROMETHEUS,
        VLLM_LOG,
        VLLM_OFFLINE,
        VLLM_BENCH,
        SGLANG_BENCH,
        TRTLLM_STATS,
        LLAMA_TIMINGS,
        LM_STUDIO,
        LLAMA_LOG,
        SGLANG_LOG,
        SPECULATORS,
    )
}
"""Every format by its name, tried in this order: answers of one request before totals of many."""
