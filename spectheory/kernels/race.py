"""A2 and D3 from one ratio order: the race's acceptance, and g at every ratio."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats, rows
from spectheory.kernels.compiling import compiled, scratch

BLOCK = 128
"""Tokens per plain sum; the sums of blocks are added with error compensation."""


def race_acceptance(target: Floats, draft: Floats) -> Floats:
    r"""Acceptance of the race, :math:`\sum_x p_x/(1+g(p_x/q_x))`, ``[..., V]`` to ``[...]`` (A2, exact)."""
    acceptance = np.empty(np.broadcast_shapes(target.shape[:-1], draft.shape[:-1]))
    for at, (p, q) in rows(target, draft):
        ratios, mass, left = ratio_order(p, q, q)
        acceptance[at] = _acceptance(ratios, mass, left.imag[left.real == 0].sum(), scratch("terms", BLOCK))
    return acceptance[()]


def hockey_stick_at_ratios(target: Floats, draft: Floats) -> Floats:
    """All values :math:`g(p_x/q_x)`, ``[..., V]``; inf outside the draft's support (D3, exact)."""
    values = np.zeros(np.broadcast_shapes(target.shape, draft.shape))
    index = np.arange(target.shape[-1], dtype=np.float64)
    for at, (p, q) in rows(target, draft):
        ratios, tokens, left = ratio_order(p, q, index)
        below = q[left.imag[left.real == 0].astype(np.int64)].sum()
        values[(*at, left.imag[left.real == np.inf].astype(np.int64))] = np.inf
        _hockey_stick(ratios, tokens, q, below, values[at])
    return values


@compiled
def _add(total: float, lost: float, term: float) -> tuple[float, float]:
    """Add a term to a sum, and its rounding error to the errors (two-sum)."""
    new = total + term
    back = new - total
    return new, lost + ((total - (new - back)) + (term - back))


@compiled
def _acceptance(ratios: Floats, mass: Floats, below: float, terms: Floats) -> float:
    total = total_lost = p_sum = p_lost = q_lost = 0.0
    q_sum = below
    for start in range(0, ratios.size, BLOCK):
        r, q = ratios[start : start + BLOCK], mass[start : start + BLOCK]
        p_above, q_below = (1.0 - p_sum) - p_lost, q_sum + q_lost
        p_block = q_block = block = 0.0
        for i in range(r.size):
            p = r[i] * q[i]
            # 1 + g(r) = 1 - p(below) + r q(below): at its own ratio a token adds nothing.
            terms[i] = p / ((p_above - p_block) + r[i] * (q_below + q_block))
            p_block += p
            q_block += q[i]
        for i in range(r.size):
            block += terms[i]
        total, total_lost = _add(total, total_lost, block)
        p_sum, p_lost = _add(p_sum, p_lost, p_block)
        q_sum, q_lost = _add(q_sum, q_lost, q_block)
    return total + total_lost


@compiled
def _hockey_stick(ratios: Floats, tokens: Floats, draft: Floats, below: float, values: Floats) -> None:
    """Write g at the tokens, which are in ratio order."""
    p_sum = p_lost = q_lost = 0.0
    q_sum = below
    for start in range(0, ratios.size, BLOCK):
        p_block = q_block = 0.0
        for i in range(start, min(start + BLOCK, ratios.size)):
            token = np.uint64(tokens[i])
            r, q = ratios[i], draft[token]
            g = r * ((q_sum + q_lost) + q_block) - ((p_sum + p_lost) + p_block)
            values[token] = g if g > 0.0 else 0.0
            p_block += r * q
            q_block += q
        p_sum, p_lost = _add(p_sum, p_lost, p_block)
        q_sum, q_lost = _add(q_sum, q_lost, q_block)


# Tokens in ascending order of p/q, by buckets of the ratio's own bits: linear time where ratios spread.
#
# The bits of positive floats are in the order of the floats. Their sampled range is divided into a few buckets per
# token; one pass counts, one distributes, and an insertion sort moves the few tokens that are out of order within a
# bucket.


FINENESS = 4
"""Most buckets per token: more of them miss the cache, fewer leave more tokens to move."""

CROWD = 128
"""Largest bucket for the insertion sort, whose time is quadratic; larger ones are sorted separately."""

SAMPLE = 2048
"""Ratios sampled to find their range; the rest goes to one bucket below it or one above."""


