"""The draft's first choices instead of samples of the draft."""

from __future__ import annotations

from spectheory.judging.causes.base import Cause, Context, Finding
from spectheory.verification.registry import find_rule

RULE = "argmax"


def explains(context: Context) -> Finding | None:
    """The rule of first choices fits, and the refuted rule samples its drafts."""
    fits = [one for one in context.others if RULE in (one.rule, *one.same) and not one.refuted]
    sampled = [one for one in context.refuted if find_rule(one.rule).drafts in ("drawn", "distinct")]
    if not (fits and sampled):
        return None
    sentence = "the engine drafts first choices, not samples of the draft: every count is that of rule argmax"
    return Finding(ARGMAX.name, sentence, RULE, fits[0], fits[0].closeness)


ARGMAX = Cause("argmax drafts", "drafts are the draft's first choices instead of samples", explains)
