"""The first token: whose pass emits it, and whether that pass is counted as a call."""

from __future__ import annotations

from dataclasses import replace

from spectheory.judging.causes.base import Cause, Context, Finding, by_counting


def explains(context: Context) -> Finding | None:
    """Counts fit with one call more for each request, or with another start of the first call."""
    counting = context.counting
    first = "drafts already" if counting.prefill else "has no drafts and is not counted"
    listed = any(r.accepted for r in context.log.requests)
    counted = replace(counting, prompt_counted=True)
    sentence = "one call more is counted for each request, the prompt's own pass"
    found = None if listed else by_counting(context, counted, PROMPT_TOKEN.name, sentence)
    return found or by_counting(
        context,
        replace(counting, prefill=not counting.prefill),
        PROMPT_TOKEN.name,
        f"against what the log says, the pass that emits the first token {first}",
    )


PROMPT_TOKEN = Cause(
    "prompt's token", "the prompt's pass is counted as a call, or the first call starts elsewhere", explains, True
)
