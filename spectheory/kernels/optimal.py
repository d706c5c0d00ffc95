"""R4 from one ratio order: the gaps of prefixes at block boundaries, then inside blocks that may hold the maximum."""

from __future__ import annotations

import math

import numpy as np

from spectheory.kernels import Floats, rows
from spectheory.kernels.compiling import compiled, plus
from spectheory.kernels.race import ratio_order

BLOCK = 128
"""Tokens between two prefixes that are always evaluated."""


def largest_gaps(target: Floats, draft: Floats, max_k: int) -> Floats:
    """Largest :math:`q(H)^k - p(H)` over sets H, for k = 1..max_k, ``[..., max_k]`` (R4, exact)."""
    gaps = np.empty((*np.broadcast_shapes(target.shape[:-1], draft.shape[:-1]), max_k))
    for at, (p, q) in rows(target, draft):
        ratios, mass, left = ratio_order(p, q, q)
        never = _unsupported(p, q) if left.size else 0.0
        ends = np.empty((4, -(-ratios.size // BLOCK) + 1))
        _block_ends(ratios, mass, left.imag[left.real == 0].sum(), never, ends)
        _gaps(ratios, mass, ends, gaps[at])
        gaps[(*at, 0)] = _distance(p, q)
    return gaps


def _unsupported(target: Floats, draft: Floats) -> float:
    """The target's mass where p/q is infinite: such tokens come last and are in no optimal prefix."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return float(target[np.isinf(target / draft)].sum())


@compiled
def _distance(target: Floats, draft: Floats) -> float:
    """TV, the gap for k = 1, as a sum of differences on a side with at most 3/4 of the mass (see its array twin)."""
    above = below = weight_above = weight_below = 0.0
    for i in range(target.size):
        excess, both = target[i] - draft[i], target[i] + draft[i]
        above, below = plus(above, max(excess, 0.0)), plus(below, max(-excess, 0.0))
        weight_above = plus(weight_above, both if excess > 0.0 else 0.0)
        weight_below = plus(weight_below, both if excess < 0.0 else 0.0)
    return max(above if weight_above < 1.5 else 0.0, below if weight_below < 1.5 else 0.0)


@compiled
def _block_ends(ratios: Floats, mass: Floats, below: float, never: float, ends: Floats) -> None:
    """Write p and q of the prefix that ends where each block begins (rows 0, 1) and of its complement (2, 3)."""
    blocks = ends.shape[1] - 1
    for b in range(blocks):
        p = q = 0.0
        for i in range(b * BLOCK, min((b + 1) * BLOCK, ratios.size)):
            p += ratios[i] * mass[i]
            q += mass[i]
        ends[0, b + 1] = ends[2, b] = p
        ends[1, b + 1] = ends[3, b] = q
    ends[0, 0], ends[1, 0] = 0.0, below
    ends[2, blocks], ends[3, blocks] = never, 0.0
    for b in range(blocks):
        ends[0, b + 1] += ends[0, b]
        ends[1, b + 1] += ends[1, b]
        ends[2, blocks - 1 - b] += ends[2, blocks - b]
        ends[3, blocks - 1 - b] += ends[3, blocks - b]


@compiled
def _gaps(ratios: Floats, mass: Floats, ends: Floats, gaps: Floats) -> None:
    """Write the largest gap of any prefix for each k; inside a block whose increments have one sign an end is the
    largest.
    """
    blocks = ends.shape[1] - 1
    power, missed, rest = np.ones(blocks + 1), np.zeros(blocks + 1), np.empty((2, BLOCK))
    for k in range(1, gaps.size + 1):
        best = 0.0
        for b in range(blocks):
            first, last = b * BLOCK, min((b + 1) * BLOCK, ratios.size)
            if k * power[b] < ratios[last - 1] and ratios[first] < k * power[b + 1]:
                best = max(best, _gap_inside(ratios[first:last], mass[first:last], ends[:, b : b + 2], rest, k))
        for b in range(blocks + 1):
            power[b] *= ends[1, b]
            missed[b] += ends[3, b] * (1.0 - missed[b])
            best = max(best, power[b] - ends[0, b] if power[b] + ends[0, b] <= 1.0 else ends[2, b] - missed[b])
        gaps[k - 1] = best


@compiled
def _gap_inside(ratios: Floats, mass: Floats, ends: Floats, rest: Floats, k: int) -> float:
    """Return the largest gap of the prefixes that end inside a block, each from the smaller of its two sides."""
    p, q = ends[2, 1], ends[3, 1]
    for i in range(ratios.size - 1, -1, -1):
        rest[0, i], rest[1, i] = p, q
        p += ratios[i] * mass[i]
        q += mass[i]
    best = 0.0
    p, q = ends[0, 0], ends[1, 0]
    for i in range(ratios.size):
        p += ratios[i] * mass[i]
        q += mass[i]
        power = q**k
        missed = -math.expm1(k * math.log1p(-min(rest[1, i], 1.0)))
        best = max(best, power - p if power + p <= 1.0 else rest[0, i] - missed)
    return best
