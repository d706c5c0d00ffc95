"""The ledger's fractions are Python's: every operator gives the same number, in lowest terms."""

from __future__ import annotations

import fractions
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proofs_check.statement.fractions import Fraction

OPERATORS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
)

NUMBERS = st.one_of(st.fractions(), st.fractions(-3, 3, max_denominator=12), st.integers(-3, 3), st.integers())
"""Large ones and small ones, which share factors; integers."""

Operator = Callable[[Any, Any], Any]


def ours(number: Any) -> Any:
    """The same number as the ledger has it."""
    return Fraction(number.numerator, number.denominator) if isinstance(number, fractions.Fraction) else number


def outcome(operation: Callable[[], Any]) -> Any:
    """The number with its kind and its parts, as Python has it; or the error."""
    try:
        found = operation()
    except (ZeroDivisionError, OverflowError) as error:
        return type(error)
    if isinstance(found, fractions.Fraction):
        return found.numerator, found.denominator
    return type(found), found


@pytest.mark.parametrize("apply", OPERATORS)
@given(st.data())
def test_operators_are_pythons(apply: Operator, data: st.DataObject) -> None:
    """Of two fractions, and of one with an integer, a float or a fraction of Python's on either side."""
    a, b = data.draw(st.fractions(-3, 3, max_denominator=12) | st.fractions()), data.draw(NUMBERS | st.floats())
    for left, right in ((a, b), (b, a)):
        said = outcome(lambda left=left, right=right: apply(left, right))
        for one, other in ((ours(left), ours(right)), (ours(left), right), (left, ours(right))):
            assert repr(outcome(lambda one=one, other=other: apply(one, other))) == repr(said)


@given(st.fractions(-3, 3, max_denominator=12), st.integers(-4, 4))
@example(fractions.Fraction(0), -1)
def test_one_number_is_pythons(a: fractions.Fraction, power: int) -> None:
    for apply in (operator.neg, operator.pos, operator.abs, hash, bool, float, str, repr, round, lambda x: x**power):
        said = outcome(lambda apply=apply: apply(a))  # type: ignore[misc]
        assert outcome(lambda apply=apply: apply(ours(a))) == said  # type: ignore[misc]


@pytest.mark.parametrize(
    "given", [(), (3,), (6, 4), (6, -4), (0, 5), ("3/9",), (0.75,), (True,), (fractions.Fraction(1, 3), 2), (1, 0)]
)
def test_it_is_made_as_pythons(given: tuple[Any, ...]) -> None:
    assert outcome(lambda: Fraction(*given)) == outcome(lambda: fractions.Fraction(*given))


def test_results_are_as_fast_and_travel() -> None:
    third = Fraction(1, 3)
    for made in (third + 1, 1 - third, third * third, 2 / third, -third, abs(third), third**2, sum([third, third])):
        assert type(made) is type(third)
    assert pickle.loads(pickle.dumps(third)) == third
