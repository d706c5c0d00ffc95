"""The law of the rank of the race over distinct tokens, without a sort (R2).

The loops of :mod:`spectheory.measure.columns.race`, which has the formulas and their errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, compiled_in_any_order, scratch

LANES = 64
"""Groups of entries that are compared side by side."""
GROUP = 16
"""Entries of a group, of which the largest is kept."""
Quadrature = tuple[Floats, Floats]
"""Times of the winner and their weights."""
Limits = tuple[float, float, float, int, float]
"""Largest rate, smallest rate of a token treated exactly, its smallest share of the others' sum, how many of them are
enough, and the largest number of expected arrivals."""


def race_law(
    p: NDArray[Any], q: NDArray[Any], ratio: Floats, laws: Floats, quadrature: Quadrature, limits: Limits
) -> None:
    """Write the laws ``[rows, ranks]`` at the tokens' p/q."""
    tops = -(-p.shape[1] // (LANES * GROUP)) * LANES
    held = scratch(f"rates {p.dtype}", tops * GROUP, p.dtype), scratch(f"tops {p.dtype}", tops, p.dtype)
    _race_law(p, q, ratio, laws, quadrature, limits, *held)


@compiled
def _race_law(
    p: NDArray[Any],
    q: NDArray[Any],
    ratio: Floats,
    laws: Floats,
    quadrature: Quadrature,
    limits: Limits,
    rates: NDArray[Any],
    tops: NDArray[Any],
) -> None:
    (times, weights), (largest, floor, share, most, arrivals) = quadrature, limits
    counted, series = np.empty((laws.shape[1], times.size)), np.empty((laws.shape[1], times.size))
    grown, moments, few = np.empty(times.size), np.empty(4), np.empty(2 * most)
    for row in range(p.shape[0]):
        whole = _rates(p[row], q[row], p.dtype.type(ratio[row]), p.dtype.type(largest), rates)
        _group_tops(rates, tops)
        limit = _limit(rates, tops, whole, floor, share, most)
        singled = _take(rates, tops, limit, few)
        _moments(rates, moments)
        counted[:] = 0.0
        counted[0] = 1.0
        for i in range(singled):
            _with_token(few[i], times, grown, counted)
        _series(moments, times, arrivals, series)
        for rank in range(laws.shape[1]):
            total = 0.0
            for j in range(rank + 1):
                for n in range(times.size):
                    total += weights[n] * counted[j, n] * series[rank - j, n]
            laws[row, rank] = total
        laws[row, 0] = 1 / (1 + whole)


@compiled_in_any_order
def _plus(total: float, term: float) -> float:
    return total + term


@compiled
def _rates(p: NDArray[Any], q: NDArray[Any], ratio: float, largest: float, rates: NDArray[Any]) -> float:
    """Write min((ratio q - p)_+, largest); return the sum."""
    total, none = 0.0, largest * 0
    for i in range(p.size):
        rate = ratio * q[i] - p[i]
        rate = rate if rate > none else none
        rates[i] = rate if rate < largest else largest
        total = _plus(total, np.float64(rates[i]))
    rates[p.size :] = 0
    return total


@compiled
def _group_tops(rates: NDArray[Any], tops: NDArray[Any]) -> None:
    """Write the largest rate of each group; entry j of a block of LANES GROUP is in group j modulo LANES."""
    for start in range(0, tops.size, LANES):
        own = tops[start : start + LANES]
        own[:] = 0
        for i in range(start * GROUP, (start + LANES) * GROUP, LANES):
            for j in range(LANES):
                own[j] = rates[i + j] if rates[i + j] > own[j] else own[j]


@compiled
def _limit(rates: NDArray[Any], tops: NDArray[Any], whole: float, floor: float, share: float, most: int) -> float:
    """The rate above which tokens are treated exactly: `share` of the others' sum, or `floor`.

    Each step adds fewer than 1/share tokens, as each has more than that share of what was left.
    """
    limit = max(floor, share * whole)
    while True:
        taken, count = 0.0, 0
        for g in range(tops.size):
            if tops[g] > limit:
                start = g // LANES * LANES * GROUP + g % LANES
                for i in range(start, start + LANES * GROUP, LANES):
                    if rates[i] > limit:
                        taken += rates[i]
                        count += 1
        lower = max(floor, share * (whole - taken))
        if lower >= limit or count >= most:
            return limit
        limit = lower


@compiled
def _take(rates: NDArray[Any], tops: NDArray[Any], limit: float, few: Floats) -> int:
    """Move the rates above the limit to `few`; return how many."""
    count = 0
    for g in range(tops.size):
        if tops[g] > limit:
            start = g // LANES * LANES * GROUP + g % LANES
            for i in range(start, start + LANES * GROUP, LANES):
                if rates[i] > limit:
                    few[count] = rates[i]
                    rates[i] = 0
                    count += 1
    return count


@compiled
def _moments(rates: NDArray[Any], moments: Floats) -> None:
    """Write the sums of the first four powers, in double precision, as those of single would underflow."""
    first = second = third = fourth = 0.0
    for i in range(rates.size):
        rate = np.float64(rates[i])
        square = rate * rate
        first, second = _plus(first, rate), _plus(second, square)
        third, fourth = _plus(third, square * rate), _plus(fourth, square * square)
    moments[0], moments[1], moments[2], moments[3] = first, second, third, fourth


@compiled
def _with_token(rate: float, times: Floats, grown: Floats, counted: Floats) -> None:
    """Multiply the generating functions of the count at each time by that of one token."""
    for n in range(times.size):
        grown[n] = np.exp(-rate * times[n])
    for k in range(counted.shape[0] - 1, 0, -1):
        for n in range(times.size):
            counted[k, n] = counted[k, n] * grown[n] + counted[k - 1, n] * (1.0 - grown[n])
    for n in range(times.size):
        counted[0, n] *= grown[n]


@compiled
def _series(moments: Floats, times: Floats, arrivals: float, series: Floats) -> None:
    """Write the generating functions of the rare arrivals at each time."""
    for n in range(times.size):
        u = times[n]
        series[:, n] = 0.0
        if moments[0] * u < arrivals:
            m1, m2, m3, m4 = moments[0] * u, moments[1] * u**2, moments[2] * u**3, moments[3] * u**4
            s1, s2, s3, s4 = m1 - m2 / 2 + m3 / 6 - m4 / 24, m2 - m3 + 7 * m4 / 12, m3 - 3 * m4 / 2, m4
            log = (-s1 - s2 / 2 - s3 / 3 - s4 / 4, s1 + s2 + s3 + s4, -s2 / 2 - s3 - 3 * s4 / 2, s3 / 3 + s4, -s4 / 4)
            series[0, n] = np.exp(log[0])
            for k in range(1, series.shape[0]):
                for j in range(1, min(k, 4) + 1):
                    series[k, n] += j * log[j] * series[k - j, n] / k
