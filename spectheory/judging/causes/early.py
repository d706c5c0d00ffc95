"""A draft that stops early: fewer drafted tokens than k though the text has room."""

from __future__ import annotations

from spectheory.judging.causes.base import Cause, Context, Finding
from spectheory.judging.counting import Counting
from spectheory.judging.starts import Calls
from spectheory.trace.calls import CallLog


def explains(context: Context) -> Finding | None:
    """Calls draft fewer tokens than k away from the end of a text."""
    found = stops_early(context.log, context.counting, context.calls)
    return None if found is None else Finding(EARLY.name, found, context.refuted[0].rule)


def stops_early(log: CallLog, counting: Counting, calls: Calls | None) -> str | None:
    """Which calls draft less than they could, and what is biased, in a sentence; certain, so it has no false alarms."""
    k, requests = counting.k, log.requests
    if calls is not None and all(r.drafted for r in requests if r.accepted):
        short = int((calls.drafted < (calls.left - 1).clip(max=k)).sum())
        if not short:
            return None
        how = f"{short} of {len(calls.drafted)} calls draft fewer than {k} tokens where the text has room"
    else:
        known = [r for r in requests if r.calls is not None and r.total_drafted is not None]
        made, full = sum(r.total_drafted or 0 for r in known), sum(k * (r.calls or 0) for r in known)
        # Calls in the last k tokens of a text may draft fewer: those with 1, 2, ..., k tokens to go.
        if not made < full - len(known) * k * (k + 1) // 2:
            return None
        how = f"calls draft {made * k / full:.2f} tokens on average, {k} at most"
    return f"{how}: {BIASED}"


BIASED = (
    "counts over drafts and acceptance per position over calls are biased down, and no rule with a fixed k predicts "
    "them; tokens per call are not biased"
)
EARLY = Cause(
    "early-stopping draft",
    "calls draft fewer tokens than the text has room for, by the draft or by a schedule",
    explains,
)
