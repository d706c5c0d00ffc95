"""Sums over one position's two pmfs that need one pass: entropies, KL, similarity, g at the token, and its ranks.

Terms have the precision of the pmfs and are added in double precision. So a sum of terms of one sign has the relative
error of its terms, a few roundings, whatever the vocabulary; only KL has terms of both signs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, plus

BLOCK = 4096
"""Entries that all sums are taken over before the next ones, so that they are read once."""
TINY = 1e-38
"""Added to p + q, so that 0/0 is 0; to terms that matter it makes no difference."""
LANES = 64
"""Running maxima, which are independent so that they vectorise."""


@compiled
def position_sums(
    p: NDArray[Any],
    q: NDArray[Any],
    log_p: NDArray[Any],
    log_q: NDArray[Any],
    at: NDArray[np.int64],
    ratio: Floats,
    sums: Floats,
    places: NDArray[np.int64],
) -> None:
    """Sums and places of the tokens `at` from pmfs ``[rows, V]`` and logarithms, -inf where cut; `ratio` is p/q there.

    Writes H(p), M2(p), KL, H(q), S_HM, g and the draft's largest entry to `sums` ``[rows, 7]``; both ranks of the
    token, both indices of the largest logarithm and the rank of the draft's in p to `places` ``[rows, 5]``.
    """
    lanes = np.empty(LANES, p.dtype)
    for row in range(p.shape[0]):
        totals, token, place = sums[row], at[row], places[row]
        totals[:] = 0.0
        place[:2] = 1
        largest_p = largest_q = -np.inf
        for start in range(0, p.shape[1], BLOCK):
            part = slice(start, start + BLOCK)
            a, b, log_a, log_b = p[row, part], q[row, part], log_p[row, part], log_q[row, part]
            _add_target_sums(a, log_a, log_b, totals)
            _add_draft_sums(a, b, log_b, p.dtype.type(ratio[row]), totals)
            place[0] += _ahead(log_a, log_p[row, token], token - start)
            place[1] += _ahead(log_b, log_q[row, token], token - start)
            largest_p, place[2] = _larger(largest_p, place[2], log_a, start, lanes)
            largest_q, place[3] = _larger(largest_q, place[3], log_b, start, lanes)
        place[2] += _first(log_p[row, place[2] :], largest_p)
        place[3] += _first(log_q[row, place[3] :], largest_q)
        totals[0], totals[2], totals[3] = max(-totals[0], 0.0), max(totals[2], 0.0), max(-totals[3], 0.0)
        totals[6] = q[row, place[3]]
        value = log_p[row, place[3]]
        place[4] = 1 + _ahead(log_p[row], value, place[3] if value > -np.inf else 0)


@compiled
def _add_target_sums(p: NDArray[Any], log_p: NDArray[Any], log_q: NDArray[Any], totals: Floats) -> None:
    entropy = second = kl = 0.0
    none = p.dtype.type(0)
    for i in range(p.size):
        mass = p[i]
        # A product with a logarithm of -inf is none where there is no mass.
        a, b = (log_p[i], log_q[i]) if mass > none else (none, none)
        term = mass * a
        entropy, second, kl = plus(entropy, term), plus(second, term * a), plus(kl, mass * (a - b))
    totals[0] += entropy
    totals[1] += second
    totals[2] += kl


@compiled
def _add_draft_sums(p: NDArray[Any], q: NDArray[Any], log_q: NDArray[Any], ratio: float, totals: Floats) -> None:
    entropy = harmonic = g = 0.0
    none, tiny = p.dtype.type(0), p.dtype.type(TINY)  # plain numbers would widen all to double precision
    for i in range(p.size):
        mass = q[i]
        both = p[i] + mass + tiny
        excess = ratio * mass - p[i]
        entropy = plus(entropy, mass * (log_q[i] if mass > none else none))
        harmonic = plus(harmonic, p[i] * (mass / both))
        g = plus(g, excess if excess > none else none)
    totals[3] += entropy
    totals[4] += 2 * harmonic
    totals[5] += g


@compiled
def _ahead(values: NDArray[Any], value: float, at: int) -> int:
    """Number of entries of a part that come before one, at place `at` from its start, in descending order.

    Of equal ones the first comes first.
    """
    count = np.int32(0)
    split = min(max(at, 0), values.size)
    before, after = values[:split], values[split:]
    for i in range(before.size):
        count += np.int32(before[i] >= value)
    for i in range(after.size):
        count += np.int32(after[i] > value)
    return int(count)


@compiled
def _larger(best: float, where: int, values: NDArray[Any], start: int, lanes: NDArray[Any]) -> tuple[float, int]:
    """The largest entry so far, and the start of the part that it is in."""
    lanes[:] = values[0]
    whole = values.size - values.size % LANES
    for i in range(0, whole, LANES):
        for j in range(LANES):
            lanes[j] = values[i + j] if values[i + j] > lanes[j] else lanes[j]
    for i in range(whole, values.size):
        lanes[0] = max(lanes[0], values[i])
    top = lanes.max()
    return (top, start) if top > best else (best, where)


@compiled
def _first(values: NDArray[Any], wanted: float) -> int:
    """Place of the first entry that is not below one that is there."""
    place = 0
    while values[place] < wanted:
        place += 1
    return place
