"""Sums and sums of squares of real samples without rounding: every float is a fraction, and fractions add exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectheory.errors import SettingError

_BITS = 27
"""A mantissa of 53 bits is split into two halves of at most this many, whose products fit 64-bit integers."""


@dataclass(frozen=True)
class Moments:
    """Number, sum and sum of squares of real samples, exact."""

    n: int = 0
    total: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)

    @classmethod
    def of(cls, samples: ArrayLike) -> Moments:
        """The moments of samples ``[n]``."""
        values = np.asarray(samples, dtype=np.float64).ravel()
        if not np.all(np.isfinite(values)):
            raise SettingError("a sample is not finite", limit="moments need numbers", remedy="count such trials apart")
        return cls(values.size, *_exact_sums(values))

    @classmethod
    def of_histogram(cls, counts: ArrayLike) -> Moments:
        """The moments of samples 0, 1, 2, ... that occurred ``counts[i]`` times, ``[n]``."""
        numbers = [int(count) for count in np.asarray(counts)]
        total = sum(value * count for value, count in enumerate(numbers))
        squares = sum(value * value * count for value, count in enumerate(numbers))
        return cls(sum(numbers), Fraction(total), Fraction(squares))

    def __add__(self, other: Moments) -> Moments:
        """The moments of both samples together."""
        return Moments(self.n + other.n, self.total + other.total, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """The mean, rounded once."""
        return float(self.total / self.n)

    @property
    def variance(self) -> float:
        """The unbiased variance, rounded once; it needs two samples."""
        return float((self.squares - self.total**2 / self.n) / (self.n - 1))


def _exact_sums(values: NDArray[np.float64]) -> tuple[Fraction, Fraction]:
    """Sum and sum of squares of floats: mantissas are added as integers, exponent by exponent."""
    mantissas, exponents = np.frexp(values)
    integers = (mantissas * 2.0**53).astype(np.int64)
    total, squares = Fraction(0), Fraction(0)
    for exponent in np.unique(exponents):
        whole = integers[exponents == exponent]
        high, low = whole >> _BITS, whole & ((1 << _BITS) - 1)
        unit = Fraction(2) ** (int(exponent) - 53)
        total += _sum(whole) * unit
        squares += ((_sum(high * high) << 2 * _BITS) + (_sum(high * low) << _BITS + 1) + _sum(low * low)) * unit**2
    return total, squares


def _sum(integers: NDArray[np.int64]) -> int:
    """The sum of up to 2^31 integers of 64 bits."""
    return (int((integers >> 32).sum()) << 32) + int((integers & 0xFFFFFFFF).sum())
