"""Intervals of what a log counted: over its requests, or over its calls as if these were independent."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spectheory.intervals import Interval
from spectheory.prediction.over_prompts import left_out, ratio, reach
from spectheory.prediction.renewal import spread_of_calls
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters
from spectheory.trace.pooled import by_accepted

Noise = Literal["requests", "calls", "unknown"]
"""Intervals (95%) of the engine's own k are over requests, or binomial over calls as if these were independent: a lower
bound of the noise."""


def tokens_per_call(counters: Counters, log: CallLog | None) -> tuple[Callable[[int], Interval], Noise]:
    """Tokens per call of chains of k with their 95% interval, and what that is over."""
    if log is not None and len(log) > 1 and counters.survival:
        counts = [by_accepted(each) for each in log.requests]
        calls = left_out(np.array([sum(found.values()) for found in counts], dtype=float))

        def over_requests(k: int) -> Interval:
            tokens = [sum((1 + min(j, k)) * n for j, n in found.items()) for found in counts]
            return ratio(left_out(np.array(tokens, dtype=float)), calls, limits=(1.0, k + 1.0))

        return over_requests, "requests"

    def over_calls(k: int) -> Interval:
        depths = range(1, k + 1)
        mean = math.fsum(counters.survival[:k])
        if not counters.calls:
            return Interval.estimate(1 + mean)
        square = math.fsum((2 * i - 1) * counters.survival[i - 1] for i in depths)
        half = reach(np.inf) * math.sqrt(max(square - mean**2, 0.0) / counters.calls)
        return Interval(max(1 + mean - half, 1.0), 1 + mean, min(1 + mean + half, k + 1.0), "statistical")

    return over_calls, "calls" if counters.calls and counters.survival else "unknown"


def survival_at(counters: Counters, log: CallLog | None, i: int) -> Interval:
    """The share of calls that accepted at least i tokens with its 95% interval, over requests where there are several.

    It is never shorter than that of independent calls, so few requests that agree by chance are not taken as certain.
    """
    share = counters.survival[i - 1]
    independent = share_of_calls(share, counters.calls)
    if log is None or len(log) < 2:
        return independent
    counts = [by_accepted(each) for each in log.requests]
    reached = left_out(np.array([sum(n for j, n in found.items() if j >= i) for found in counts], dtype=float))
    calls = left_out(np.array([sum(found.values()) for found in counts], dtype=float))
    over = ratio(reached, calls, limits=(0.0, 1.0))
    return Interval(min(over.low, independent.low), share, max(over.high, independent.high), independent.kind)


def covariance(counters: Counters, log: CallLog | None) -> NDArray[np.float64] | None:
    """Covariance ``[k, k]`` of the counted survival: over requests, or as if calls were independent; None if unknown.

    Over few requests it is at least that of independent calls on the diagonal.
    """
    shares = np.array(counters.survival)
    if not counters.calls or not len(shares):
        return None
    of_calls, places = spread_of_calls(counters.survival, counters.calls), range(len(shares))
    if log is None or len(log) < 2:
        return of_calls
    counts = [by_accepted(each) for each in log.requests]
    calls = np.array([sum(found.values()) for found in counts], dtype=float)
    reached = np.array([[sum(n for j, n in found.items() if j > i) for i in places] for found in counts], dtype=float)
    off = reached - calls[:, None] * shares
    over = off.T @ off / calls.sum() ** 2 * len(calls) / (len(calls) - 1)
    return of_calls if np.trace(of_calls) > np.trace(over) else np.asarray(over)


def share_of_calls(share: float, calls: int | None) -> Interval:
    """A share of calls with Wilson's 95% interval, which is valid near 0 and 1 too."""
    if not calls:
        return Interval.estimate(share)
    z = reach(np.inf)
    weight = 1 + z**2 / calls
    centre = (share + z**2 / (2 * calls)) / weight
    half = z / weight * math.sqrt(share * (1 - share) / calls + (z / (2 * calls)) ** 2)
    return Interval(min(max(centre - half, 0.0), share), share, max(min(centre + half, 1.0), share), "statistical")
