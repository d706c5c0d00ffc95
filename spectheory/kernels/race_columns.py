r"""The race's acceptance rate between two bounds, without a sort: tokens are merged in cells of t = p/(p+q) (A2).

The method is that of :mod:`spectheory.kernels.race`, in two levels. With F(t) = t(1-t)/N(t), N(t) = sum_y
max((1-t) p_y, t q_y), a token of mass w = p + q adds w F(t) to the acceptance. F is concave; merging the tokens of a
cell leaves it as it is outside the cell and does not lower it inside. So a cell adds at most w F(mean t) of the merged
pmfs, and at least the chord of F between the cell's edges.

**Width.** Both bounds lie between the chord and the tangents of F at the edges a < b of the cell, so they differ by at
most :math:`w (b-a) (F'(a) - F'(b))/4`; over all cells the differences of slopes add up to F'(0) - F'(1) = 2. The
widest cells of the first level are cut into PARTS until the others add up to no more than CELLS GAP; those of GAP at
most never are. So the width is at most CELLS GAP + 2/(2 CELLS PARTS) = 1.5e-6, and the middle is off by half of that.

**Rounding.** A token in a wrong cell has a t that is wrong by 2u, u the rounding of the pmfs' precision. That is the
same as changing p and q of all tokens by 2u in sum. A race's winner changes with at most the probability by which its
pmf does, so the acceptance changes by at most 4u: 2.4e-7 in single precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, plus, scratch

CELLS = 2**12
"""Cells of t in [0, 1]."""
PARTS = 2**8
"""Parts of a cell that is cut."""
GAP = 2.0**-33
"""Cells are not cut where their bounds differ by less; others may stay whole too."""
WIDTH = CELLS * GAP + 1 / (CELLS * PARTS)
"""Largest difference of the bounds of the acceptance."""


def race_bounds(p: NDArray[Any], q: NDArray[Any], bounds: Floats) -> None:
    """Write bounds ``[rows, 2]``, lower and upper, of the race's acceptance rate of pmfs ``[rows, V]``."""
    size = p.shape[1]
    scaled, place = scratch(f"scaled {p.dtype}", size, p.dtype), scratch("cell of token", size, np.uint32)
    _race_bounds(p, q, bounds, scaled, place, scratch("chosen", size + 1, np.uint32))


@compiled
def _race_bounds(
    p: NDArray[Any],
    q: NDArray[Any],
    bounds: Floats,
    scaled: NDArray[Any],
    place: NDArray[np.uint32],
    chosen: NDArray[np.uint32],
) -> None:
    cells, ends = np.empty(CELLS, np.complex128), np.empty(CELLS, np.complex128)
    number = np.empty(CELLS, np.int32)
    for row in range(p.shape[0]):
        _place(p[row], q[row], scaled, place)
        _fill(p[row], q[row], place, cells)
        whole = _first_level(cells, ends)
        cut = _widest(ends, number)
        total = ends.sum()
        if cut > 0:
            few = chosen[: _choose(place, number, chosen)]
            total += _second_level(p[row], q[row], scaled, few, cells, whole, number, cut)
        bounds[row, 0], bounds[row, 1] = total.real, total.imag


@compiled
def _place(p: NDArray[Any], q: NDArray[Any], scaled: NDArray[Any], place: NDArray[np.uint32]) -> None:
    """Write CELLS t, and its integer part, which is the cell; the fraction is the place in the cell."""
    many, most = p.dtype.type(CELLS), p.dtype.type(CELLS - 0.5 / PARTS)
    for i in range(p.size):
        both = p[i] + q[i]
        t = many * (p[i] / (both if both > 0 else both + 1))
        scaled[i] = t if t < most else most
    for i in range(p.size):
        place[i] = np.int32(scaled[i])


@compiled
def _fill(p: NDArray[Any], q: NDArray[Any], place: NDArray[np.uint32], cells: NDArray[np.complex128]) -> None:
    """Write the masses p + iq of each cell."""
    cells[:] = 0.0
    for i in range(place.size):
        cells[np.uint64(place[i])] += complex(p[i], q[i])


