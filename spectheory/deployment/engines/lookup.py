"""Settings of prompt lookup, which needs no draft model, for the engines that have it."""

from __future__ import annotations

from typing import Any

from spectheory.deployment.engines.base import LOOKUP, Ask, EngineSettings
from spectheory.deployment.engines.huggingface import (
    LOOKUP_LENGTH,
    LOOKUP_TOP_P,
    OWN_LOOP,
    TRANSFORMERS,
    arguments,
    loaded,
    sampled,
)
from spectheory.deployment.engines.vllm import LOOKUP_NGRAM_METHOD, VLLM, serve
from spectheory.verification.lookup import LOOKUP_NGRAM

_ESTIMATE = (
    "Rule: prompt lookup, which needs no draft model. An estimate: predicted is a copy from the latest occurrence of "
    f"the last {LOOKUP_NGRAM} tokens or fewer, and this engine copies from the earliest."
)


def transformers_lookup(ask: Ask) -> EngineSettings | None:
    """The fastest chain of copied tokens for transformers.

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
    paste = "\n".join([*loaded(target=ask.target), f"target.generate(**inputs, {arguments(options)})"])
    remarks = [_ESTIMATE, LOOKUP_LENGTH.does, OWN_LOOP.does]
    if options.get("top_p", 1.0) < 1:
        remarks.append(LOOKUP_TOP_P.does)
    return ask.settings(TRANSFORMERS, best, options, paste, remarks)


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
        "prompt_lookup_min": 1,
    }
    return ask.settings(VLLM, best, options, serve(ask, options), [_ESTIMATE, LOOKUP_NGRAM_METHOD.does, ask.requests])
