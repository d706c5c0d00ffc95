"""Settings of prompt lookup and of suffix decoding, which need no draft model, for the engines that have them."""

from __future__ import annotations

from typing import Any

from spectheory.deployment.engines.base import LOOKUP, SUFFIX, Ask, EngineSettings
from spectheory.deployment.engines.huggingface import (
    LOOKUP_LENGTH,
    LOOKUP_TOP_P,
    OWN_LOOP,
    TRANSFORMERS,
    arguments,
    loaded,
    sampled,
)
from spectheory.deployment.engines.vllm import LOOKUP_NGRAM_METHOD, SUFFIX_METHOD, VLLM, serve
from spectheory.verification.lookup import LOOKUP_NGRAM

_ESTIMATE = (
    "Rule: prompt lookup, which needs no draft model. An estimate: the prediction copies from the latest occurrence of "
    f"the last {LOOKUP_NGRAM} tokens or fewer, and only what it finds."
)
_SUFFIX = (
    "Rule: suffix decoding, which needs no draft model. An estimate: which requests were served before decides what is "
    "copied, and here they are those of the trace in their order."
)


def transformers_lookup(ask: Ask) -> EngineSettings | None:
    """The fastest chain of copied tokens for transformers."""
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
    """The fastest chain of copied tokens for vLLM."""
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


def vllm_suffix(ask: Ask) -> EngineSettings | None:
    """The fastest longest draft of suffix decoding for vLLM, searched as the trace was measured."""
    best = ask.fastest(SUFFIX)
    if best is None:
        return None
    searched = ask.draft.fact("settings", "suffix") or {}
    named = (("max_tree_depth", "max_depth"), ("max_spec_factor", "factor"), ("min_token_prob", "min_probability"))
    options: dict[str, Any] = {
        "method": "suffix",
        "num_speculative_tokens": best.shape.nodes,
        **{f"suffix_decoding_{theirs}": searched[ours] for theirs, ours in named if ours in searched},
        **({"suffix_decoding_max_cached_requests": 0} if searched.get("across") is False else {}),
    }
    return ask.settings(VLLM, best, options, serve(ask, options), [_SUFFIX, SUFFIX_METHOD.does, ask.requests])
