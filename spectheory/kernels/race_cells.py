r"""The race's acceptance rate between two bounds, without a sort: tokens are merged in cells of t = p/(p+q) (A2).

The method is that of :mod:`spectheory.kernels.race_bracket`, in two levels. With F(t) = t(1-t)/N(t), N(t) = sum_y
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
from spectheory.kernels.compiling import compiled, compiled_in_any_order, scratch

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
        found = ends.sum()
        if cut > 0:
            few = chosen[: _choose(place, number, chosen)]
            found += _second_level(p[row], q[row], scaled, few, cells, whole, number, cut)
        bounds[row, 0], bounds[row, 1] = found.real, found.imag


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


@compiled_in_any_order
def _plus(total: float, term: float) -> float:
    return total + term


@compiled
def _sum_up_to(most: float, values: Floats) -> float:
    total = 0.0
    for i in range(values.size):
        total = _plus(total, values[i] if values[i] <= most else 0.0)
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
    found, start = 0j, 0j
    for c in range(CELLS):
        if number[c] >= 0:
            before, own = start, parts[number[c]]
            for i in range(PARTS):
                if own[i] != 0:
                    a = (c + i / PARTS) / CELLS
                    found += _bounds(own[i], before, whole, a, a + 1 / (CELLS * PARTS))
                    before += own[i]
        start += cells[c]
    return found
