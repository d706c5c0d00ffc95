"""A slow run as its causes see it: tokens per call, speed-up, and what of a call's time is explained (§16)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spectheory.cost import ModelShape, Roofline
from spectheory.intervals import Interval, weakest
from spectheory.judging.difference import Difference
from spectheory.judging.slow.pairs import Pair
from spectheory.trace.counters import Counters

LEAST = 1.1
"""A cause is named where the run would surely be faster, or slower, by this factor without it."""


def minus(one: Interval, *others: Interval) -> Interval:
    """A difference of values whose errors may all add up: an outer range."""
    return Interval(
        one.low - sum(each.high for each in others),
        one.best - sum(each.best for each in others),
        one.high - sum(each.low for each in others),
        weakest(one.kind, *(each.kind for each in others)),
    )


def quotient(one: Interval, other: Interval) -> Interval:
    """A ratio of positive values whose errors are independent or unknown: an outer range."""
    kind = weakest(one.kind, other.kind)
    return Interval(one.low / other.high, one.best / other.best, one.high / other.low, kind)


@dataclass(frozen=True)
class Case:
    """One setting that is no faster than hoped.

    - `tokens`: tokens per call; `speedup`: over plain decoding, of decoding alone; `whole`: of whole requests, where
      both are known.
    - `k`: drafts of a call as set; `rate`: the acceptance rate as it was given.
    - `difference`: tokens per call as expected and as counted.
    - `verify`, `drafting`: what sizes or timings explain of a call, in plain steps; None is unknown.
    - `fixed`: plain steps of a call besides its drafts, from runs of several k (an estimate).
    - `cost`: the roofline; `target`: its sizes, which may have experts.
    - `plain_step`: measured seconds of a plain step of the batch.
    - `pair` is the timed run with its plain one, and `beside` are other pairs of the same server.
    """

    tokens: Interval
    speedup: Interval
    k: int | None = None
    rate: Interval | None = None
    whole: Interval | None = None
    difference: Difference | None = None
    verify: Interval | None = None
    drafting: Interval | None = None
    fixed: Interval | None = None
    cost: Roofline | None = None
    target: ModelShape | None = None
    plain_step: float | None = None
    counters: Counters | None = None
    pair: Pair | None = None
    beside: Sequence[Pair] = ()
    batch: int = 1

    @property
    def call(self) -> Interval:
        """Time of a call in plain steps: tokens per call over the speed-up.

        Exact for the two numbers: it is what a call took, whatever the reasons.
        """
        return quotient(self.tokens, self.speedup)

    @property
    def rest(self) -> Interval:
        """Plain steps of a call that are not explained; verification counts as one plain step where it is unknown."""
        known = [self.verify or Interval.exact(1.0), *([self.drafting] if self.drafting else [])]
        return minus(self.call, *known)

    def without(self, steps: Interval) -> Interval:
        """The speed-up if a call took so many plain steps less, but one for its verification."""
        call = self.call.best
        least = min(call, 1.0)
        low, best, high = (call / max(call - each, least) for each in (steps.low, steps.best, steps.high))
        return self.speedup * Interval(low, best, high, weakest(steps.kind, self.speedup.kind))

    def matters(self, steps: Interval) -> bool:
        """Whether a call without these plain steps is surely shorter by :data:`LEAST`."""
        call = self.call.best
        return steps.low > 0 and call / max(call - steps.low, 1e-9 * call) >= LEAST


@dataclass(frozen=True)
class Found:
    """A cause that is there: a sentence with its numbers.

    `steps` are the plain steps of a call that it takes, and `without` is the speed-up if it were not there; None where
    numbers are not comparable as they stand. `before` is the speed-up that it is compared with, None that of decoding.
    """

    cause: str
    sentence: str
    steps: Interval | None = None
    without: Interval | None = None
    of_data: bool = False
    before: Interval | None = None

    def effect(self, speedup: Interval) -> float:
        """How far it moves the speed-up, in logarithms."""
        return math.inf if self.without is None else abs(math.log(self.without.best / (self.before or speedup).best))


@dataclass(frozen=True)
class Reason:
    """A possible cause: its name, what it means, and what looks for it.

    Causes that are `of_data` make the numbers themselves doubtful, and go first.
    """

    name: str
    meaning: str
    look: Callable[[Case], Found | None]
