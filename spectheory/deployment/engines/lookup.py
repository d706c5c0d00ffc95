"""Settings of prompt lookup, which needs no draft model, for the engines that have it."""

from __future__ import annotations

import json
from typing import Any

from spectheory.deployment.candidates import Candidate
from spectheory.deployment.engines.base import LOOKUP, Ask, EngineSettings, command
from spectheory.deployment.engines.huggingface import ENGINE as TRANSFORMERS
from spectheory.deployment.engines.huggingface import arguments, sampled
from spectheory.deployment.engines.vllm import ENGINE as VLLM
from spectheory.verification.lookup import LOOKUP_NGRAM

_ESTIMATE = (
    "Rule: prompt lookup, which needs no draft model. An estimate: predicted is a copy from the latest occurrence of "
    f"the last {LOOKUP_NGRAM} tokens or fewer, and this engine copies from the earliest."
)


def transformers_lookup(ask: Ask) -> EngineSettings | None:
    """The fastest chain of copied tokens for transformers (checked against version 5.23).

    Examples
    --------
    >>> import numpy as np
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.deployment.candidates import Draft
    >>> from spectheory.trace import Trace
    >>> text = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    >>> copied = {"lookup_match": np.tile([5, 0], 40), "lookup_drafted": np.tile([5, 0], 40)}
    >>> trace = Trace({**text.columns, **copied}, text.texts)
    >>> ask = Ask.about(Draft("small", trace, ConstantRatio(0.1)), range(1, 9), 8)
    >>> transformers_lookup(ask).options["prompt_lookup_num_tokens"]
    5
    """
    best = ask.fastest(LOOKUP)
    if best is None:
        return None
    options: dict[str, Any] = {
        "prompt_lookup_num_tokens": best.shape.nodes,
        "max_matching_ngram_size": LOOKUP_NGRAM,
        **sampled(ask.sampling),
    }
    paste = f"target.generate(**inputs, {arguments(options)})"
    remarks = [
        _ESTIMATE,
        "It never drafts an end of text, and looks for 2 tokens at most unless max_matching_ngram_size says otherwise.",
        "Its loop takes time of its own, which the latencies of passes leave out: for small models a large share.",
    ]
    if options.get("top_p", 1.0) < 1:
        remarks.append(
            "It asks top-p of logits that are all equal which tokens it may copy, and cuts drafts short at the others: "
            "outputs stay right, fewer drafts are accepted than predicted."
        )
    return EngineSettings(TRANSFORMERS, Candidate(ask.draft.unread, best), options, paste, tuple(remarks))


def vllm_lookup(ask: Ask) -> EngineSettings | None:
    """The fastest chain of copied tokens for vLLM.

    Examples
    --------
    >>> import numpy as np
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.deployment.candidates import Draft
    >>> from spectheory.trace import Trace
    >>> text = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    >>> copied = {"lookup_match": np.tile([5, 0], 40), "lookup_drafted": np.tile([5, 0], 40)}
    >>> trace = Trace({**text.columns, **copied}, text.texts)
    >>> ask = Ask.about(Draft("small", trace, ConstantRatio(0.1)), range(1, 9), 8)
    >>> sorted(vllm_lookup(ask).options)
    ['method', 'num_speculative_tokens', 'prompt_lookup_max', 'prompt_lookup_min']
    """
    best = ask.fastest(LOOKUP)
    if best is None:
        return None
    options: dict[str, Any] = {
        "method": "ngram",
        "num_speculative_tokens": best.shape.nodes,
        "prompt_lookup_max": LOOKUP_NGRAM,
        "prompt_lookup_min": 1,  # left open, it is the longest
    }
    paste = command(["vllm", "serve", ask.target_name], {"speculative-config": json.dumps(options)})
    return EngineSettings(VLLM, Candidate(ask.draft.unread, best), options, paste, (_ESTIMATE,))
