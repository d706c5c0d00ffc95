"""The ratio order, the race and its enclosure, against 50 digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from proofs_check.twins import oracle
from proofs_check.twins.oracle import MP, Real
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.errors import PmfError, ShapeError
from spectheory.kernels import race
from spectheory.verification import RaceVerification
from spectheory.verification.race_bounds import race_enclosure
from tests.foundations.kernel_cases import (
    HARD,
    RELATIVE,
    TOKENS,
    assert_same_g,
    close,
    hard_pairs,
    language_like,
    taken_at_any_size,
    without_numba,
)
from tests.made_up import each

COMPENSATED = 2e-15
"""A term p/(1+g) is rounded about five times, 1e-16 each, and the sums keep their rounding errors."""

WIDTH = 1e-9
"""What the enclosure promises for pmfs that sum to one in double precision."""

PAIRS = extreme_pairs()


@pytest.fixture(params=sorted(PAIRS))
def pair(request: pytest.FixtureRequest) -> tuple[Floats, Floats]:
    return PAIRS[request.param]


HARD_SMALL = hard_pairs(600)


def race_by_one_sort(p: Floats, q: Floats) -> Real:
    """A2 at 50 digits by exact ratios in exact order: the oracle's double sum takes too long for many tokens."""
    tokens = sorted((a / b, a, b) for a, b in zip(oracle.exactly(p), oracle.exactly(q), strict=True) if b > 0)
    below_p = below_q = total = MP.zero
    whole = MP.fsum(oracle.exactly(p))
    for ratio, a, b in tokens:
        total += a / (whole + ratio * below_q - below_p)
        below_p, below_q = below_p + a, below_q + b
    return total


# Ratio order


@each("name", sorted(HARD))
def test_the_ratio_order_is_a_sort(name: str) -> None:
    """Every token once, ratios ascending, and what has no ratio apart."""
    p, q = HARD[name]
    ratios, carried, left = race.ratio_order(p, q, np.arange(float(TOKENS)))
    with np.errstate(all="ignore"):
        every = p / q
    usable = (every > 0) & np.isfinite(every)
    np.testing.assert_array_equal(ratios, np.sort(every[usable]))
    np.testing.assert_array_equal(every[carried.astype(int)], ratios)
    np.testing.assert_array_equal(np.sort(np.concatenate([carried, left.imag])), np.arange(TOKENS))
    np.testing.assert_array_equal(every[left.imag.astype(int)], left.real)


