"""R6, compiled: k independent races, dense. A clock is worked out only where it could still win a race.

A clock -log(1-u) is never below its uniform u, so a token whose u is too large already is passed over by a
multiplication; few logarithms are left.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.draws.streams import Words, uniform
from simulations.models.positions import Floats, one_pair, whole_number
from spectheory.kernels.compiling import compiled

Counts = NDArray[np.int64]


def gumbel_list(target: Any, draft: Any, k: int, trials: int, *, state: Words) -> Counts:
    r"""Count hits of Gumbel list sampling (R6; ``rowan2025``).

    Clocks :math:`E^{(j)}_y` ~ Exp(1); drafts :math:`X^{(j)} = \arg\min_y E^{(j)}_y/q_y`, j = 1..k; output
    :math:`Y = \arg\min_y \min_j E^{(j)}_y/p_y`: a hit if it is among the drafts. Tokens without probability never win.

    :func:`simulations.kernels.lazy_gumbel_list.lazy_gumbel_list` has the same law without reading every entry.

    Draws of a trial, in order: race by race, token by token, one exponential.

    Returns array ``[3, V]`` of int: trials by output: row 0 misses, row 1 hits by another race than the one the output
    comes from, row 2 hits by that race. Runs add up; rows 1 and 2 are the hits, row 2 alone what the paper's bound
    counts.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> gumbel_list([0.5, 0.5], [0.5, 0.5], 2, 1000, state=words(1)).sum(axis=1).tolist()
    [0, 0, 1000]
    """
    races, runs = whole_number("k", k), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    counts = np.zeros((3, p.size), dtype=np.int64)
    _trials(p, q, races, runs, counts, state)
    return counts


@compiled
def _trials(p: Floats, q: Floats, k: int, trials: int, counts: Counts, state: Words) -> None:
    drafts = np.empty(k, np.int64)
    for _ in range(trials):
        first, output, own = math.inf, 0, 0
        for j in range(k):
            soonest, draft = math.inf, 0
            for y in range(p.size):
                u = uniform(state)
                if u < soonest * q[y] or u < first * p[y]:
                    clock = -math.log1p(-u)
                    if clock < soonest * q[y]:
                        soonest, draft = clock / q[y], y
                    if clock < first * p[y]:
                        first, output, own = clock / p[y], y, j
            drafts[j] = draft
        hit = 0
        for j in range(k):
            if drafts[j] == output:
                hit = max(hit, 2 if j == own else 1)
        counts[hit, output] += 1
