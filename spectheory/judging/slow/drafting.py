"""Drafting takes long."""

from __future__ import annotations

from spectheory.drafting import Chain
from spectheory.intervals import Interval
from spectheory.judging.slow.case import Case, Found, Reason, minus
from spectheory.judging.slow.long_context import cache_steps


def _look(case: Case) -> Found | None:
    """Drafts take a share of the call that matters; what their caches take has a cause of its own."""
    if case.drafting is None:
        return None
    cache = cache_steps(case)
    steps = minus(case.drafting, Interval.exact(cache.best)) if case.matters(cache) else case.drafting
    if not case.matters(steps):
        return None
    said = f"drafting takes {steps.best:.2f} of a call's {case.call.best:.2f} plain steps{_by_sizes(case)}"
    return Found(DRAFTING.name, said, steps, case.without(steps))


def _by_sizes(case: Case) -> str:
    """What the sizes of the draft explain, where the log has times of its own."""
    timed = case.counters is not None and case.counters.draft_seconds is not None
    if case.cost is None or not case.cost.draft_time or not case.k or not timed:
        return ""
    passes = case.cost.draft_passes(Chain(case.k).passes).best / case.cost.target_step().best
    return f"; reading and computing explain {passes:.2f} of these"


DRAFTING = Reason("drafting", "the draft's own time", _look)
