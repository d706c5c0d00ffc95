"""Fractions that refuse floats: z3 reads 0.3 as 3/10, and a fraction is compared with the float's exact value."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Any

from proofs_check.statement.claims import ClaimError

_OF_TWO = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "mod", "rmod", "pow", "rpow")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_OF_ONE = ("neg", "pos", "abs")


class Unmixed(Fraction):
    """A fraction whose arithmetic and comparisons with a float raise a `ClaimError`; so do those of its results.

    The ledger's own fractions, on its left too, become one of these.

    Examples
    --------
    >>> from proofs_check.statement.fractions import Fraction as Constant
    >>> Unmixed(1, 2) + 1 >= Fraction(3, 2)
    True
    >>> type(Constant(1, 3) - Unmixed(1, 2)).__name__
    'Unmixed'
    """


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
        found = exact(self, *(Fraction(each) if isinstance(each, Rational) else each for each in others))
        return Unmixed(found) if isinstance(found, Fraction) else found

    return operation


for _operation in (*_OF_TWO, *_COMPARISONS, *_OF_ONE):
    setattr(Unmixed, f"__{_operation}__", _refusing(f"__{_operation}__"))
Unmixed.__hash__ = Fraction.__hash__  # type: ignore[method-assign]
