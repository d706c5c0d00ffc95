"""A2 from both sides without a sort: tokens are counted in cells of t = p/(p+q), and few tokens are sorted.

Written with F(t) = t(1-t)/N(t), N(t) = sum_y max((1-t) p_y, t q_y), a token of mass w = p + q adds w F(t) to the race's
acceptance. N is convex and F concave. So the contribution of a cell is at most F at the cell's mean t, where N is at
least its value with the cell merged into one token, and at least the chord of F between the cell's edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, scratch
from spectheory.kernels.ratio_order import ratio_order

CELLS = 2**15
"""Cells of t in [0, 1]: the smooth part of a pair then adds 1e-9 to the width, and the table fits a core's cache."""

BLOCK = 128
"""Cells per partial sum, which is then added to the running sum."""


def race_bracket(target: Floats, draft: Floats, width: float) -> tuple[float, float, int]:
    r"""Ends of :math:`\sum_x 1/\sum_y\max(p_y/p_x, q_y/q_x)` before rounding (A2, bounds), and the longest chain of
    additions.

    The widest cells are summed exactly until the others are at most `width` wide in total.
    """
    place = scratch("place", target.size, np.uint32)
    cells, before = scratch("cells", CELLS, np.complex128), scratch("before", CELLS, np.complex128)
    fullest = _fill(target, draft, place, cells)
    low, high, gaps = scratch("low", CELLS), scratch("high", CELLS), np.zeros(2048)
    whole = _bound(cells, before, low, high, gaps)
    added = 0.0
    if gaps.sum() > width:
        # The smallest gaps, by binary exponent, stay while their sum fits the width.
        kept = int(np.searchsorted(np.cumsum(gaps), width, side="right"))
        wide = ((high - low).view(np.int64) >> 52 >= kept) & (high > low)
        added = _exactly(target, draft, place, wide, before, whole)
        low[wide] = high[wide] = 0.0
    return float(low.sum() + added), float(high.sum() + added), fullest + BLOCK + CELLS // BLOCK


@compiled
def _fill(target: Floats, draft: Floats, place: NDArray[np.uint32], cells: NDArray[np.complex128]) -> int:
    """Write the cell of each token and the masses p + iq of each cell; return the largest count of a cell."""
    for i in range(target.size):
        r = target[i] / draft[i]
        t = 1.0 - 1.0 / (1.0 + r)  # ascends with r also after rounding
        place[i] = min(int(t * CELLS), CELLS - 1) if t > 0.0 else 0
    cells[:] = 0.0
    counts = np.zeros(CELLS, np.uint32)
    for i in range(target.size):
        cell = np.uint64(place[i])
        cells[cell] += complex(target[i], draft[i])
        counts[cell] += np.uint32(1)
    return int(counts.max())


@compiled
def _bound(
    cells: NDArray[np.complex128], before: NDArray[np.complex128], low: Floats, high: Floats, gaps: Floats
) -> float:
    """Write the masses before each cell and its two ends; add up the gaps by binary exponent; return the p-mass."""
    base = 0.0 + 0.0j
    for start in range(0, CELLS, BLOCK):
        block = 0.0 + 0.0j
        for c in range(start, start + BLOCK):
            before[c] = base + block
            block += cells[c]
        base += block
    whole, left = base.real, 0.0
    for c in range(CELLS):
        p, q = cells[c].real, cells[c].imag
        p_above, q_below = whole - before[c].real, before[c].imag
        a, b = c / CELLS, (c + 1) / CELLS
        right = b * (1 - b) / ((1 - b) * (p_above - p) + b * (q_below + q))
        high[c] = p * (q / (q * p_above + p * q_below)) if (p > 0.0) & (q > 0.0) else 0.0
        low[c] = min((p + q) * left + ((1 - a) * p - a * q) * CELLS * (right - left), high[c])
        left = right
    widths = high - low
    exponents = widths.view(np.int64) >> 52
    for c in range(CELLS):
        gaps[exponents[c]] += widths[c]
    return whole


def _exactly(
    target: Floats,
    draft: Floats,
    place: NDArray[np.uint32],
    wide: NDArray[np.bool_],
    before: NDArray[np.complex128],
    whole: float,
) -> float:
    """Contribution of the tokens of the wide cells, in their own ratio order."""
    chosen = np.empty(target.size + 1, np.uint32)
    chosen = chosen[: _choose(place, wide, chosen)]
    p, q, cell = target[chosen], draft[chosen], place[chosen]
    ratios, tokens, left = ratio_order(p, q, np.arange(float(chosen.size)))
    below = q[left.imag[left.real == 0].astype(np.int64)].sum()
    terms = np.empty(ratios.size)
    _terms(ratios, tokens, p, q, cell, before, whole, below, terms)
    return float(terms.sum())


@compiled
def _choose(place: NDArray[np.uint32], wide: NDArray[np.bool_], chosen: NDArray[np.uint32]) -> int:
    """Write the tokens that are in wide cells; return how many."""
    count = 0
    for i in range(place.size):
        chosen[count] = i
        count += wide[np.uint64(place[i])]
    return count


@compiled
def _terms(
    ratios: Floats,
    tokens: Floats,
    target: Floats,
    draft: Floats,
    cell: NDArray[np.uint32],
    before: NDArray[np.complex128],
    whole: float,
    below: float,
    terms: Floats,
) -> None:
    here = np.uint32(CELLS)
    p_in = q_in = 0.0
    for i in range(ratios.size):
        token = np.uint64(tokens[i])
        if cell[token] != here:
            here = cell[token]
            p_in, q_in = 0.0, below if here == 0 else 0.0
        p, q = target[token], draft[token]
        p_below, q_below = before[here].real + p_in, before[here].imag + q_in
        terms[i] = p / ((whole - p_below) + ratios[i] * q_below)
        p_in += p
        q_in += q
