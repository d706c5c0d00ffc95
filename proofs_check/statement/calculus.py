"""Calculus for the steps of a proof: logarithms, integrals, limits and slopes of sympy's, loaded when used.

Integrals, limits and slopes are written down and not worked out: that is left for the check of the step. The arguments
are the symbols that :func:`proofs_check.evidence.symbolic.same` hands to a step.
"""

from __future__ import annotations

import math
from typing import Any

from proofs_check.statement.arithmetic import Real


def log(x: Real) -> Real:
    """The natural logarithm."""
    import sympy

    return sympy.log(x)


def exp(x: Real) -> Real:
    """The exponential."""
    import sympy

    return sympy.exp(x)


def integral(integrand: Real, variable: Real, low: Real, high: Real) -> Real:
    """The integral from `low` to `high`, which may be ``math.inf``."""
    import sympy

    return sympy.Integral(integrand, (variable, low, sympy.oo if high == math.inf else high))


def limit(expression: Real, variable: Real, at: Real) -> Real:
    """The limit from above; ``math.inf`` from below."""
    import sympy

    return sympy.Limit(expression, variable, sympy.oo if at == math.inf else at)


def slope(expression: Real, variable: Real) -> Real:
    """The derivative."""
    import sympy

    return sympy.Derivative(expression, variable)


def some_function(name: str, variable: Real) -> Real:
    """A differentiable function of which nothing else is known."""
    import sympy

    return sympy.Function(name)(variable)


def algebra() -> Any:
    """Sympy, loaded when a proof runs."""
    import sympy

    return sympy


def factorial(number: Any) -> Any:
    """The factorial of a symbol."""
    import sympy

    return sympy.factorial(number)
