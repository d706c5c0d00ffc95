"""A1, A2 and A4: acceptance rates against definitions, and the bounds between them (A3) to their last digits."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from numpy.typing import NDArray

from proofs_check.algorithms import enumeration
from proofs_check.forms.divergences import overlap, reciprocal, similarity
from proofs_check.library import cases
from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from proofs_check.statement.arithmetic import floats
from proofs_check.twins import oracle
from proofs_check.twins.oracle import MP, exactly
from spectheory import chi_square, harmonic_mean_similarity, kl_divergence, total_variation
from spectheory.verification import (
    RULES,
    ArgmaxDraft,
    BlockVerification,
    GreedyMatch,
    IndependentMatch,
    RaceVerification,
    Rule,
    TokenVerification,
    race_inequalities,
)
from tests.made_up import each

RELATIVE = 1e-12
"""The race sorts and adds up to V terms, each rounded by 1e-16; V = 2000 leaves a factor of five."""

ROUNDING = 1e-12
"""Slack of inequalities between sums of a few terms of order one."""

PAIRS = extreme_pairs()
SINGLE_RULES: list[Rule] = [*RULES.values()]

every_pair = each("pair", PAIRS.values())


def race_by_pairs(p: Floats, q: Floats) -> float:
    """The race's acceptance as its O(V^2) double sum."""
    alive = (p > 0) | (q > 0)
    p, q = p[alive], q[alive]
    both = (p > 0) & (q > 0)
    over = np.maximum(p[:, None] / p[None, both], q[:, None] / q[None, both])
    return float(np.sum(1 / over.sum(axis=0)))


def fractions(weights: tuple[int, ...]) -> enumeration.Pmf:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def in_floats(pmf: enumeration.Pmf) -> Floats:
    return np.array([float(share) for share in pmf])


# Acceptance rates


@every_pair
def test_token_acceptance_is_one_minus_tv(pair: tuple[Floats, Floats]) -> None:
    """A1 at fifty digits."""
    exact = oracle.MP.fsum(min(a, b) for a, b in zip(*map(oracle.exactly, pair), strict=True))
    value = float(TokenVerification().acceptance(*pair))
    assert abs(oracle.MP.mpf(value) - exact) <= RELATIVE * exact
    assert value == pytest.approx(1 - float(total_variation(*pair)), abs=ROUNDING)
    assert BlockVerification().acceptance(*pair) == value


@every_pair
def test_race_acceptance_at_fifty_digits(pair: tuple[Floats, Floats]) -> None:
    """A2: one sort gives the definition's double sum, relative and absolute."""
    p, q = (pmf[:200] / pmf[:200].sum() for pmf in pair)
    exact = oracle.race_acceptance(p, q)
    value = oracle.MP.mpf(float(RaceVerification().acceptance(p, q)))
    assert abs(value - exact) <= RELATIVE
    assert abs(value - exact) <= RELATIVE * exact


@every_pair
def test_race_acceptance_is_its_double_sum(pair: tuple[Floats, Floats]) -> None:
    assert RaceVerification().acceptance(*pair) == pytest.approx(race_by_pairs(*pair), rel=RELATIVE, abs=0)


@theorem
@given(pairs(max_tokens=8))
def test_race_acceptance_is_its_double_sum_everywhere(pair: tuple[Floats, Floats]) -> None:
    r"""Sum_x p_x / (1 + g(p_x/q_x)) = sum_x 1 / sum_y max(p_y/p_x, q_y/q_x)."""
    assert RaceVerification().acceptance(*pair) == pytest.approx(race_by_pairs(*pair), rel=RELATIVE, abs=0)


@every_pair
@each("rule", SINGLE_RULES)
def test_acceptance_is_the_mean_of_its_law_given_the_output(rule: Rule, pair: tuple[Floats, Floats]) -> None:
    p, q = pair
    mean = float(np.sum(p * rule.acceptance_given(p, q)))
    assert rule.acceptance(p, q) == pytest.approx(mean, rel=RELATIVE, abs=0)
    assert np.all((rule.acceptance_given(p, q) >= 0) & (rule.acceptance_given(p, q) <= 1))


def test_zero_cases_of_the_law_given_the_output() -> None:
    """Token verification and the race: never accepted where q = 0, p = q = 0 included; 1 where p = 0 < q."""
    p, q = np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.0, 0.5, 0.5, 0.0])
    for rule in (TokenVerification(), RaceVerification()):
        for wrap in (np.asarray, torch.from_numpy):
            given_output = rule.acceptance_given(wrap(p), wrap(q)).tolist()
            assert given_output[0] == given_output[3] == 0
            assert given_output[2] == 1


def test_first_choices_tie_at_the_lowest_index() -> None:
    """A4: argmax draft is p(argmax q), greedy 1[argmax p = argmax q]; ties go to the lowest index."""
    p, q = np.array([0.2, 0.4, 0.4]), np.array([0.1, 0.45, 0.45])
    for wrap in (np.asarray, torch.from_numpy):
        assert ArgmaxDraft().acceptance(wrap(p), wrap(q)) == 0.4
        assert ArgmaxDraft().acceptance_given(wrap(p), wrap(q)).tolist() == [0, 1, 0]
        assert GreedyMatch().acceptance(wrap(p), wrap(q)) == 1
        assert GreedyMatch().acceptance(wrap(p), wrap(q[::-1].copy())) == 0
        assert GreedyMatch().acceptance_given(wrap(p), wrap(q)).tolist() == [1, 1, 1]
    assert IndependentMatch().acceptance(p, q) == pytest.approx(0.2 * 0.1 + 2 * 0.4 * 0.45)


