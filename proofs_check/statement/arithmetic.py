"""One way to write a statement, evaluated in any arithmetic: fractions, floats, certified intervals, solver terms.

A statement written with +, -, *, / and the functions here can be checked exactly on fractions, enclosed by intervals
where logarithms enter, searched on floats, and handed to a solver for every pmf at once. Python's own ``max``, ``if``
and ``math.log`` tie it to numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proofs_check.statement.fractions import Fraction, is_exact, is_fraction

Real = Any
"""A fraction, a float, an mpmath interval or a solver's term."""

AnyPmf = Sequence[Real]
"""A pmf in any of these."""


class Transcendental(ArithmeticError):
    """A logarithm was asked of a fraction: the statement needs certified intervals."""


def is_term(value: object) -> bool:
    """Whether the value is a term of the solver (z3)."""
    return type(value).__module__.startswith("z3.")


def is_interval(value: object) -> bool:
    """Whether the value is an mpmath interval."""
    return type(value).__name__ == "ivmpf"


_taken_nonzero: ContextVar[list[Any] | None] = ContextVar("taken_nonzero", default=None)


@contextmanager
def nonzero_terms() -> Iterator[list[Any]]:
    """Collects the solver's terms that :func:`is_zero` says are none: what is shown then holds where they are not."""
    terms: list[Any] = []
    token = _taken_nonzero.set(terms)
    try:
        yield terms
    finally:
        _taken_nonzero.reset(token)


def is_zero(value: Real) -> bool:
    """Whether a number is exactly zero; a solver's term is taken not to be, and :func:`nonzero_terms` collects it."""
    if not is_term(value):
        return bool(value == 0)
    terms = _taken_nonzero.get()
    if terms is None:
        raise TypeError("a solver's term was asked whether it is zero")
    terms.append(value)
    return False


def larger(a: Real, b: Real) -> Real:
    """The larger of two numbers."""
    if is_term(a) or is_term(b):
        import z3

        return z3.If(a >= b, a, b)
    if is_interval(a) or is_interval(b):
        return _interval_larger(a, b)
    return max(a, b)


def smaller(a: Real, b: Real) -> Real:
    """The smaller of two numbers."""
    return -larger(-a, -b)


def positive_part(a: Real) -> Real:
    """The number if it is positive, else 0."""
    return larger(a, 0)


def absolute(a: Real) -> Real:
    """The distance from 0."""
    return larger(a, -a)


def log(a: Real) -> Real:
    """The natural logarithm; of an exact number but 1 it raises Transcendental, and judges go on with intervals."""
    return _transcendental("log", a, trivial=1, value=0)


def exp(a: Real) -> Real:
    """The exponential; of an exact number but 0 it raises Transcendental."""
    return _transcendental("exp", a, trivial=0, value=1)


Mode = Literal["exact", "interval", "float"]

_mode: ContextVar[Mode] = ContextVar("mode", default="exact")


@contextmanager
def evaluated_in(mode: Mode) -> Iterator[None]:
    """What the logarithm of a number that a claim writes down, as 2, is: none, an interval, or a float."""
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


def _transcendental(name: Literal["log", "exp"], a: Real, *, trivial: int, value: int) -> Real:
    if is_term(a):
        raise Transcendental(f"the {name} of a solver's term")
    if is_interval(a) or (is_exact(a) and _mode.get() == "interval"):
        return getattr(enclosures(), name)(a)
    if is_exact(a) and _mode.get() == "exact":
        if a == trivial:
            return Fraction(value)
        raise Transcendental(f"the {name} of a fraction")
    return getattr(math, name)(a)


def every(conditions: Iterable[Any]) -> Any:
    """Whether all conditions hold, of numbers or of a solver's terms."""
    listed = list(conditions)
    if any(is_term(condition) for condition in listed):
        import z3

        return z3.And(*listed)
    return all(listed)


def shares(*values: Real) -> list[Any]:
    """The conditions 0 <= v <= 1 of each value, for the steps of a proof."""
    return [bound for value in values for bound in (value >= 0, value <= 1)]


def floats(values: Iterable[Real]) -> NDArray[np.float64]:
    """Fractions or intervals rounded to double precision, for the library's calculators."""
    return np.array([float(value.mid.a) if is_interval(value) else float(value) for value in values])


def interval(value: Any) -> Any:
    """The value with every fraction in it enclosed by an interval; tuples, lists, dictionaries and integers stay."""
    if is_fraction(value):
        return enclosures().mpf(value)
    if isinstance(value, tuple | list):
        return type(value)(interval(item) for item in value)
    if isinstance(value, dict):
        return {key: interval(item) for key, item in value.items()}
    return value


def _interval_larger(a: Real, b: Real) -> Real:
    """The enclosure of the larger of two intervals."""
    iv = enclosures()
    left, right = iv.mpf(a), iv.mpf(b)
    return iv.mpf([max(left.a, right.a), max(left.b, right.b)])


# Certified intervals: mpmath's interval arithmetic, which here takes fractions too, and refuses floats.


@cache
def enclosures() -> Any:
    """The arithmetic; its ``dps`` is the precision in force.

    Examples
    --------
    >>> from fractions import Fraction
    >>> iv = enclosures()
    >>> third = iv.mpf(Fraction(1, 3))
    >>> bool(third.a * 3 <= 1 <= third.b * 3), bool((Fraction(1, 2) * third).b < 1)
    (True, True)
    """
    from mpmath.ctx_iv import MPIntervalContext  # type: ignore[import-untyped]

    class Enclosures(MPIntervalContext):  # type: ignore[misc]
        """Intervals of fractions and integers."""

        def convert(self, x: Any) -> Any:
            """The interval of a number."""
            if is_fraction(x):
                return self.mpf(int(x.numerator)) / self.mpf(int(x.denominator))
            if isinstance(x, float):
                raise TypeError(f"the float {x!r} among intervals: write a fraction")
            return super().convert(x)

    return Enclosures()
