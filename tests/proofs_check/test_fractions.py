"""The ledger's fractions are gmpy2's: what they are mixed with takes them for the numbers they are, but no float."""

from __future__ import annotations

import fractions
import pickle

import pytest
import sympy
import z3

from proofs_check import Claim, ClaimError, at_most
from proofs_check.evidence.judge import judge
from proofs_check.statement.arithmetic import enclosures
from proofs_check.statement.fractions import Fraction


def test_they_mix_with_what_is_exact() -> None:
    third, half = Fraction(1, 3), fractions.Fraction(1, 2)
    for sum_ in (third + half, half + third):
        assert type(sum_) is type(third)
        assert sum_ == fractions.Fraction(5, 6)
        assert hash(sum_) == hash(fractions.Fraction(5, 6))
    assert pickle.loads(pickle.dumps(third)) == third
    assert sympy.sympify(third) == sympy.Rational(1, 3)
    assert z3.simplify(third * z3.Real("x") == z3.Real("x") * z3.Q(1, 3))
    assert bool(enclosures().mpf(third) * 3 - 1 < Fraction(1, 10**9))


@pytest.mark.parametrize("of", [lambda x: 0.5 * x, lambda x: x + 0.5])
def test_a_float_among_them_is_named_and_refused(of) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ClaimError, match=r"compares .* \(float\)"):
        judge(Claim("c", lambda x: at_most(of(x), 1)), {"x": Fraction(1, 3)})