# A3: the bounds, term by term


@theorem
@given(pairs(max_tokens=8))
def test_race_bounds(pair: tuple[Floats, Floats]) -> None:
    """S_HM/2 <= sum 1/(1/p + 1/q - 1) <= alpha_race <= 1 - TV <= S_HM, and (1-TV)/(1+TV) <= alpha_race.

    1 - TV is the most of any rule that drafts from q: of an independent match and of block verification too.
    """
    p, q = pair
    race = float(RaceVerification().acceptance(p, q))
    similarity = float(harmonic_mean_similarity(p, q))
    overlap = float(TokenVerification().acceptance(p, q))
    middle = sum(1 / (1 / a + 1 / b - 1) for a, b in zip(p, q, strict=True) if a > 0 and b > 0)
    for below, above in (
        (similarity / 2, middle),
        (middle, race),
        (race, overlap),
        (overlap, similarity),
        (overlap / (2 - overlap), race),
        (float(IndependentMatch().acceptance(p, q)), overlap),
        (float(BlockVerification().acceptance(p, q)), overlap),
    ):
        assert below <= above * (1 + ROUNDING)


def test_the_false_look_alike_stays_refuted() -> None:
    """S/(2-S) <= alpha_race is false for S = S_HM: thirds give 4/5 against 2/3. With S = 1 - TV it is true (A3)."""
    p, q = fractions((1, 2)), fractions((2, 1))
    similarity = sum((2 * a * b / (a + b) for a, b in zip(p, q, strict=True)), Fraction(0))
    race = sum((share for (i, j), share in enumeration.race_coupling(p, q).items() if i == j), Fraction(0))
    assert similarity / (2 - similarity) == Fraction(4, 5)
    assert race == Fraction(2, 3)
    s = float(harmonic_mean_similarity(in_floats(p), in_floats(q)))
    assert s / (2 - s) > RaceVerification().acceptance(in_floats(p), in_floats(q)) + 0.13


def test_wrong_formulas_are_caught() -> None:
    """Negative control: the race with min for max, without its p, or read off TV differs from the double sum."""
    p, q = PAIRS["random"]
    exact = race_by_pairs(p, q)
    wrong = [
        float(np.sum(1 / np.minimum(p[:, None] / p, q[:, None] / q).sum(axis=0))),
        float(np.mean(RaceVerification().acceptance_given(p, q))),
        float(TokenVerification().acceptance(p, q)),
        float((1 - total_variation(p, q)) / (1 + total_variation(p, q))),
    ]
    assert all(abs(value - exact) > 1e-3 for value in wrong)


# Errors


@pytest.mark.filterwarnings("error")
def test_ratios_beyond_the_floats_are_silent_and_right() -> None:
    """p/q = 1.6e309 overflows; no value depends on it and no warning escapes."""
    p, q = np.array([0.5, 0.5]), np.array([3e-310, 1.0])
    assert float(RaceVerification().acceptance(p, q)) == pytest.approx(0.5, rel=1e-12)
    assert float(TokenVerification().acceptance_given(q, p)[0]) == 1.0
    assert np.isfinite(kl_divergence(p, q))
    assert chi_square(p, q) == np.inf


PREFIX_ROUNDING = 1e-14
"""Sums of a few dozen products of order one, and the race's prefix sums."""


@pytest.mark.parametrize(("tokens", "total"), [(2, 6), (3, 4)])
def test_bounds_in_fractions(tokens: int, total: int) -> None:
    for p, q in product(cases.grid(tokens, total), repeat=2):
        distance, alike = 1 - overlap(p, q), similarity(p, q)
        exact = alike / 2, reciprocal(p, q), (1 - distance) / (1 + distance), 1 - distance, alike
        np.testing.assert_allclose(race_inequalities(floats(p), floats(q)), floats(exact), rtol=PREFIX_ROUNDING, atol=0)


@given(pairs())
def test_the_race_lies_between(pair: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    bounds = race_inequalities(*pair)
    race = RaceVerification().acceptance(*pair)
    assert max(bounds[:3]) <= race * (1 + PREFIX_ROUNDING) + PREFIX_ROUNDING
    assert race <= min(bounds[3:]) * (1 + PREFIX_ROUNDING) + PREFIX_ROUNDING


@pytest.mark.parametrize("name", sorted(extreme_pairs()))
def test_reciprocals_at_fifty_digits(name: str) -> None:
    p, q = extreme_pairs()[name]
    terms = (1 / (1 / a + 1 / b - 1) for a, b in zip(exactly(p), exactly(q), strict=True) if a * b > 0)
    exact = MP.fsum(terms)
    assert abs(MP.mpf(float(race_inequalities(p, q).reciprocals)) - exact) <= 1e-13 * exact
