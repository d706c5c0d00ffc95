"""Sums over one position's two pmfs that need one pass: entropies, KL, similarity, g at the token, and its ranks.

Terms have the precision of the pmfs and are added in double precision. So a sum of terms of one sign has the relative
error of its terms, a few roundings, whatever the vocabulary; only KL has terms of both signs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, compiled_in_any_order

BLOCK = 4096
"""Entries between two looks at whether a larger one was found."""
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

    Writes H(p), M2(p), KL, H(q), S_HM, g and the draft's largest entry to `sums` ``[rows, 7]``; both ranks of the token
    and both indices of the largest logarithm to `places` ``[rows, 4]``.
    """
    lanes = np.empty(LANES, p.dtype)
    for row in range(p.shape[0]):
        _target_sums(p[row], log_p[row], log_q[row], sums[row])
        _draft_sums(p[row], q[row], log_q[row], ratio[row], sums[row])
        for model in range(2):
            values = log_p[row] if model == 0 else log_q[row]
            places[row, model] = 1 + _ahead(values, at[row])
            places[row, 2 + model] = _first_largest(values, lanes)
        sums[row, 6] = q[row, places[row, 3]]


@compiled_in_any_order
def _plus(total: float, term: float) -> float:
    return total + term


@compiled
def _target_sums(p: NDArray[Any], log_p: NDArray[Any], log_q: NDArray[Any], found: Floats) -> None:
    entropy = second = kl = 0.0
    for i in range(p.size):
        own = p[i]
        # A product with a logarithm of -inf is none where there is no mass.
        a, b = (log_p[i], log_q[i]) if own > 0 else (own, own)
        term = own * a
        entropy, second, kl = _plus(entropy, term), _plus(second, term * a), _plus(kl, own * (a - b))
    found[0], found[1], found[2] = max(-entropy, 0.0), second, max(kl, 0.0)


@compiled
def _draft_sums(p: NDArray[Any], q: NDArray[Any], log_q: NDArray[Any], ratio: float, found: Floats) -> None:
    entropy = harmonic = g = 0.0
    for i in range(p.size):
        own = q[i]
        both = p[i] + own
        excess = ratio * own - p[i]
        entropy = _plus(entropy, own * (log_q[i] if own > 0 else own))
        harmonic = _plus(harmonic, p[i] * (own / (both if both > 0 else both + 1)))
        g = _plus(g, excess if excess > 0.0 else 0.0)
    found[3], found[4], found[5] = max(-entropy, 0.0), 2 * harmonic, g


@compiled
def _ahead(values: NDArray[Any], at: int) -> int:
    """Number of entries that come before one of them in descending order, ties to the lowest index."""
    own, count = values[at], np.int32(0)
    # Slices, as indices that start at an unknown place are checked one by one.
    before, after = values[:at], values[at + 1 :]
    for i in range(before.size):
        count += np.int32(before[i] >= own)
    for i in range(after.size):
        count += np.int32(after[i] > own)
    return int(count)


@compiled
def _first_largest(values: NDArray[Any], lanes: NDArray[Any]) -> int:
    """Index of the largest entry, the first where several are equal."""
    best, where = -np.inf, 0
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        whole = block.size - block.size % LANES
        lanes[:] = block[0]
        for i in range(0, whole, LANES):
            for j in range(LANES):
                lanes[j] = block[i + j] if block[i + j] > lanes[j] else lanes[j]
        for i in range(whole, block.size):
            lanes[0] = max(lanes[0], block[i])
        top = lanes.max()
        if top > best:
            best, where = top, start
    while values[where] < best:
        where += 1
    return where
