"""E[X] of the best tree with P prefixes at finite P: the value that the branching bounds bound."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import numpy as np

from spectheory.checks import generator, instance, whole
from spectheory.distributions import Floats, as_numpy, validate_pmf
from spectheory.errors import ShapeError
from spectheory.intervals import CONFIDENCE, Interval

SamplePmf = Callable[[np.random.Generator, int], Any]
"""Draws n independent conditional pmfs, ``[n, V]``."""

_MOST = 1 << 24
"""Most nodes of all trees together."""
_BLOCK = 1 << 22
"""Probabilities drawn and sorted at a time: 32 MB."""


def random_tree_value(
    sample_pmf: SamplePmf, capacity: int, trees: int = 200, *, rng: np.random.Generator | int | None = None
) -> Interval:
    """E[X] of the best deterministic drafter when every prefix has its own i.i.d. random pmf (estimate).

    X counts the correctly predicted tokens of a call, bonus token left out, of the `capacity` P most probable prefixes
    under the target itself: what B1, B2, B2' and B3' bound. ``sample_pmf(rng, n)`` draws n independent pmfs ``[n, V]``.
    Each tree is exact; the mean over `trees` >= 2 of them has a 95% interval (Student). `rng` is a generator or a seed.

    Examples
    --------
    >>> value = random_tree_value(lambda rng, n: rng.dirichlet([1.0, 1.0], n), 1, 400, rng=1)
    >>> value.low < 0.75 < value.high  # the larger of U and 1 - U
    True
    """
    from scipy.special import stdtrit

    trees = whole("trees", trees, least=2, remedy="an interval needs two trees or more")
    tokens = random_tree_totals(sample_pmf, capacity, trees, rng=rng)[:, -1]
    mean = float(tokens.mean())
    width = float(stdtrit(trees - 1, (1 + CONFIDENCE) / 2) * tokens.std(ddof=1)) / math.sqrt(trees)
    return Interval(max(mean - width, 0.0), mean, max(min(mean + width, capacity), mean), "statistical")


def random_tree_totals(
    sample_pmf: SamplePmf, capacity: int, trees: int, *, rng: np.random.Generator | int | None = None
) -> Floats:
    """Predicted tokens of the best trees with 1, 2, ..., P prefixes, ``[trees, P]``, a row per random tree (exact).

    The best trees are nested, so one run serves every capacity up to P. Arguments as in :func:`random_tree_value`.

    Examples
    --------
    >>> random_tree_totals(lambda rng, n: [[0.75, 0.25]] * n, 3, 1).tolist()
    [[0.75, 1.3125, 1.734375]]
    """
    trees = whole("trees", trees, most=_MOST, remedy="grow one tree")
    capacity = whole("capacity", capacity, most=_MOST // trees, remedy="count draft nodes from 1")
    instance("sample_pmf", sample_pmf, Callable, remedy="it draws n pmfs with rng: lambda rng, n: ...")
    stream = generator(rng)
    grown = [_heaviest(_sorted_rows(sample_pmf, capacity, stream), capacity) for _ in range(trees)]
    return np.cumsum(grown, axis=1)


def stationary_tree_value(pmf: Any, capacity: int) -> float:
    """X of the best tree with `capacity` P prefixes when every prefix has the same pmf ``[V]`` (exact).

    Predicted tokens per call, bonus token left out. It equals B3' of that pmf's step law (up to its grid). Plus one, it
    is the value of the best rank tree with k = P nodes for ranks i.i.d. from `pmf` (S1, S2).

    Examples
    --------
    >>> stationary_tree_value([0.5, 0.5], 6)
    2.0
    """
    capacity = whole("capacity", capacity, most=_MOST, remedy="count draft nodes from 1")
    row = as_numpy(validate_pmf(pmf))
    if row.ndim != 1:
        raise ShapeError(
            f"pmf has shape {row.shape}", limit="[V]", remedy="spectheory.limits.random_tree_value takes many pmfs"
        )
    return float(np.cumsum(_heaviest(repeat(np.sort(row)[::-1]), capacity))[-1])


def _sorted_rows(sample_pmf: SamplePmf, rows: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Pmfs in descending order, one for each of at most `rows` expanded prefixes; drawn in blocks."""
    block = 1  # the first row shows the size of the vocabulary
    while rows > 0:
        wanted = min(block, rows)
        pmfs = as_numpy(validate_pmf(sample_pmf(rng, wanted), "sample_pmf(...)"))
        if pmfs.ndim != 2 or len(pmfs) != wanted:
            raise ShapeError(
                f"sample_pmf(rng, {wanted}) has shape {pmfs.shape}", limit=f"[{wanted}, V]", remedy="one pmf a row"
            )
        yield from np.sort(pmfs, axis=-1)[:, ::-1]
        rows -= len(pmfs)
        block = max(1, _BLOCK // pmfs.shape[-1])


def _heaviest(rows: Iterator[Floats], capacity: int) -> Floats:
    """Weights of the P heaviest prefixes in descending order; a pmf is drawn when its prefix leaves the heap: O(P log
    P).
    """
    weights = np.zeros(capacity)
    siblings = next(rows)
    heap: list[tuple[float, int, int, float, Floats]] = [(-float(siblings[0]), 0, 0, 1.0, siblings)]
    for taken in range(capacity):
        negative, _, rank, parent, siblings = heapq.heappop(heap)
        weights[taken] = -negative
        if taken == capacity - 1:
            break
        # The unique second entry keeps the heap from comparing pmfs.
        children = next(rows)
        heapq.heappush(heap, (negative * float(children[0]), 2 * taken + 1, 0, -negative, children))
        if rank + 1 < len(siblings):
            heapq.heappush(heap, (-parent * float(siblings[rank + 1]), 2 * taken + 2, rank + 1, parent, siblings))
    return weights
