"""A3: the closed forms around the race, to their last digits."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from proofs_check.forms.divergences import overlap, reciprocal, similarity
from proofs_check.library import cases
from proofs_check.library.strategies import extreme_pairs, pairs
from proofs_check.statement.arithmetic import floats
from proofs_check.twins.oracle import MP, exactly
from spectheory.verification import RaceVerification, race_inequalities

ROUNDING = 1e-14
"""Sums of a few dozen products of order one, and the race's prefix sums."""


@pytest.mark.parametrize(("tokens", "total"), [(2, 6), (3, 4)])
def test_bounds_in_fractions(tokens: int, total: int) -> None:
    for p, q in product(cases.grid(tokens, total), repeat=2):
        distance, alike = 1 - overlap(p, q), similarity(p, q)
        exact = alike / 2, reciprocal(p, q), (1 - distance) / (1 + distance), 1 - distance, alike
        np.testing.assert_allclose(race_inequalities(floats(p), floats(q)), floats(exact), rtol=ROUNDING, atol=0)


@given(pairs())
def test_the_race_lies_between(pair: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    bounds = race_inequalities(*pair)
    race = RaceVerification().acceptance(*pair)
    assert max(bounds[:3]) <= race * (1 + ROUNDING) + ROUNDING
    assert race <= min(bounds[3:]) * (1 + ROUNDING) + ROUNDING


@pytest.mark.parametrize("name", sorted(extreme_pairs()))
def test_reciprocals_at_fifty_digits(name: str) -> None:
    p, q = extreme_pairs()[name]
    terms = (1 / (1 / a + 1 / b - 1) for a, b in zip(exactly(p), exactly(q), strict=True) if a * b > 0)
    exact = MP.fsum(terms)
    assert abs(MP.mpf(float(race_inequalities(p, q).reciprocals)) - exact) <= 1e-13 * exact
