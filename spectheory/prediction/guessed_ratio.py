"""A cost ratio that is given and not measured is a guess: what would be best at half and at twice as much (C1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spectheory.cost import ConstantRatio, CostModel
from spectheory.drafting import Chain, Shape
from spectheory.intervals import Interval
from spectheory.prediction.answer import Plan

GUESSES = (0.5, 1.0, 2.0)
"""Factors of the given c at which speed-ups are shown: c is seldom known better."""
Setting = tuple[str, Shape, Interval]
"""A rule, its shape and the tokens per call."""


@dataclass(frozen=True)
class AtRatio:
    """The fastest setting at another c; `rule` is empty where an engine's counts name none."""

    c: float
    rule: str
    shape: Shape
    tokens_per_call: Interval
    speedup: Interval


def other_ratios(plan: Plan) -> tuple[AtRatio, ...]:
    """The fastest setting of a plan at half and at twice its c; empty where costs were measured, or drafts are free.

    Drafts that decide their length are left out.

    Examples
    --------
    >>> from spectheory import Trace
    >>> from spectheory.prediction import plan
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40), ([-1.0] * 40, [-1.1] * 40)])
    >>> [(each.c, each.shape.nodes) for each in other_ratios(plan(trace, ConstantRatio(0.1), rules="token"))]
    [(0.05, 9), (0.2, 5)]
    """
    return _at_ratios(plan.cost, _fixed_settings(plan))


def _fixed_settings(plan: Plan) -> list[Setting]:
    """The settings of a plan whose drafts do not decide their length, and that are no choice by hindsight."""
    return [
        (p.rule.name, p.shape, p.tokens_per_call)
        for p in plan.predictions
        if not (p.shape.stop or p.rule.hindsight or not p.shape.fixed)
    ]


def _at_ratios(cost: CostModel | None, settings: Iterable[Setting]) -> tuple[AtRatio, ...]:
    """The fastest of some settings (rule, shape, tokens per call) at half and at twice the c of a constant ratio."""
    settings = list(settings)
    if not (isinstance(cost, ConstantRatio) and cost.c > 0 and settings):
        return ()
    return tuple(_fastest_at(factor * cost.c, settings) for factor in GUESSES if factor != 1)


def _fastest_at(c: float, settings: Iterable[Setting]) -> AtRatio:
    """The fastest of some settings at one c; of certain ranges the one with the largest low end."""
    timed = [AtRatio(c, *each, ConstantRatio(c).speedup(each[2], each[1])) for each in settings]
    return max(timed, key=lambda one: one.speedup.low if one.speedup.kind == "bound" else one.speedup.best)


def chains_at_ratios(cost: CostModel | None, tokens: Iterable[tuple[int, Interval]]) -> tuple[AtRatio, ...]:
    """The same of chains of k drafts, where an engine's counts give tokens per call."""
    return _at_ratios(cost, (("", Chain(k), value) for k, value in tokens))
