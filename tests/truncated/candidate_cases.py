"""Quantities by their definitions, with several candidates."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from proofs_check.library.strategies import Floats
from proofs_check.theorems.path.completions import corners, small_pairs
from spectheory import truncated
from spectheory.intervals import Interval
from spectheory.truncated import TopLogProbs
from spectheory.verification import (
    PoissonRace,
    RecursiveRejection,
)

ROUNDING = 5e-12
"""Sums of a few terms of order one; R6's integral is good to 1e-12, and its ends are widened by as much."""

EDGE = 1e-14
"""Rounding of a definition's own sum and root, which shows where an end is cut to the possible range."""

MOST = 4
"""Ranks of the laws."""


# Quantities by their definitions, on full pmfs


def slow_hockey(p: Floats, q: Floats, c: float) -> float:
    return float(sum(max(0.0, c * b - a) for a, b in zip(p, q, strict=True)))


def poisson_given(p: Floats, q: Floats, x: int, r: int) -> float:
    if q[x] == 0:
        return 0.0
    g = slow_hockey(p, q, p[x] / q[x])
    return (g / (1 + g)) ** (r - 1) / (1 + g)


def recursive_joint(p: Floats, q: Floats, ranks: int) -> Floats:
    """P(R = r, X = x), ``[ranks, V]``: token verification of each candidate against the normalised residual."""
    law, mass, left = np.zeros((ranks, len(p))), 1.0, p
    for r in range(ranks):
        law[r] = mass * np.minimum(left, q)
        residual = np.maximum(left - q, 0.0)
        if residual.sum() <= ROUNDING:  # p = q: what rounding leaves is not judged again
            break
        mass, left = mass * residual.sum(), residual / residual.sum()
    return law


@lru_cache(maxsize=4)
def laws(target: TopLogProbs, draft: TopLogProbs) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """The laws of R1 and R3, made once for all ranks."""
    poisson, recursive = (
        truncated.rank_pmf(rule, target, draft, MOST) for rule in (PoissonRace(), RecursiveRejection())
    )
    return poisson, recursive


# Completions


def some(top: TopLogProbs, rng: np.random.Generator, count: int) -> list[Floats]:
    """Extreme completions and random mixtures of them, half of each."""
    ends = np.array(corners(top))
    shares = [rng.dirichlet(np.full(len(ends), 10.0 ** rng.uniform(-2, 1))) for _ in range(count // 2)]
    return [*(ends[rng.integers(len(ends))] for _ in shares), *(share @ ends for share in shares)]


SMALL = small_pairs(seed=31, count=30, most=5)


def holds(interval: Interval, value: float, tolerance: float = EDGE) -> bool:
    if interval.kind == "exact":
        return abs(interval.best - value) <= ROUNDING
    return interval.low - tolerance <= value <= interval.high + tolerance
