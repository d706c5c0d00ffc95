"""Accepted tokens past the end of a text."""

from __future__ import annotations

from dataclasses import replace

from spectheory.judging.causes.base import Cause, Context, Finding, by_counting
from spectheory.judging.counting import past_end


def explains(context: Context) -> Finding | None:
    """Counts fit where they may hold tokens past the end, though the log says that they hold none."""
    if context.counting.past_end is not False:
        return None
    certain = past_end(context.log, context.counting)
    if certain:
        return Finding(
            PAST_END.name, f"{certain} accepted tokens lie past the end of their texts", "", {"tokens": certain}
        )
    sentence = "counts hold accepted tokens past the end of a text, so tokens per call are overstated"
    return by_counting(context, replace(context.counting, past_end=True), PAST_END.name, sentence)


PAST_END = Cause("past the end", "accepted tokens past the end of a text are counted", explains)
