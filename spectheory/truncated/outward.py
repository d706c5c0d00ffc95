"""Ends rounded outward: a certified interval stays certain in floating point."""

from __future__ import annotations

import math
from collections.abc import Iterable

from spectheory.checks import instances
from spectheory.errors import ShapeError
from spectheory.intervals import Interval, weakest
from spectheory.truncated.top import TopLogProbs, a_top


def rounding_slack(*tops: TopLogProbs) -> float:
    """How far two pmfs may be from the unrounded ones, as a sum of total variation distances."""
    return sum(a_top("an argument", top).slack for top in tops)


def settled(value: float, scale: float, *tops: TopLogProbs, relative: bool = False) -> Interval:
    """A value that rests on known tokens alone: exact, unless the server's rounding has been stated."""
    if not any(top.error for top in tops):
        return Interval.exact(value)
    return outward(value, value, scale * rounding_slack(*tops), relative=relative)


def outward(
    low: float, high: float, slack: float, *, relative: bool = False, floor: float = 0.0, ceiling: float = math.inf
) -> Interval:
    """The interval [low, high] widened by `slack` (times 1 + the end, if relative), cut to the possible range."""
    low -= 0.0 if math.isinf(low) else slack * (1 + relative * abs(low))
    high += 0.0 if math.isinf(high) else slack * (1 + relative * abs(high))
    low, high = min(max(low, floor), ceiling), max(min(high, ceiling), floor)
    return Interval(low, low if math.isinf(high) else (low + high) / 2, high, "bound")


def mean_interval(intervals: Iterable[Interval]) -> Interval:
    """Mean over positions: the mean of the low ends to the mean of the high ends, the kind the weakest of all.

    Means of entropy and second log-moment over the contexts of a text are the mu and mu2 of the branching bounds
    (B2'), which fall in mu and rise in mu2: put mu's low end and mu2's high end there.

    Examples
    --------
    >>> mean_interval([Interval(0.0, 0.5, 1.0, "bound"), Interval.exact(0.5)])
    Interval(low=0.25, best=0.5, high=0.75, kind='bound')
    """
    every = instances("intervals", intervals, Interval, remedy="pass one per position")
    if not every:
        raise ShapeError("there are no intervals", limit="needs at least 1", remedy="pass one per position")
    low, best, high = (math.fsum(getattr(i, end) for i in every) / len(every) for end in ("low", "best", "high"))
    return Interval(low, best, high, weakest(*(i.kind for i in every)))
