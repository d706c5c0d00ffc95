"""Settings of transformers' assisted generation: token verification of sampled drafts, or matching greedy ones."""

from __future__ import annotations

from typing import Any

from spectheory.deployment.candidates import Candidate
from spectheory.deployment.engines.base import TOKEN, Ask, EngineSettings
from spectheory.distributions import Sampling

ENGINE = "transformers"


def transformers_settings(ask: Ask) -> EngineSettings | None:
    """The fastest chain under its rule, with the number of drafts kept constant (checked against version 5.23).

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.deployment.candidates import Draft
    >>> from spectheory.trace import Trace
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    >>> ask = Ask.about(Draft("small", trace, ConstantRatio(0.1)), range(1, 9), 8)
    >>> transformers_settings(ask).options["assistant"]["num_assistant_tokens"]
    6
    """
    sampling = ask.sampling
    best = ask.matching() if sampling.temperature == 0 else ask.fastest(TOKEN)
    if best is None:
        return None
    assistant: dict[str, Any] = {
        "num_assistant_tokens": best.shape.nodes,
        "num_assistant_tokens_schedule": "constant",
        "assistant_confidence_threshold": 0.0,
    }
    generate = sampled(sampling)
    paste = (
        f"draft.generation_config.update({arguments(assistant)})\n"
        f"target.generate(**inputs, assistant_model=draft, {arguments(generate)})"
    )
    return EngineSettings(
        ENGINE,
        Candidate(ask.draft, best),
        {"assistant": assistant, "generate": generate},
        paste,
        tuple(_remarks(ask)),
    )


def sampled(sampling: Sampling) -> dict[str, Any]:
    """The settings of generation that say how tokens are drawn."""
    if sampling.temperature == 0:
        return {"do_sample": False}
    # Left open, top-k would be the library's default of 50.
    drawn = {"temperature": sampling.temperature, "top_k": sampling.top_k or 0, "top_p": sampling.top_p or 1.0}
    return {"do_sample": True, **drawn}


def arguments(options: dict[str, Any]) -> str:
    """Settings as keyword arguments."""
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _remarks(ask: Ask) -> list[str]:
    sampling = ask.sampling
    lines = [
        "Rule: drafts are accepted where they match the target's first choices."
        if sampling.temperature == 0
        else "Rule: token verification of drafts sampled from the draft model; one sequence at a time.",
        "The defaults (20 drafts, stopped below a confidence of 0.4) draft another number in each call.",
        "Its loop takes time of its own, which the latencies of passes leave out: for small models a large share.",
    ]
    if sampling.temperature not in (0, 1) or sampling.top_k or sampling.top_p:
        lines.append(
            "The draft applies temperature, top-k and top-p twice (temperature T as T^2): outputs stay right, fewer "
            "drafts are accepted than predicted."
        )
    return lines