@theorem
@given(st.integers(1, 300), st.integers(0, 10**6), st.sampled_from([1e-16, 1e-3, 1.0, 100.0]), st.integers(1, 8))
def test_the_ratio_order_of_any_size(tokens: int, seed: int, spread: float, crowd: int) -> None:
    """Stale scratch memory and overfull buckets included."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(tokens))
    p = q * np.exp(spread * rng.standard_normal(tokens)) * (rng.random(tokens) < 0.9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "CROWD", crowd)
        ratios, carried, left = race.ratio_order(p, q, q)
    order = np.argsort(p / q, kind="stable")[left.size :]
    np.testing.assert_array_equal(ratios, (p / q)[order])
    assert carried.sum() == pytest.approx(q[order].sum(), rel=RELATIVE)
    assert set(left.real) <= {0.0}


# The race


def test_the_oracles_agree(pair: tuple[Floats, Floats]) -> None:
    p, q = (pmf[:100] / pmf[:100].sum() for pmf in pair)
    exact = oracle.race_acceptance(p, q)
    assert abs(race_by_one_sort(p, q) - exact) <= MP.mpf(10) ** -45 * exact


def test_race_acceptance_at_fifty_digits(pair: tuple[Floats, Floats]) -> None:
    """A2, a thousand times closer than the array twin is held to."""
    for p, q in (pair, pair[::-1]):
        assert close(race.race_acceptance(p, q), race_by_one_sort(p, q), COMPENSATED)


@each("name", sorted(HARD))
def test_race_acceptance_of_hard_pairs(name: str) -> None:
    p, q = HARD_SMALL[name]
    assert close(race.race_acceptance(p, q), race_by_one_sort(p, q), COMPENSATED)
    p, q = HARD[name]
    with without_numba():
        twin = RaceVerification().acceptance(p, q)
    assert race.race_acceptance(p, q) == pytest.approx(float(twin), rel=RELATIVE, abs=0)


@theorem
@given(pairs(max_tokens=8))
def test_race_kernels_of_any_pair(pair: tuple[Floats, Floats]) -> None:
    p, q = pair
    assert close(race.race_acceptance(p, q), oracle.race_acceptance(p, q), COMPENSATED)
    assert_same_g(race.hockey_stick_at_ratios(p, q), hockey_stick_at_ratios(p, q, np))


@each("name", sorted(HARD))
def test_hockey_stick_of_hard_pairs(name: str) -> None:
    p, q = HARD[name]
    with without_numba():
        twin = hockey_stick_at_ratios(p, q, np)
    assert_same_g(race.hockey_stick_at_ratios(p, q), twin)


def test_a_wrong_race_is_caught() -> None:
    """Negative control: sums in the order of q, or g from sums that leave out a token, miss by more than is allowed."""
    p, q = HARD_SMALL["language"]
    exact = race_by_one_sort(p, q)
    order = np.argsort(q)
    below = np.cumsum(q[order]) - q[order], np.cumsum(p[order]) - p[order]
    wrong = np.sum(p[order] / (1 + np.maximum(p[order] / q[order] * below[0] - below[1], 0)))
    assert not close(wrong, exact, 1e-3)
    light = np.arange(p.size) != np.argmin(p)
    assert not close(race.race_acceptance(p[light], q[light]), exact, COMPENSATED)


# The enclosure


def contains(enclosure: Any, exact: Real) -> bool:
    return bool(enclosure.kind == "bound" and enclosure.low <= exact <= enclosure.high)


@theorem
@given(pairs(max_tokens=8))
def test_the_enclosure_holds_for_any_pair(pair: tuple[Floats, Floats]) -> None:
    exact = oracle.race_acceptance(*pair)
    assert contains(race_enclosure(*pair), exact)
    with taken_at_any_size():
        enclosure = race_enclosure(*pair)
    assert contains(enclosure, exact)
    assert enclosure.high - enclosure.low <= WIDTH


@each("name", sorted(HARD))
def test_the_enclosure_of_hard_pairs(name: str) -> None:
    p, q = HARD_SMALL[name]
    exact = race_by_one_sort(p, q)
    with taken_at_any_size():
        for pair in ((p, q), (q, p)):
            enclosure = race_enclosure(*pair)
            assert contains(enclosure, exact)
            assert enclosure.high - enclosure.low <= WIDTH
    assert contains(race_enclosure(p, q), exact)
    p, q = HARD[name]
    enclosure = race_enclosure(p, q)
    assert enclosure.high - enclosure.low <= WIDTH
    assert enclosure.low <= race.race_acceptance(p, q) <= enclosure.high


@pytest.mark.parametrize("scale", [0.5, 3.0, 6.0])
def test_the_enclosure_of_a_large_vocabulary(scale: float) -> None:
    """Width below 1e-9; the ends without another look at any cell hold too."""
    p, q = language_like(16_384, seed=1, scale=scale)
    exact = race_by_one_sort(p, q)
    enclosure = race_enclosure(p, q)
    assert contains(enclosure, exact)
    assert enclosure.high - enclosure.low <= WIDTH
    assert not enclosure.low <= exact - WIDTH
    assert not exact + WIDTH <= enclosure.high
    low, high, _ = race.race_bracket(p, q, width=1.0)
    assert low < exact < high


def test_the_enclosure_of_single_precision_is_as_wide_as_its_sums_are_off() -> None:
    p, q = (pmf.astype(np.float32) for pmf in language_like(TOKENS))
    enclosure = race_enclosure(torch.from_numpy(p), torch.from_numpy(q))
    off = abs(math.fsum(p.astype(np.float64)) - 1)
    assert off > 0
    assert contains(enclosure, race_by_one_sort(p, q))
    assert enclosure.high - enclosure.low <= 2 * off + WIDTH


@pytest.mark.parametrize(
    ("target", "draft", "error"),
    [
        ([[0.5, 0.5]], [0.5, 0.5], ShapeError),
        ([0.5, 0.5], [0.5, 0.25, 0.25], ShapeError),
        ([0.5, 0.6], [0.5, 0.5], PmfError),
    ],
)
def test_the_enclosure_refuses(target: list[Any], draft: list[Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        race_enclosure(target, draft)
    assert "\n" not in str(caught.value)
