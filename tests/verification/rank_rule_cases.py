"""Rules and pairs that the tests of R1 to R8 share."""

from __future__ import annotations

from fractions import Fraction

from proofs_check.algorithms import enumeration
from proofs_check.library.strategies import extreme_pairs
from spectheory.verification import (
    GumbelList,
    KSeq,
)

ROUNDING = 1e-13
"""Sums of a few numbers of order one, against exact ones."""

RELATIVE = 1e-12
"""Relative error of sums of up to 200 positive terms, each rounded a few times by 1e-16."""

SORTED = 1e-12
"""The race's g is a difference of two prefix sums: absolute error, and slack of inequalities on them."""

FALSE_ALARM = 5.5
"""Standard errors that a mean may be off: a false alarm in 26 million tests of a normal mean."""

Pmf = enumeration.Pmf

PAIRS = extreme_pairs()

JUDGED_TOGETHER: list[KSeq | GumbelList] = [KSeq(), GumbelList()]


def fractions(*weights: int) -> Pmf:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


ODD = [
    (fractions(7, 2, 1, 5), fractions(2, 3, 5, 1)),
    (fractions(1, 0, 6, 4), fractions(5, 3, 0, 1)),
    (fractions(1, 1, 1, 20), fractions(9, 8, 7, 3)),
]
