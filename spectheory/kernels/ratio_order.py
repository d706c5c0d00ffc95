"""Tokens in ascending order of p/q, by buckets of the ratio's own bits: linear time where ratios spread.

The bits of positive floats are in the order of the floats. Their sampled range is divided into a few buckets per token;
one pass counts, one distributes, and an insertion sort moves the few tokens that are out of order within a bucket.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, scratch

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
