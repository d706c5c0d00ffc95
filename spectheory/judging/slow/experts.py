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
    sure = "an upper bound" if more.kind == "bound" else "an estimate of the most: sequences use all experts equally"
    said = (
        f"the target has experts: {case.k + 1 if case.k else 1} tokens of each sequence read up to {1 + more.high:.2f} "
        f"times the weights of a plain step ({sure}, as neighbouring tokens share experts)"
    )
    steps, within = (Interval(0.0, high, high, more.kind) for high in (more.high, explained))
    return Found(EXPERTS.name, said, steps, case.without(within))


def more_experts(target: ModelShape | None, k: int | None, batch: int) -> Interval | None:
    """Plain steps that verifying reads more than one, where reading weights is the time (C7); None without experts."""
    if target is None or k is None or not target.routed:
        return None
    plain, call = (target.pass_bytes(tokens, batch) for tokens in (1, k + 1))
    return call * (1 / plain.best) + -1.0


EXPERTS = Reason("experts", "verified tokens read more experts than a plain step", _look)
