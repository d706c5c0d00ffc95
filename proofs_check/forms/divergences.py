"""Sums over two pmfs in any arithmetic: TV, KL, entropies, moments, Rényi, similarity, the hockey stick (D1-D3)."""

from __future__ import annotations

from proofs_check.prelude import *

Order = tuple[int, int]
"""An order of the Rényi divergence as numerator and denominator; (1, 0) is infinity."""


def total_variation(p: AnyPmf, q: AnyPmf) -> Real:
    """Half the sum of |p - q|."""
    return sum(absolute(a - b) for a, b in zip(p, q, strict=True)) / 2


def kl(p: AnyPmf, q: AnyPmf) -> Real:
    """The sum of p log(p/q)."""
    return sum(a * log(a / b) for a, b in zip(p, q, strict=True) if not is_zero(a))


def entropy(p: AnyPmf) -> Real:
    """The sum of -p log p."""
    return sum(-a * log(a) for a in p if not is_zero(a))


def second_moment(p: AnyPmf) -> Real:
    """The sum of p log^2 p."""
    return sum(a * log(a) * log(a) for a in p if not is_zero(a))


def moment(p: AnyPmf, q: AnyPmf, order: int) -> Real:
    """The sum of p^a/q^(a-1) of a whole order a: the exponential of (a - 1) times the Rényi divergence."""
    return sum(a**order / b ** (order - 1) for a, b in zip(p, q, strict=True) if not is_zero(a))


def renyi(p: AnyPmf, q: AnyPmf, order: Order) -> Real:
    """The logarithm of the sum of p^a q^(1-a), over a - 1; order 1: KL; order infinity: the largest log(p/q)."""
    both = [(a, b) for a, b in zip(p, q, strict=True) if not (is_zero(a) or is_zero(b))]
    n, m = order
    if n == m:
        return kl(p, q)
    if m == 0:
        largest = both[0][0] / both[0][1]
        for a, b in both[1:]:
            largest = larger(largest, a / b)
        return log(largest)
    # A zero of p's kind keeps the logarithm of 1, an integer, from becoming a float.
    total = sum(a * exp((n - m) * (log(a / b) + 0 * a) / m) for a, b in both)
    return m * (log(total) + 0 * total) / (n - m)


def similarity(p: AnyPmf, q: AnyPmf) -> Real:
    """The harmonic-mean similarity S (D2)."""
    return sum(2 * a * b / (a + b) for a, b in zip(p, q, strict=True) if not (is_zero(a) and is_zero(b)))


def overlap(p: AnyPmf, q: AnyPmf) -> Real:
    """1 - TV."""
    return sum(smaller(a, b) for a, b in zip(p, q, strict=True))


def reciprocal(p: AnyPmf, q: AnyPmf) -> Real:
    """The sum of 1/(1/p + 1/q - 1)."""
    return sum(1 / (1 / a + 1 / b - 1) for a, b in zip(p, q, strict=True) if not (is_zero(a) or is_zero(b)))


def g(p: AnyPmf, q: AnyPmf, c: Real) -> Real:
    """The hockey stick: the sum of (c q - p)+."""
    return sum(positive_part(c * d - b) for b, d in zip(p, q, strict=True))
