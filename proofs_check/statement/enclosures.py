"""Certified intervals: mpmath's interval arithmetic, which here takes fractions too, and refuses floats.

A float among intervals would be taken for the exact number it is not meant to be.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from proofs_check.statement.fractions import is_fraction

Interval = Any
"""An mpmath interval."""


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

        def convert(self, x: Any) -> Interval:
            """The interval of a number."""
            if is_fraction(x):
                return self.mpf(int(x.numerator)) / self.mpf(int(x.denominator))
            if isinstance(x, float):
                raise TypeError(f"the float {x!r} among intervals: write a fraction")
            return super().convert(x)

    return Enclosures()
