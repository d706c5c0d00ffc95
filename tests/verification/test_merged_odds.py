"""Merged odds bracket the entropy and mean log rank of a geometric mixture: sums at fifty digits, and one control."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proofs_check.library.strategies import Floats
from proofs_check.twins import oracle
from spectheory.verification import expected_log_rank, poisson_rank_entropy
from spectheory.verification.rank_entropy import Atoms, _merged

MP = oracle.MP
RANKS = 600
"""P(R > RANKS) is below 1e-25 for odds up to 10."""
MOST_ODDS = 10.0
FUNCTIONS = (poisson_rank_entropy, expected_log_rank)


def mixture(seed: int, tokens: int = 40) -> Atoms:
    """Weights and odds of which some are 0, some tiny, some equal, and the largest is :data:`MOST_ODDS`."""
    rng = np.random.default_rng(seed)
    odds = np.concatenate([[0.0, 1e-300, 1e-9, MOST_ODDS, MOST_ODDS], MOST_ODDS ** rng.uniform(-2, 1, tokens - 5)])
    return Atoms(rng.dirichlet(np.full(tokens, 0.5)), odds)


def sums(atoms: Atoms) -> tuple[Any, Any]:
    """H(R) and E log R at fifty digits, rank by rank."""
    law = [MP.mpf(0)] * RANKS
    for weight, g in zip(oracle.exactly(atoms.weights), oracle.exactly(atoms.odds), strict=True):
        share = weight / (1 + g)
        for r in range(RANKS):
            law[r] += share
            share *= g / (1 + g)
    return -MP.fsum(x * MP.log(x) for x in law if x > 0), MP.fsum(x * MP.log(r) for r, x in enumerate(law, 1))


def brackets(lower: Atoms, exact: Atoms, upper: Atoms) -> bool:
    """Whether both quantities of the lower mixture are below, and of the upper above, the exact ones; 1e-12 of slack
    is what the sums of weights in double precision leave.
    """
    return all(low - 1e-12 <= x <= high + 1e-12 for low, x, high in zip(*map(sums, (lower, exact, upper)), strict=True))


@pytest.mark.parametrize("step", [0.1, 0.7, 5.0])
def test_both_quantities_lie_between_those_of_the_two_mixtures(step: float) -> None:
    """Coarse cells, so that the gaps are far beyond rounding; mass and mean odds are kept."""
    exact = mixture(int(10 * step))
    lower, upper = _merged(*exact, step)
    assert lower.odds.size < exact.odds.size > upper.odds.size
    for atoms in (lower, upper):
        assert atoms.weights.sum() == pytest.approx(1, rel=1e-12)
        assert atoms.weights @ atoms.odds == pytest.approx(exact.weights @ exact.odds, rel=1e-12)
    assert brackets(lower, exact, upper)
    assert not brackets(upper, exact, lower)


def test_merging_at_other_places_than_the_mean_is_no_bound() -> None:
    """Negative control: an upper mixture at the cells' geometric means, which lie below their means, is refused."""
    exact = mixture(1)
    lower, upper = _merged(*exact, 1.0)
    left = np.expm1(np.floor(np.log1p(upper.odds)))
    assert not brackets(lower, exact, Atoms(upper.weights, np.sqrt(left * upper.odds)))


def test_what_merging_loses_is_of_second_order() -> None:
    """A tenth of the step loses a hundredth, within a factor of 3 for odds that do not fill the cells evenly."""
    exact = mixture(2, 4000)
    gaps = []
    for step in (0.4, 0.04):
        lower, upper = _merged(*exact, step)
        assert upper.odds.size < 100
        gaps.append(sums(upper)[1] - sums(lower)[1])
    assert 100 / 3 <= gaps[0] / gaps[1] <= 300


def language_pair(tokens: int) -> tuple[Floats, Floats]:
    """Pmfs like those of language models: odds from 1e-12 to beyond 1e3."""
    rng = np.random.default_rng(5)
    logits = 3.5 * rng.normal(size=tokens)
    weights = [np.exp(of - of.max()) for of in (logits, logits + rng.normal(size=tokens))]
    return weights[0] / weights[0].sum(), weights[1] / weights[1].sum()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_intervals_with_and_without_merging_overlap(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are certain and as narrow as asked; the merged one evaluates other mixtures."""
    pair = language_pair(3000)
    interval = function(*pair, tolerance=1e-5)
    monkeypatch.setitem(_merged.__globals__, "_merged", lambda weights, odds, step: (Atoms(weights, odds),) * 2)
    plain = function(*pair, tolerance=1e-5)
    assert (interval.low, interval.high) != (plain.low, plain.high)
    assert max(interval.low, plain.low) <= min(interval.high, plain.high)
    assert max(interval.high - interval.low, plain.high - plain.low) <= 1e-5


def test_few_odds_are_left_as_they_are() -> None:
    """Where merging saves nothing, the bounds are those of the mixture itself."""
    weights, odds = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 1e308])
    for atoms in _merged(weights, odds, 1e-3):
        assert atoms.weights is weights
        assert atoms.odds is odds


def test_odds_at_the_end_of_the_floats() -> None:
    """The last cell ends at the largest float, not beyond."""
    odds = np.full(100, 1.7e308)
    lower, upper = _merged(np.full(100, 0.01), odds, 1e-3)
    assert np.isfinite(lower.odds).all()
    assert upper.odds == pytest.approx(odds[:1], rel=1e-12)
