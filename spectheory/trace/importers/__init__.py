"""Other tools' logs read as traces, calls or totals: a file per format, and a line in :data:`FORMATS`."""

from spectheory.trace.importers.aiperf import AIPERF
from spectheory.trace.importers.base import Evidence, Format
from spectheory.trace.importers.call_log import CALL_LOG
from spectheory.trace.importers.eagle import EAGLE
from spectheory.trace.importers.llama_logprobs import LLAMA_LOGPROBS
from spectheory.trace.importers.llama_requests import LLAMA_REQUESTS
from spectheory.trace.importers.logprobs import LOG_PROBABILITIES
from spectheory.trace.importers.onnxruntime_requests import ONNXRUNTIME_REQUESTS
from spectheory.trace.importers.openai_logprobs import OPENAI_LOGPROBS
from spectheory.trace.importers.openvino_requests import OPENVINO_REQUESTS
from spectheory.trace.importers.sglang_logprobs import SGLANG_LOGPROBS
from spectheory.trace.importers.sglang_requests import SGLANG_REQUESTS
from spectheory.trace.importers.spec_bench import SPEC_BENCH
from spectheory.trace.importers.vllm_logprobs import VLLM_LOGPROBS
from spectheory.trace.importers.vllm_requests import VLLM_REQUESTS

__all__ = ["FORMATS", "Evidence", "Format"]

FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        CALL_LOG,
        AIPERF,
        VLLM_REQUESTS,
        SGLANG_REQUESTS,
        SPEC_BENCH,
        EAGLE,
        OPENVINO_REQUESTS,
        ONNXRUNTIME_REQUESTS,
        LLAMA_REQUESTS,
        VLLM_LOGPROBS,
        SGLANG_LOGPROBS,
        LLAMA_LOGPROBS,
        OPENAI_LOGPROBS,
        LOG_PROBABILITIES,
    )
}
"""Every format by its name, tried in this order."""
