"""Settings of vLLM: chains from a draft model, which drafts first choices unless told to sample."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spectheory.deployment.candidates import Candidate
from spectheory.deployment.engines.base import ARGMAX, BLOCK, TOKEN, Ask, EngineSettings, command

ENGINE = "vllm"
DRAWN = {TOKEN: ("probabilistic", "standard"), BLOCK: ("probabilistic", "block"), ARGMAX: ("greedy", "standard")}
"""How drafts are drawn and rejected under each rule."""


def vllm_settings(ask: Ask, ranges: Sequence[tuple[int, int, int]] = ()) -> EngineSettings | None:
    """The fastest chain under one of its rules, and the length by batch size if `ranges` has (first, last, k).

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.deployment.candidates import Draft
    >>> from spectheory.trace import Trace
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    >>> ask = Ask.about(Draft("small", trace, ConstantRatio(0.1)), range(1, 9), 8)
    >>> vllm_settings(ask).options["num_speculative_tokens"]
    6
    """
    greedy = ask.sampling.temperature == 0
    best = ask.matching() if greedy else ask.fastest(TOKEN, BLOCK, ARGMAX)
    if best is None:
        return None
    options: dict[str, Any] = {
        "model": ask.draft_name,
        "method": "draft_model",
        "num_speculative_tokens": best.shape.nodes,
    }
    if not greedy:
        drawn, rejected = DRAWN[best.rule.name]
        options |= {"draft_sample_method": drawn, "rejection_sample_method": rejected}
    if ranges:
        options["num_speculative_tokens"] = max(best.shape.nodes, *(k for _, _, k in ranges))
        options["num_speculative_tokens_per_batch_size"] = [list(part) for part in ranges]
    paste = command(["vllm", "serve", ask.target_name], {"speculative-config": json.dumps(options)})
    return EngineSettings(ENGINE, Candidate(ask.draft, best), options, paste, tuple(_remarks(ask, greedy)))


def _remarks(ask: Ask, greedy: bool) -> list[str]:
    if greedy:
        return ["Rule: drafts are accepted where they match the target's first choices."]
    lines = [
        "Rule: the rejection sampler is token verification if drafts are sampled (draft_sample_method probabilistic), "
        "block verification if asked for (rejection_sample_method block).",
    ]
    default = ask.fastest(ARGMAX)
    if default is not None:
        lines.append(
            "By default the draft's first choices are drafted (greedy: rule argmax): at best "
            f"k = {default.shape.nodes}, speed-up {default.speedup}x."
        )
    lines.append("Versions before these options always draft first choices; block needs model runner V2.")
    if ask.sampling.top_k or ask.sampling.top_p:
        lines.append(
            "Sampled drafts follow the temperature but may not be cut by top-k and top-p, as the trace's are: then "
            "fewer are accepted than predicted."
        )
    return lines
