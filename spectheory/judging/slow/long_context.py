"""Caches: at a long context a call costs more plain steps."""

from __future__ import annotations

from dataclasses import replace

from spectheory.cost.roofline import DRAFTING_OFF
from spectheory.drafting import Chain
from spectheory.intervals import Interval
from spectheory.judging.slow.case import Case, Found, Reason


def _look(case: Case) -> Found | None:
    """By the roofline the draft reads a long cache, or calls cost more plain steps than at a shorter context."""
    return _by_sizes(case) or _by_runs(case)


def cache_steps(case: Case) -> Interval:
    """Plain steps that the draft's cache takes of a call: its passes at this context less those of no context; 0 where
    nothing says. Drafting is off by a factor of two either way.
    """
    if case.cost is None or case.k is None or not case.cost.draft_time:
        return Interval.exact(0.0)
    passes = Chain(case.k).passes
    models = case.cost, replace(case.cost, context=0)
    longer, empty = (model.draft_passes(passes).best for model in models)
    steps = (longer - empty) / case.cost.target_step().best
    return Interval(steps / DRAFTING_OFF, steps, DRAFTING_OFF * steps, "statistical")


def _by_sizes(case: Case) -> Found | None:
    steps = cache_steps(case)
    if case.cost is None or not case.matters(steps):
        return None
    said = (
        f"the draft reads its cache of {case.cost.context:g} tokens in every pass: {steps.best:.2f} of a call's "
        f"{case.call.best:.2f} plain steps"
    )
    return Found(CONTEXT.name, said, steps, case.without(steps))


def _by_runs(case: Case) -> Found | None:
    pair = case.pair
    shorter = [
        each
        for each in case.beside
        if pair and pair.same_but(each, "context") and each.drafted.context < pair.drafted.context
    ]
    if pair is None or not shorter:
        return None
    least = min(shorter, key=lambda each: each.drafted.context)
    steps = Interval.estimate(pair.ratio - least.ratio)
    if not case.matters(steps):
        return None
    said = (
        f"a call costs {pair.ratio:.2f} plain steps at {pair.drafted.context:.0f} cached tokens and {least.ratio:.2f} "
        f"at {least.drafted.context:.0f}: drafts and verification read caches more often than a plain step does"
    )
    return Found(CONTEXT.name, said, steps, case.without(steps))


CONTEXT = Reason("long context", "caches that drafts and verification read", _look)
