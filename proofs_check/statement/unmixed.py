"""Fractions that refuse floats: z3 reads 0.3 as 3/10, and a fraction is compared with the float's exact value."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from proofs_check.statement import fractions
from proofs_check.statement.claims import ClaimError

_OF_TWO = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "mod", "rmod", "pow", "rpow")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_OF_ONE = ("neg", "pos", "abs")


class Unmixed(fractions.Fraction):
    """A fraction whose arithmetic and comparisons with a float raise a `ClaimError`; so do those of its results.

    It derives from the ledger's fractions, so that Python asks it first also where one of them stands on its left.

    Examples
    --------
    >>> Unmixed(1, 2) + 1 >= Fraction(3, 2)
    True
    """

    def __new__(cls, numerator: Any = 0, denominator: Any = None) -> Any:
        """Make one as Python makes its fractions."""
        return Fraction.__new__(cls, numerator, denominator)


def _refusing(name: str) -> Callable[[Fraction, Any], Any]:
    exact = getattr(Fraction, name)

    def operation(self: Fraction, *others: Any) -> Any:
        for other in others:
            if isinstance(other, float):
                raise ClaimError(
                    f"an assumption uses the float {other!r}",
                    limit="a float is another number to a solver than to a fraction",
                    remedy="write it as a Fraction",
                )
        found = exact(self, *others)
        return Unmixed(found) if isinstance(found, Fraction) else found

    return operation


for _operation in (*_OF_TWO, *_COMPARISONS, *_OF_ONE):
    setattr(Unmixed, f"__{_operation}__", _refusing(f"__{_operation}__"))
Unmixed.__hash__ = Fraction.__hash__  # type: ignore[method-assign]
