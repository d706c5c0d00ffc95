"""Calculus for the steps of a proof: logarithms, integrals, limits and slopes of sympy's, loaded when used.

Integrals, limits and slopes are written down and not worked out: that is left for the check of the step. The arguments
are the symbols that :func:`proofs_check.evidence.symbolic.same` hands to a step.
"""

from __future__ import annotations

import math
from typing import Any

from proofs_check.statement.arithmetic import Real


def algebra() -> Any:
    """Sympy, loaded when a proof runs."""
    import sympy

    return sympy


def log(a: Real) -> Real:
    """The natural logarithm."""
    return algebra().log(a)


def exp(a: Real) -> Real:
    """The exponential."""
    return algebra().exp(a)


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
