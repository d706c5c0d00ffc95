"""LMDeploy's counters, which are called as vLLM's are."""

from __future__ import annotations

from spectheory.trace.counters import PAST_END
from spectheory.trace.importers.prometheus import POSITION, SPECULATION, Metrics

METRICS = (
    Metrics(
        "lmdeploy", "lmdeploy:", {**SPECULATION, "tokens": "generation_tokens_total"}, POSITION, remarks=(PAST_END,)
    ),
)
