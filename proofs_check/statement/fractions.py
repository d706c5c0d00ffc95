"""The ledger's fractions: gmpy2's, which are faster than Python's and mix with them."""

from __future__ import annotations

from numbers import Rational
from typing import TYPE_CHECKING, Any

from spectheory.errors import load_extra

if TYPE_CHECKING:
    from fractions import Fraction
else:
    Fraction = load_extra("gmpy2", extra="proofs").mpq

__all__ = ["Fraction", "is_exact", "is_fraction", "plain"]


def is_exact(value: object) -> bool:
    """Whether a value is an integer or a fraction, gmpy2's or Python's."""
    return type(value) is not bool and isinstance(value, Rational)


def is_fraction(value: object) -> bool:
    """Whether it is a fraction."""
    return is_exact(value) and type(value) is not int


def plain(value: Any) -> Any:
    """The value; what gmpy2 makes of a float and a fraction is the float again."""
    return float(value) if type(value).__module__ == "gmpy2" and not is_exact(value) else value
