"""Quantities by their definitions, and small pairs, for the tests of §9."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import chain, combinations

import numpy as np
from scipy.optimize import linprog

from proofs_check.library.strategies import Floats
from proofs_check.theorems.path.completions import small_pairs, spread
from spectheory import truncated
from spectheory.intervals import Interval
from spectheory.truncated import TopLogProbs
from spectheory.verification import (
    IndependentMatch,
    PoissonRace,
    RaceVerification,
    TokenVerification,
)

ROUNDING = 1e-12
"""Sums of a few terms of order one, and the ends widened by 16 units in the last place per term."""

STEEP = 1e-8
"""Ends with logarithms, squares and quotients move by up to 1e5 times the rounding of a mass of :data:`SIZEABLE`."""

SOLVER = 1e-7
"""Tolerance of the linear programs' solver (HiGHS) on values and constraints."""

EDGE = 4e-15
"""Rounding of a definition's own sum, which shows where an end is cut to the possible range."""

Slow = Callable[[Floats, Floats], float]

WEIGHTS = (0.05, 0.4, 1.0, 1.7, 6.0)
"""Values of c at which hockey sticks are compared."""


# Quantities by their definitions, on full pmfs


def slow_hockey(p: Floats, q: Floats, c: float) -> float:
    return float(sum(max(0.0, c * b - a) for a, b in zip(p, q, strict=True)))


def slow_kl(p: Floats, q: Floats) -> float:
    terms = (a * (math.log(a) - math.log(b)) if b > 0 else math.inf for a, b in zip(p, q, strict=True) if a > 0)
    return sum(terms)


def slow_renyi(p: Floats, q: Floats, order: float) -> float:
    if order > 1 and np.any((p > 0) & (q == 0)):
        return math.inf
    both = (p > 0) & (q > 0)
    exponents = order * np.log(p[both]) + (1 - order) * np.log(q[both])
    return float(np.logaddexp.reduce(exponents)) / (order - 1) if both.any() else math.inf


def slow_chi_square(p: Floats, q: Floats) -> float:
    if np.any((p > 0) & (q == 0)):
        return math.inf
    with np.errstate(over="ignore"):
        return float(sum((a - b) * ((a - b) / b) for a, b in zip(p, q, strict=True) if b > 0))


def slow_harmonic(p: Floats, q: Floats) -> float:
    return float(sum(2 * a * (b / (a + b)) for a, b in zip(p, q, strict=True) if a + b > 0))


def slow_rank(p: Floats, q: Floats, k: int) -> float:
    """P(R <= k) of the Poisson race; k = 1 is the exponential race."""
    total = 0.0
    for a, b in zip(p, q, strict=True):
        if a > 0 and b > 0:
            total += a * (1 - (1 - 1 / (1 + slow_hockey(p, q, a / b))) ** k)
    return total


def slow_optimal(p: Floats, q: Floats, k: int) -> float:
    """Every set of tokens (R4)."""
    tokens = range(len(p))
    sets = chain.from_iterable(combinations(tokens, size) for size in range(len(p) + 1))
    return 1 + min(float(p[list(chosen)].sum() - q[list(chosen)].sum() ** k) for chosen in sets)


MONOTONE: dict[str, tuple[Callable[[TopLogProbs, TopLogProbs], Interval], Slow]] = {
    "total variation": (truncated.total_variation, lambda p, q: float(np.abs(p - q).sum() / 2)),
    "token": (partial(truncated.acceptance, TokenVerification()), lambda p, q: float(np.minimum(p, q).sum())),
    "similarity": (truncated.harmonic_mean_similarity, slow_harmonic),
    "distance": (truncated.harmonic_mean_distance, lambda p, q: 1 - slow_harmonic(p, q)),
    "race": (partial(truncated.acceptance, RaceVerification()), lambda p, q: slow_rank(p, q, 1)),
    "poisson": (lambda t, d: truncated.acceptance(PoissonRace(), t, d, 3), lambda p, q: slow_rank(p, q, 3)),
    "optimal 1": (lambda t, d: truncated.optimal_acceptance(t, d, 1), lambda p, q: slow_optimal(p, q, 1)),
    "optimal 3": (lambda t, d: truncated.optimal_acceptance(t, d, 3), lambda p, q: slow_optimal(p, q, 3)),
    "renyi 1/2": (lambda t, d: truncated.renyi_divergence(t, d, 0.5), lambda p, q: slow_renyi(p, q, 0.5)),
    **{
        f"g({c})": (lambda t, d, c=c: truncated.hockey_stick(t, d, c), lambda p, q, c=c: slow_hockey(p, q, c))
        for c in WEIGHTS
    },
}
"""Quantities whose ends are the best completion and the disjoint tails."""

UNBOUNDED: dict[str, tuple[Callable[[TopLogProbs, TopLogProbs], Interval], Slow]] = {
    "kl": (truncated.kl_divergence, slow_kl),
    "renyi 2": (lambda t, d: truncated.renyi_divergence(t, d, 2.0), lambda p, q: slow_renyi(p, q, 2.0)),
    "renyi 1": (lambda t, d: truncated.renyi_divergence(t, d, 1.0), slow_kl),
    "chi square": (truncated.chi_square, slow_chi_square),
}

MATCHING: dict[str, tuple[Callable[[TopLogProbs, TopLogProbs], Interval], Slow]] = {
    "independent": (partial(truncated.acceptance, IndependentMatch()), lambda p, q: float(np.sum(p * q))),
}

ALL = MONOTONE | UNBOUNDED | MATCHING

SMALL = small_pairs(seed=1, count=60, most=6)


def holds(interval: Interval, value: float) -> bool:
    if interval.kind == "exact":
        return near(interval.best, value)
    edge = EDGE * max(1.0, value) if value < math.inf else 0.0
    return interval.low - edge <= value <= interval.high + edge


def near(a: float, b: float, tolerance: float = ROUNDING) -> bool:
    return a == b or abs(a - b) <= tolerance * max(1.0, abs(b))


def least_hockey(target: TopLogProbs, draft: TopLogProbs, c: float) -> float:
    """The least g(c) over all completions as a linear program in p, q and the terms."""
    size = target.vocabulary
    eye = np.eye(size)
    bounds = []
    for top in (target, draft):
        pmf, known = spread(top, np.zeros(top.hidden)), np.isin(np.arange(size), top.known)
        bounds += [(pmf[x], pmf[x]) if known[x] else (0.0, top.cap) for x in range(size)]
    sums = np.kron(np.eye(2), np.ones(size))
    solved = linprog(
        np.concatenate([np.zeros(2 * size), np.ones(size)]),
        A_ub=np.hstack([-eye, c * eye, -eye]),
        b_ub=np.zeros(size),
        A_eq=np.hstack([sums, np.zeros((2, size))]),
        b_eq=np.array([1.0, 1.0]),
        bounds=[*bounds, *[(0.0, None)] * size],
    )
    assert solved.status == 0
    return float(solved.fun)
