"""Experts: a call reads more experts than a plain step."""

from __future__ import annotations

from spectheory.cost import ModelShape
from spectheory.intervals import Interval
from spectheory.judging.slow.case import Case, Found, Reason


def _look(case: Case) -> Found | None:
    """Verified tokens touch more experts, and reading these takes long."""
    more = more_experts(case.target, case.k, case.batch)
    if more is None:
        return None
    explained = min(more.high, case.call.best - 1)
    if not case.matters(Interval.estimate(explained)):
        return None
    said = (
        f"the target has experts: {case.k + 1 if case.k else 1} tokens of each sequence read up to {1 + more.high:.2f} "
        "times the weights of a plain step (an upper bound, as neighbouring tokens share experts)"
    )
    steps = Interval(0.0, more.high, more.high, "bound")
    return Found(EXPERTS.name, said, steps, case.without(Interval(0.0, explained, explained, "bound")))


def more_experts(target: ModelShape | None, k: int | None, batch: int) -> Interval | None:
    """Plain steps that verifying reads more than one, where reading weights is the time (C7); None without experts."""
    if target is None or k is None or not target.routed:
        return None
    plain, call = (target.pass_bytes(tokens, batch) for tokens in (1, k + 1))
    return call * (1 / plain.best) + -1.0


EXPERTS = Reason("experts", "verified tokens read more experts than a plain step", _look)
