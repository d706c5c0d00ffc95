"""C1 inverted: the acceptance and the ratio that a speed-up needs, and the best length."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proofs_check.library.strategies import theorem
from spectheory import Interval
from spectheory.cost import (
    ConstantRatio,
    best_chain_length,
    iid_speedup,
    required_acceptance,
    required_ratio,
)
from spectheory.drafting import Chain
from spectheory.errors import SettingError

ROUNDING = 1e-12
"""Horner's rule on at most a hundred terms."""

ROOT = 1e-13
"""A root of a sum of at most 61 powers, each step of a float in the sum moving it by as much at most."""

alphas, ratios, lengths = st.floats(0, 1), st.floats(0, 2), st.integers(1, 60)


# C1


def test_the_best_length_where_there_is_no_finite_best() -> None:
    """Alpha = 1 or c = 0: k_max; alpha <= c: 1."""
    assert best_chain_length(1.0, 0.3, 50) == 50
    assert best_chain_length(0.5, 0.0, 400) == 400
    assert best_chain_length(0.2, 0.3, 50) == 1


def brackets(alpha: float, speedup: float, k: int, c: float) -> bool:
    """Whether the root of sum alpha^i = S(kc+1) is within ROOT of alpha, by signs of exact fractions."""
    below, above = (Fraction(max(0.0, min(1.0, alpha + sign * ROOT))) for sign in (-1, 1))
    wanted = Fraction(speedup) * (k * Fraction(c) + 1)
    low, high = (sum(a**i for i in range(k + 1)) for a in (below, above))
    rounded = Fraction(2) ** -50  # the speed-up itself, at the ends 0 and 1
    return low <= wanted * (1 + rounded) and high >= wanted * (1 - rounded)


@theorem
@given(alphas, lengths, ratios)
def test_the_required_acceptance_gives_the_speedup(alpha: float, k: int, c: float) -> None:
    """It is the root, and the alpha that the speed-up came from."""
    speedup = iid_speedup(alpha, k, c)
    root = required_acceptance(speedup, k, c)
    assert brackets(root, speedup, k, c)
    assert root == pytest.approx(alpha, abs=ROOT)


def test_the_bracket_can_fail() -> None:
    """Negative control: 1e-9 beside the root."""
    speedup = iid_speedup(0.7, 4, 0.1)
    assert brackets(0.7, speedup, 4, 0.1)
    assert not brackets(0.7 + 1e-9, speedup, 4, 0.1)


@theorem
@given(st.floats(0.1, 20), lengths, ratios)
def test_a_speedup_has_an_acceptance_iff_its_tokens_are_within_reach(speedup: float, k: int, c: float) -> None:
    """1 <= S(kc+1) <= k+1."""
    tokens = speedup * (k * c + 1)
    assume(abs(tokens - 1) > 1e-9 and abs(tokens - k - 1) > 1e-9)
    if 1 <= tokens <= k + 1:
        assert 0 <= required_acceptance(speedup, k, c) <= 1
    else:
        with pytest.raises(SettingError, match=r"accepting no draft gives .*, and every draft "):
            required_acceptance(speedup, k, c)


@theorem
@given(st.floats(0.01, 0.99), st.floats(0.001, 0.9), st.integers(1, 30))
def test_requirements_at_the_best_length(alpha: float, c: float, k_max: int) -> None:
    """What the best k needs is what gives the speed-up at it, and no k gets by with less."""
    speedup = iid_speedup(alpha, best_chain_length(alpha, c, k_max), c)
    needed = required_acceptance(speedup, None, c, k_max=k_max)
    assert needed == pytest.approx(alpha, abs=ROOT)
    allowed = required_ratio(speedup, alpha, None, k_max=k_max)
    assert allowed == pytest.approx(c, rel=1e-9, abs=1e-12)
    for k in range(1, k_max + 1):
        assert iid_speedup(max(needed - 1e-6, 0.0), k, c) < speedup
        assert iid_speedup(alpha, k, allowed * (1 + 1e-9) + 1e-9) < speedup


@theorem
@given(alphas, lengths, ratios)
def test_the_required_ratio_gives_the_speedup(alpha: float, k: int, c: float) -> None:
    """The largest c: more is too slow."""
    speedup = iid_speedup(alpha, k, c)
    allowed = required_ratio(speedup, alpha, k)
    assert iid_speedup(alpha, k, allowed) == pytest.approx(speedup, rel=1e-11)
    assert iid_speedup(alpha, k, allowed + 1e-6) < speedup


def test_requirements_at_their_ends() -> None:
    """Alpha = 0 and 1, c = 0, and plain decoding."""
    assert required_acceptance(5.0, 4, 0.0) == 1
    assert required_acceptance(1.0, 4, 0.0) == 0
    assert required_acceptance(1 / 1.1, None, 0.1) == 0
    assert required_ratio(5.0, 1.0, 4) == 0
    assert required_ratio(1.0, 0.6, 1) == pytest.approx(0.6, rel=ROUNDING), "some k improves iff alpha > c"


def test_the_constant_ratio_is_c1() -> None:
    tokens = Interval(2.0, 2.5, 3.0, "statistical")
    for k, c in itertools.product((1, 4, 9), (0.0, 0.1, 1.0)):
        speedup = ConstantRatio(c).speedup(tokens, Chain(k))
        assert speedup.kind == "statistical"
        ends = (speedup.low, speedup.best, speedup.high)
        assert ends == pytest.approx([t / (k * c + 1) for t in (2.0, 2.5, 3.0)], rel=ROUNDING)
