"""The definitions at 50 digits: what D1-D3 and A2 are, written as their sums and nothing more.

Arguments are sequences of floats, taken as the exact numbers they are. Divergences whose terms vanish to second order
at p = q (KL, Rényi, chi-square, the harmonic-mean distance) are those of the exactly normalised pmfs: the rounding of
the entries moves them by a relative 1e-16 only. The others are evaluated on the entries as given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mpmath  # type: ignore[import-untyped]

Real = Any
"""An mpmath number."""

MP = mpmath.MPContext()
MP.dps = 50

DEEP = 700
"""Digits where one is taken off a sum that exceeds it by as little as 1e-300 squared."""


def exactly(values: Iterable[float]) -> list[Real]:
    """The floats as multiprecision numbers, unrounded."""
    return [MP.mpf(float(value)) for value in values]


def normalised(values: Iterable[float]) -> list[Real]:
    """The floats divided by their exact sum."""
    exact = exactly(values)
    total = MP.fsum(exact)
    return [value / total for value in exact]


def total_variation(p: Sequence[float], q: Sequence[float]) -> Real:
    """Half the sum of |p - q|."""
    return MP.fsum(abs(a - b) for a, b in zip(exactly(p), exactly(q), strict=True)) / 2


def kl_divergence(p: Sequence[float], q: Sequence[float]) -> Real:
    """Sum of p log(p/q); infinite where q = 0 < p."""
    pairs = [(a, b) for a, b in zip(normalised(p), normalised(q), strict=True) if a > 0]
    return MP.inf if any(b == 0 for _, b in pairs) else MP.fsum(a * MP.log(a / b) for a, b in pairs)


def entropy(p: Sequence[float]) -> Real:
    """Sum of -p log p."""
    return MP.fsum(-a * MP.log(a) for a in exactly(p) if a > 0)


def second_log_moment(p: Sequence[float]) -> Real:
    """Sum of p log^2 p."""
    return MP.fsum(a * MP.log(a) ** 2 for a in exactly(p) if a > 0)


def renyi_divergence(p: Sequence[float], q: Sequence[float], order: float) -> Real:
    """Logarithm of the sum of p^a q^(1-a), over a - 1; order inf: log max p/q."""
    pairs = [(a, b) for a, b in zip(normalised(p), normalised(q), strict=True) if a > 0]
    if order > 1 and any(b == 0 for _, b in pairs):
        return MP.inf
    if order == float("inf"):
        return MP.log(max(a / b for a, b in pairs))
    power = MP.mpf(order)
    total = MP.fsum(a**power * b ** (1 - power) for a, b in pairs if b > 0)
    return MP.log(total) / (power - 1) if total > 0 else MP.inf


def chi_square(p: Sequence[float], q: Sequence[float]) -> Real:
    """Sum of p^2/q, minus 1; infinite where q = 0 < p."""
    with MP.workdps(DEEP):
        pairs = [(a, b) for a, b in zip(normalised(p), normalised(q), strict=True) if a > 0]
        return MP.inf if any(b == 0 for _, b in pairs) else MP.fsum(a * a / b for a, b in pairs) - 1


def harmonic_mean_similarity(p: Sequence[float], q: Sequence[float]) -> Real:
    """Sum of 2pq/(p+q)."""
    return MP.fsum(2 * a * b / (a + b) for a, b in zip(exactly(p), exactly(q), strict=True) if a + b > 0)


def harmonic_mean_distance(p: Sequence[float], q: Sequence[float]) -> Real:
    """One minus the sum of 2pq/(p+q)."""
    with MP.workdps(DEEP):
        pairs = zip(normalised(p), normalised(q), strict=True)
        return 1 - MP.fsum(2 * a * b / (a + b) for a, b in pairs if a + b > 0)


def hockey_stick(p: Sequence[float], q: Sequence[float], c: float) -> Real:
    """Sum of (c q - p)+."""
    weight = MP.mpf(float(c))
    return MP.fsum(max(weight * b - a, MP.zero) for a, b in zip(exactly(p), exactly(q), strict=True))


def race_acceptance(p: Sequence[float], q: Sequence[float]) -> Real:
    """Sum over x of 1/sum_y max(p_y/p_x, q_y/q_x): the probability that both races have one winner."""
    pairs = [(a, b) for a, b in zip(exactly(p), exactly(q), strict=True) if a > 0 or b > 0]
    won = (1 / MP.fsum(max(a_y / a_x, b_y / b_x) for a_y, b_y in pairs) for a_x, b_x in pairs if a_x > 0 and b_x > 0)
    return MP.fsum(won)


DIVERGENCES: dict[str, Callable[[Sequence[float], Sequence[float]], Real]] = {
    "total_variation": total_variation,
    "kl_divergence": kl_divergence,
    "chi_square": chi_square,
    "harmonic_mean_similarity": harmonic_mean_similarity,
    "harmonic_mean_distance": harmonic_mean_distance,
}
"""Definitions of two pmfs, by the name of the library's function."""
