"""Calls whose length the draft decides (§11), in fractions: stopping rules, and runs of drafts that they end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from proofs_check.algorithms.enumeration import CallLaw, Model, Pmf, Prefix, Rule, StoppableRule
from proofs_check.statement.fractions import Fraction


@dataclass(frozen=True)
class Stop:
    """Where drafting stops, from the draft's pmf at a position and the token drafted there; `keeps` that token."""

    written: str
    stops: Callable[[Pmf, int], bool]
    keeps: bool = False

    def goes_on(self, draft: Model, prefix: Prefix, path: Prefix) -> bool:
        """Whether a call that drafted `path` after `prefix` drafts another token."""
        if self.keeps:
            return not any(self.stops(draft(prefix + path[:i]), token) for i, token in enumerate(path))
        return not any(self.stops(draft(prefix + path[:i]), 0) for i in range(len(path) + 1))


def entropy(q: Pmf) -> float:
    """H(q) in nats, rounded; it is only compared with a threshold."""
    return -sum(float(share) * math.log(share) for share in q if share)


STOPS = (
    Stop("token<0.37", lambda q, token: q[token] < Fraction(37, 100), keeps=True),
    Stop("top<0.61", lambda q, _: max(q) < Fraction(61, 100)),
    Stop("entropy>0.53", lambda q, _: entropy(q) > 0.53),
)
"""One of each kind, as the library writes it; no pmf of the cases is at a threshold."""


def ended_by(stop: Stop, rule: StoppableRule, *, by_target: bool = False) -> Rule:
    """A whole call whose drafts the stopping rule ends; it reads the draft's pmfs, or the target's in their place."""

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        read = target if by_target else draft
        return rule(target, draft, prefix, k, lambda _, before, path: stop.goes_on(read, before, path))

    return call
