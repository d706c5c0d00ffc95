"""A3: the closed forms around the race, exactly, and their order."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from proofs_check.enumeration import race_coupling
from proofs_check.oracle import MP, exactly
from proofs_check.strategies import extreme_pairs, pairs
from spectheory.verification import RaceVerification, race_inequalities

ROUNDING = 1e-14
"""Sums of a few dozen products of order one, and the race's prefix sums."""


def exact_bounds(p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> list[Fraction]:
    """The five bounds as they are written."""
    both = [(a, b) for a, b in zip(p, q, strict=True) if a * b > 0]
    similarity = sum((2 / (1 / a + 1 / b) for a, b in both), Fraction(0))
    distance = sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2
    reciprocals = sum((1 / (1 / a + 1 / b - 1) for a, b in both), Fraction(0))
    return [similarity / 2, reciprocals, (1 - distance) / (1 + distance), 1 - distance, similarity]


@pytest.mark.parametrize(("tokens", "total"), [(2, 6), (3, 4)])
def test_bounds_and_their_order_in_fractions(tokens: int, total: int) -> None:
    cells = [tuple(Fraction(c, total) for c in cell) for cell in product(range(total + 1), repeat=tokens)]
    pmfs = [cell for cell in cells if sum(cell) == 1]
    for p, q in product(pmfs, repeat=2):
        exact = exact_bounds(p, q)
        ours = race_inequalities([float(a) for a in p], [float(b) for b in q])
        np.testing.assert_allclose(ours, [float(value) for value in exact], rtol=ROUNDING, atol=0)
        race = sum((share for (i, j), share in race_coupling(p, q).items() if i == j), Fraction(0))
        half, reciprocals, from_tv, token, similarity = exact
        assert half <= reciprocals <= race
        assert from_tv <= race <= token <= similarity


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


def test_the_look_alike_is_no_bound() -> None:
    """Negative control: S/(2 - S) exceeds the race."""
    p, q = np.array([1, 2]) / 3, np.array([2, 1]) / 3
    similarity = float(race_inequalities(p, q).similarity)
    assert similarity / (2 - similarity) > RaceVerification().acceptance(p, q) + 0.1