def ratio_order(target: Floats, draft: Floats, carried: Floats) -> tuple[Floats, Floats, NDArray[np.complex128]]:
    """Sort tokens by p/q: ratios, their `carried` numbers, and separately (ratio + i carried) where 0, inf or 0/0.

    The results are scratch memory: use them before the next call.
    """
    tokens = target.size
    ratios = scratch("ratios", tokens)
    low, high = (int(np.float64(end).view(np.int64)) for end in _divide(target, draft, ratios))
    shift, buckets = 0, 0
    if low <= high:
        shift = max((high - low).bit_length() - (FINENESS * tokens).bit_length() + 1, 0)
        buckets = ((high - low) >> shift) + 1
    place = scratch("place", tokens, np.uint32)
    ends = scratch("ends", buckets + 3, np.uint32)
    pairs = scratch("pairs", tokens, np.complex128)
    if _distribute(ratios, carried, low, shift, place, ends, pairs) > CROWD:
        _sort_crowds(ends, pairs)
    kept = pairs[ends[0] :]
    ratios, moved = ratios[: kept.size], scratch("carried", kept.size)
    _insert(kept, ratios, moved)
    return ratios, moved, pairs[: ends[0]]


@compiled
def _divide(target: Floats, draft: Floats, ratios: Floats) -> tuple[float, float]:
    """Write p/q; return the range of a sample of those that are positive and finite (inf, 0 if there is none)."""
    low, high = np.inf, 0.0
    for i in range(target.size):
        ratios[i] = target[i] / draft[i]
    for i in range(0, target.size, max(target.size // SAMPLE, 1)):
        if 0.0 < ratios[i] < np.inf:
            low, high = min(low, ratios[i]), max(high, ratios[i])
    return low, high


@compiled
def _distribute(
    ratios: Floats,
    carried: Floats,
    low: int,
    shift: int,
    place: NDArray[np.uint32],
    ends: NDArray[np.uint32],
    pairs: NDArray[np.complex128],
) -> int:
    """Write (ratio, carried) by buckets, 0 for ratios 0, inf, 0/0, and their ends; return the size of the largest."""
    bits = ratios.view(np.int64)
    above = ends.size - 3
    for i in range(ratios.size):
        bucket = (bits[i] - low) >> shift
        bucket = bucket if bucket > -1 else -1
        bucket = bucket if bucket < above else above
        place[i] = bucket + 2 if (ratios[i] > 0.0) & (ratios[i] < np.inf) else 0
    ends[:] = 0
    for i in range(ratios.size):
        ends[np.uint64(place[i])] += np.uint32(1)
    fullest = before = np.uint32(0)
    for b in range(ends.size):
        size = ends[b]
        fullest = max(fullest, size if b > 0 else fullest)
        ends[b] = before
        before += size
    for i in range(ratios.size):
        bucket = np.uint64(place[i])
        at = ends[bucket]
        ends[bucket] = at + np.uint32(1)
        pairs[np.uint64(at)] = complex(ratios[i], carried[i])
    return int(fullest)


def _sort_crowds(ends: NDArray[np.uint32], pairs: NDArray[np.complex128]) -> None:
    """Sort each overfull bucket; this is rare, so numpy's sort is fast enough."""
    for bucket in np.flatnonzero(np.diff(ends) > CROWD) + 1:
        crowd = pairs[ends[bucket - 1] : ends[bucket]]
        crowd[:] = crowd[np.argsort(crowd.real, kind="stable")]


@compiled
def _insert(pairs: NDArray[np.complex128], ratios: Floats, carried: Floats) -> None:
    """Split the nearly sorted pairs into two arrays, inserting each entry at its place."""
    highest = 0.0
    for i in range(pairs.size):
        ratio, value = pairs[i].real, pairs[i].imag
        j = i
        if ratio < highest:
            while j > 0 and ratio < ratios[j - 1]:
                ratios[j], carried[j] = ratios[j - 1], carried[j - 1]
                j -= 1
        else:
            highest = ratio
        ratios[j], carried[j] = ratio, value


# A2 from both sides without a sort: tokens are counted in cells of t = p/(p+q), and few tokens are sorted.
#
# Written with F(t) = t(1-t)/N(t), N(t) = sum_y max((1-t) p_y, t q_y), a token of mass w = p + q adds w F(t) to the
# race's acceptance. N is convex and F concave. So the contribution of a cell is at most F at the cell's mean t, where N
# is at least its value with the cell merged into one token, and at least the chord of F between the cell's edges.


CELLS = 2**15
"""Cells of t in [0, 1]: the smooth part of a pair then adds 1e-9 to the width, and the table fits a core's cache."""

CELLS_ADDED = 128
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
    return float(low.sum() + added), float(high.sum() + added), fullest + CELLS_ADDED + CELLS // CELLS_ADDED


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
    for start in range(0, CELLS, CELLS_ADDED):
        block = 0.0 + 0.0j
        for c in range(start, start + CELLS_ADDED):
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
