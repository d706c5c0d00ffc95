"""Drafts on made-up texts, with costs: what the tests of planning share."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectheory.cost import LatencyTable, ModelShape
from spectheory.intervals import Interval
from spectheory.trace import TextInfo, Trace

LARGE = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
SMALL = ModelShape.dense(16, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True)


def text_trace(seed: int, spread: float, texts: int = 6, tokens: int = 40, **settings: Any) -> Trace:
    """Texts whose draft is off by `spread` nats, with ranks of top-k and of recursive rejection."""
    rng = np.random.default_rng(seed)
    rows = texts * tokens
    log_target = -np.random.default_rng(1).exponential(1.0, rows)
    log_draft = np.minimum(0.0, log_target + rng.normal(0, spread, rows))
    accepted = np.minimum(1.0, np.exp(log_draft - log_target))
    columns = {
        "log_target": log_target,
        "log_draft": log_draft,
        "rejection_rank": np.stack([accepted * (1 - accepted) ** r for r in range(8)], axis=1),
        "draft_rank": rng.geometric(0.55, rows),
        "greedy_agreement": accepted > 0.7,
    }
    provenance = {
        "target": {"name": "org/large", "fingerprint": "f"},
        "draft": {"name": f"org/small-{seed}"},
        "settings": {"sampling": {"temperature": 1.0, "top_k": None, "top_p": None} | settings},
    }
    return Trace(columns, tuple(TextInfo(str(i), tokens) for i in range(texts)), provenance)


def table(verify: float = 0.02, draft: float = 0.15, longest: int = 65) -> LatencyTable:
    """A target pass of 1 + verify per further token, a draft pass of `draft` and a little more on many tokens."""
    sizes = (1, 2, 4, 8, 16, 32, longest)
    exact = Interval.exact
    return LatencyTable(
        {m: exact(1 + verify * (m - 1)) for m in sizes}, {m: exact(draft * (1 + 0.02 * (m - 1))) for m in sizes}, 64
    )
