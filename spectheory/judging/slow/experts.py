"""Experts: a call reads more experts than a plain step."""

from __future__ import annotations

from spectheory.cost import ModelShape, Routing
from spectheory.intervals import Interval
from spectheory.judging.slow.case import Case, Found, Reason


def _look(case: Case) -> Found | None:
    """Verified tokens touch more experts, and reading these takes long."""
    target, routing = (case.cost.target, case.cost.routing) if case.cost else (case.target, None)
    more = more_experts(target, case.k, case.batch, routing)
    if more is None:
        return None
    explained = min(more.high, case.call.best - 1)
    if not case.matters(Interval.estimate(explained)):
        return None
    if routing is not None:
        most, sure = "", "by the routing log"
    elif more.kind == "bound":
        most, sure = "up to ", "an upper bound, as neighbouring tokens share experts"
    else:
        most, sure = "up to ", "an estimate of the most: sequences use all experts equally"
    said = (
        f"the target has experts: {case.k + 1 if case.k else 1} tokens of each sequence read {most}{1 + more.high:.2f} "
        f"times the weights of a plain step ({sure})"
    )
    steps = more if routing is not None else Interval(0.0, more.high, more.high, more.kind)
    within = Interval(min(steps.low, explained), explained, explained, more.kind)
    return Found(EXPERTS.name, said, steps, case.without(within))


def more_experts(
    target: ModelShape | None, k: int | None, batch: int, routing: Routing | None = None
) -> Interval | None:
    """Plain steps that verifying reads more than one, where reading weights is the time (C7); None without experts."""
    if target is None or k is None or not target.routed:
        return None
    plain, call = (target.pass_bytes(tokens, batch, routing) for tokens in (1, k + 1))
    return call * (1 / plain.best) + -1.0


EXPERTS = Reason("experts", "verified tokens read more experts than a plain step", _look)