@compiled
def _bounds(inside: complex, before: complex, whole: complex, a: float, b: float) -> complex:
    """Bounds, lower + i upper, of what a cell [a, b] adds, from the masses p + iq in it, before it and of all."""
    p, q = inside.real, inside.imag
    p_above, q_below = max(whole.real - before.real, p), before.imag
    left = a * (1 - a) / ((1 - a) * p_above + a * q_below) if a > 0 else 0.0
    right = b * (1 - b) / ((1 - b) * (p_above - p) + b * (q_below + q)) if b < 1 else 0.0
    high = p * (q / (q * p_above + p * q_below)) if (p > 0.0) & (q > 0.0) else 0.0
    return complex(min((p + q) * left + ((1 - a) * p - a * q) * (right - left) / (b - a), high), high)


@compiled
def _first_level(cells: NDArray[np.complex128], ends: NDArray[np.complex128]) -> complex:
    """Write the bounds of each cell; return the masses of all."""
    before, whole = 0j, cells.sum()
    for c in range(CELLS):
        ends[c] = 0j
        if cells[c] != 0:
            ends[c] = _bounds(cells[c], before, whole, c / CELLS, (c + 1) / CELLS)
            before += cells[c]
    return whole


@compiled
def _widest(ends: NDArray[np.complex128], number: NDArray[np.int32]) -> int:
    """Number the cells that are too wide, and set their bounds to 0; return how many. The others are -1."""
    widths = ends.imag - ends.real
    gap = widths.max()
    while _sum_up_to(gap, widths) > CELLS * GAP:
        gap /= 2
    count = np.int32(0)
    for c in range(CELLS):
        number[c] = -1
        if widths[c] > gap:
            number[c], ends[c] = count, 0j
            count += np.int32(1)
    return int(count)


@compiled
def _sum_up_to(most: float, values: Floats) -> float:
    total = 0.0
    for i in range(values.size):
        total = plus(total, values[i] if values[i] <= most else 0.0)
    return total


@compiled
def _choose(place: NDArray[np.uint32], number: NDArray[np.int32], chosen: NDArray[np.uint32]) -> int:
    """Write the tokens of numbered cells; return how many."""
    count = np.uint64(0)
    for i in range(place.size):
        chosen[count] = i
        count += np.uint64(number[np.uint64(place[i])] >= 0)
    return int(count)


@compiled
def _second_level(
    p: NDArray[Any],
    q: NDArray[Any],
    scaled: NDArray[Any],
    few: NDArray[np.uint32],
    cells: NDArray[np.complex128],
    whole: complex,
    number: NDArray[np.int32],
    cut: int,
) -> complex:
    """Sums of the bounds of the parts of the numbered cells, which hold these few tokens."""
    parts = np.zeros((cut, PARTS), np.complex128)
    for i in few:
        cell = int(scaled[i])
        parts[number[cell], int((scaled[i] - cell) * PARTS)] += complex(p[i], q[i])
    total, start = 0j, 0j
    for c in range(CELLS):
        if number[c] >= 0:
            before, sums = start, parts[number[c]]
            for i in range(PARTS):
                if sums[i] != 0:
                    a = (c + i / PARTS) / CELLS
                    total += _bounds(sums[i], before, whole, a, a + 1 / (CELLS * PARTS))
                    before += sums[i]
        start += cells[c]
    return total


# The law of the rank of the race over distinct tokens, without a sort (R2).
#
# The loops of :mod:`spectheory.measure.columns.race`, which has the formulas and their errors.


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
    buffers = scratch(f"rates {p.dtype}", tops * GROUP, p.dtype), scratch(f"tops {p.dtype}", tops, p.dtype)
    _race_law(p, q, ratio, laws, quadrature, limits, *buffers)


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


@compiled
def _rates(p: NDArray[Any], q: NDArray[Any], ratio: float, largest: float, rates: NDArray[Any]) -> float:
    """Write min((ratio q - p)_+, largest); return the sum."""
    total, none = 0.0, largest * 0
    for i in range(p.size):
        rate = ratio * q[i] - p[i]
        rate = rate if rate > none else none
        rates[i] = rate if rate < largest else largest
        total = plus(total, np.float64(rates[i]))
    rates[p.size :] = 0
    return total


@compiled
def _group_tops(rates: NDArray[Any], tops: NDArray[Any]) -> None:
    """Write the largest rate of each group; entry j of a block of LANES GROUP is in group j modulo LANES."""
    for start in range(0, tops.size, LANES):
        block = tops[start : start + LANES]
        block[:] = 0
        for i in range(start * GROUP, (start + LANES) * GROUP, LANES):
            for j in range(LANES):
                block[j] = rates[i + j] if rates[i + j] > block[j] else block[j]


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
        first, second = plus(first, rate), plus(second, square)
        third, fourth = plus(third, square * rate), plus(fourth, square * square)
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
