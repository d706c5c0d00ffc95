r"""Python's fractions with faster arithmetic, on which the ledger spends much of its time.

The formulas are those of :mod:`fractions` (Knuth, TAOCP 2, 4.5.1); two fractions, or a fraction and an integer, are
combined in one call, without tests of other types. Any other number goes to Python's own operators. A test compares
the results operator by operator. Not quicktions 1.24, though faster: `Fraction("0")` there overwrites the bytes object
``b"\0"``, which the whole process shares.
"""

from __future__ import annotations

import fractions
from math import gcd
from typing import TYPE_CHECKING, Any

__all__ = ["Fraction"]


class _Fraction(fractions.Fraction):
    """A fraction in lowest terms, as Python's."""

    __slots__ = ()
    _numerator: int
    _denominator: int

    def __new__(cls, numerator: Any = 0, denominator: Any = None) -> Any:
        if type(numerator) is int:
            if denominator is None:
                return _made(numerator, 1)
            if type(denominator) is int and denominator > 0:
                common = gcd(numerator, denominator)
                return _made(numerator // common, denominator // common)
        found = fractions.Fraction(numerator, denominator)
        return _made(found.numerator, found.denominator)

    def __add__(self, other: Any) -> Any:
        if type(other) is _Fraction:
            return _sum(self._numerator, self._denominator, other._numerator, other._denominator)
        if type(other) is int:
            return _made(self._numerator + other * self._denominator, self._denominator)
        return fractions.Fraction.__add__(self, other)

    def __radd__(self, other: Any) -> Any:
        if type(other) is int:
            return _made(self._numerator + other * self._denominator, self._denominator)
        return fractions.Fraction.__radd__(self, other)

    def __sub__(self, other: Any) -> Any:
        if type(other) is _Fraction:
            return _sum(self._numerator, self._denominator, -other._numerator, other._denominator)
        if type(other) is int:
            return _made(self._numerator - other * self._denominator, self._denominator)
        return fractions.Fraction.__sub__(self, other)

    def __rsub__(self, other: Any) -> Any:
        if type(other) is int:
            return _made(other * self._denominator - self._numerator, self._denominator)
        return fractions.Fraction.__rsub__(self, other)

    def __mul__(self, other: Any) -> Any:
        if type(other) is _Fraction:
            return _times(self._numerator, self._denominator, other._numerator, other._denominator)
        if type(other) is int:
            return _times(self._numerator, self._denominator, other, 1)
        return fractions.Fraction.__mul__(self, other)

    def __rmul__(self, other: Any) -> Any:
        if type(other) is int:
            return _times(self._numerator, self._denominator, other, 1)
        return fractions.Fraction.__rmul__(self, other)

    def __truediv__(self, other: Any) -> Any:
        if type(other) is _Fraction and other._numerator:
            return _ratio(self._numerator, self._denominator, other._numerator, other._denominator)
        if type(other) is int and other:
            return _ratio(self._numerator, self._denominator, other, 1)
        return fractions.Fraction.__truediv__(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        if type(other) is int and self._numerator:
            return _ratio(other, 1, self._numerator, self._denominator)
        return fractions.Fraction.__rtruediv__(self, other)

    def __neg__(self) -> Any:
        return _made(-self._numerator, self._denominator)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _made(abs(self._numerator), self._denominator)

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and other >= 0:
            return _made(self._numerator**other, self._denominator**other)
        return fractions.Fraction.__pow__(self, other)

    def __eq__(self, other: object) -> Any:
        if type(other) is _Fraction:
            return self._numerator == other._numerator and self._denominator == other._denominator
        if type(other) is int:
            return self._numerator == other and self._denominator == 1
        return fractions.Fraction.__eq__(self, other)

    __hash__ = fractions.Fraction.__hash__

    def __lt__(self, other: Any) -> Any:
        if type(other) is _Fraction:
            return self._numerator * other._denominator < other._numerator * self._denominator
        if type(other) is int:
            return self._numerator < other * self._denominator
        return fractions.Fraction.__lt__(self, other)

    def __le__(self, other: Any) -> Any:
        if type(other) is _Fraction:
            return self._numerator * other._denominator <= other._numerator * self._denominator
        if type(other) is int:
            return self._numerator <= other * self._denominator
        return fractions.Fraction.__le__(self, other)

    def __gt__(self, other: Any) -> Any:
        if type(other) is _Fraction:
            return self._numerator * other._denominator > other._numerator * self._denominator
        if type(other) is int:
            return self._numerator > other * self._denominator
        return fractions.Fraction.__gt__(self, other)

    def __ge__(self, other: Any) -> Any:
        if type(other) is _Fraction:
            return self._numerator * other._denominator >= other._numerator * self._denominator
        if type(other) is int:
            return self._numerator >= other * self._denominator
        return fractions.Fraction.__ge__(self, other)


def _made(numerator: int, denominator: int) -> Any:
    """The fraction of two coprime integers, the second positive."""
    fraction = object.__new__(_Fraction)
    fraction._numerator = numerator
    fraction._denominator = denominator
    return fraction


def _sum(na: int, da: int, nb: int, db: int) -> Any:
    common = gcd(da, db)
    if common == 1:
        return _made(na * db + da * nb, da * db)
    rest = da // common
    whole = na * (db // common) + nb * rest
    shared = gcd(whole, common)
    return _made(whole // shared, rest * (db // shared))


def _times(na: int, da: int, nb: int, db: int) -> Any:
    one, other = gcd(na, db), gcd(nb, da)
    return _made((na // one) * (nb // other), (da // other) * (db // one))


def _ratio(na: int, da: int, nb: int, db: int) -> Any:
    return _times(na, da, db, nb) if nb > 0 else _times(na, da, -db, -nb)


if TYPE_CHECKING:
    from fractions import Fraction
else:
    Fraction = _Fraction
    _Fraction.__name__ = _Fraction.__qualname__ = "Fraction"  # as it prints, and where it is found when pickled
