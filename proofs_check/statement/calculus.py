"""Calculus for the steps of a proof: logarithms, integrals, limits and slopes of sympy's, loaded when used.

Integrals, limits and slopes are written down and not worked out: that is left for the check of the step. The arguments
are the symbols that :func:`proofs_check.evidence.symbolic.same` hands to a step.
"""

from __future__ import annotations

import math
from typing import Any

from proofs_check.statement.arithmetic import Real
from proofs_check.statement.fractions import Fraction
from spectheory.errors import load_extra


def algebra() -> Any:
    """Sympy, loaded when a proof runs; the ledger's fractions are rationals to it, which it would take for floats."""
    sympy = load_extra("sympy", extra="proofs")
    from sympy.core.sympify import converter  # type: ignore[import-untyped]

    converter[Fraction] = lambda number: sympy.Rational(number.numerator, number.denominator)
    return sympy


def log(x: Real) -> Real:
    """The natural logarithm."""
    return algebra().log(x)


def exp(x: Real) -> Real:
    """The exponential."""
    return algebra().exp(x)


def integral(integrand: Real, variable: Real, low: Real, high: Real) -> Real:
    """The integral from `low` to `high`, which may be ``math.inf``."""
    return algebra().Integral(integrand, (variable, low, algebra().oo if high == math.inf else high))


def limit(expression: Real, variable: Real, at: Real) -> Real:
    """The limit from above; ``math.inf`` from below."""
    return algebra().Limit(expression, variable, algebra().oo if at == math.inf else at)


def slope(expression: Real, variable: Real) -> Real:
    """The derivative."""
    return algebra().Derivative(expression, variable)


def some_function(name: str, variable: Real) -> Real:
    """A differentiable function of which nothing else is known."""
    return algebra().Function(name)(variable)


def factorial(number: Any) -> Any:
    """The factorial of a symbol."""
    return algebra().factorial(number)
