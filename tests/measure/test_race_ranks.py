"""R2: the rank of the output among the race's distinct drafts, exactly, by simulation, and along a text."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from proofs_check.library.strategies import extreme_pairs
from proofs_check.statement.arithmetic import floats
from proofs_check.twins import race_ranks
from proofs_check.twins.oracle import MP, exactly
from spectheory.errors import SettingError, ShapeError, TraceError
from spectheory.verification import GumbelList, PoissonRace, RaceVerification
from spectheory.verification import race as race_file

Floats = NDArray[np.float64]
RACE = RaceVerification()

SUBNORMAL = 1e-3
"""A number of 1e-320 has two thousand steps."""
QUADRATURE = 2e-15
"""The trapezoid rule with 361 nodes and the rounding of its sum."""
RELATIVE = 1e-13
"""First ranks come in closed form."""


def weights(*parts: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(part, sum(parts)) for part in parts)


SMALL = [
    (weights(5, 3, 2), weights(2, 3, 5)),
    (weights(1, 2), weights(2, 1)),
    (weights(1, 0, 3), weights(1, 3, 0)),
    (weights(4, 1, 1, 2), weights(1, 4, 2, 1)),
    (weights(9, 1, 1, 1, 1), weights(1, 1, 1, 1, 9)),
    (weights(1, 1, 1), weights(1, 1, 1)),
    (weights(997, 1, 1, 1), weights(1, 997, 1, 1)),
]


@pytest.mark.parametrize(("p", "q"), SMALL, ids=str)
def test_rank_law_in_fractions(p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> None:
    """Joint law of rank and output, rank law and E[R] equal the integrals multiplied out."""
    size = len(p)
    for token in range(size):
        exact = race_ranks.rank_given(p, q, token)
        given = RACE.rank_pmf_given(floats(p), floats(q), token, size)
        np.testing.assert_allclose(given, [float(share) for share in exact], rtol=0, atol=QUADRATURE)
    law = race_ranks.rank_law(p, q)
    np.testing.assert_allclose(
        RACE.rank_pmf(floats(p), floats(q), size), [float(s) for s in law], rtol=0, atol=QUADRATURE
    )
    unseen = 1 - sum(law)
    assert unseen == sum((a for a, b in zip(p, q, strict=True) if b == 0), Fraction(0))
    mean = sum((r * share for r, share in enumerate(law, 1)), Fraction(0))
    expected = float(mean) if unseen == 0 else math.inf
    assert RACE.expected_rank(floats(p), floats(q)) == pytest.approx(expected, rel=RELATIVE)
    assert RACE.acceptance(floats(p), floats(q), 2) == pytest.approx(float(law[0] + law[1]), abs=QUADRATURE)


@pytest.mark.parametrize("name", sorted(name for name, (p, _) in extreme_pairs().items() if len(p) <= 4))
def test_extreme_pairs_at_fifty_digits(name: str) -> None:
    p, q = extreme_pairs()[name]
    exact = race_ranks.rank_law(exactly(p), exactly(q))
    law = RACE.rank_pmf(p, q, len(p))
    for r, share in enumerate(exact):
        assert abs(MP.mpf(float(law[r])) - share) <= QUADRATURE
    assert abs(MP.mpf(float(law[0])) - exact[0]) <= RELATIVE * exact[0]


@pytest.mark.parametrize("name", ["random", "peaked", "nearly equal", "equal"])
def test_ranks_add_up(name: str) -> None:
    """All ranks together are certain, their mean is E[R], and the first is the race's acceptance rate."""
    p, q = extreme_pairs()[name]
    law = RACE.rank_pmf(p, q, len(p))
    assert law.sum() == pytest.approx(1, abs=1e-13)
    assert law @ np.arange(1, len(p) + 1) == pytest.approx(float(RACE.expected_rank(p, q)), rel=1e-12)
    assert law[0] == pytest.approx(float(RACE.acceptance(p, q)), rel=RELATIVE)


def test_simulated_races() -> None:
    """400,000 dense races: every P(R = r) within 5.6 standard errors (2e-8 each); replacement would be 40 off."""
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.full(9, 0.7)), rng.dirichlet(np.full(9, 0.7))
    trials, size = 400_000, len(p)
    clocks = rng.exponential(size=(trials, size))
    output = np.argmin(clocks / p, axis=1)
    arrivals = clocks / q
    ranks = 1 + np.sum(arrivals < arrivals[np.arange(trials), output][:, None], axis=1)
    counted = np.bincount(ranks, minlength=size + 1)[1:] / trials
    law = RACE.rank_pmf(p, q, size)
    errors = np.sqrt(law * (1 - law) / trials)
    limit = norm.isf(1e-8)
    assert (np.abs(counted - law) <= limit * errors + 1e-9).all()
    wrong = PoissonRace().rank_pmf(p, q, size)
    assert np.max(np.abs(counted - wrong) / np.sqrt(wrong * (1 - wrong) / trials)) > 2 * limit


def test_batches_and_libraries() -> None:
    rng = np.random.default_rng(6)
    p, q = rng.dirichlet(np.ones(6), (2, 3)), rng.dirichlet(np.ones(6), (1, 3))
    law = RACE.rank_pmf(p, q, 4)
    assert law.shape == (2, 3, 4)
    for at in np.ndindex(2, 3):
        np.testing.assert_allclose(law[at], RACE.rank_pmf(p[at], q[0, at[1]], 4), atol=QUADRATURE)
    tokens = rng.integers(6, size=(2, 3))
    given = RACE.rank_pmf_given(p, q, tokens, 4)
    for at in np.ndindex(2, 3):
        expected = RACE.rank_pmf_given(p[at], q[0, at[1]], int(tokens[at]), 4)
        np.testing.assert_allclose(given[at], expected, atol=QUADRATURE)
    ours = RACE.rank_pmf(torch.from_numpy(p), torch.from_numpy(q), 4)
    assert isinstance(ours, torch.Tensor)
    np.testing.assert_allclose(ours.numpy(), law, atol=QUADRATURE)


def test_a_ratio_beyond_the_floats() -> None:
    """p/q of the winner overflows: the other token comes before it for certain, in every precision."""
    for p, q in (
        (np.array([0.5, 0.5]), np.array([5e-324, 1.0])),
        (np.array([0.5, 0.5], np.float32), np.array([1e-39, 1.0], np.float32)),
    ):
        np.testing.assert_allclose(RACE.rank_pmf(p, q, 2), [0.5, 0.5], rtol=1e-6)
        assert float(RACE.expected_rank(p, q)) == pytest.approx(1.5, rel=1e-6)
    # Two tokens of subnormal mass: relative to each other they are ordinary.
    law = RACE.rank_pmf_given([0.5, 0.25, 0.25], [2e-320, 1e-320, 1.0], 0, 3)
    rate = 0.5 * 0.5 - 0.25
    np.testing.assert_allclose(law, [0, 1 / (1 + rate), rate / (1 + rate)], atol=SUBNORMAL)


@pytest.mark.parametrize("lead", [(), (2, 3)], ids=str)
def test_winners_in_blocks(lead: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one winner, of some that do not divide, and of all give the same numbers, in both libraries."""
    rng = np.random.default_rng(8)
    p, q = rng.dirichlet(np.full(7, 0.5), lead), rng.dirichlet(np.full(7, 0.5), lead[-1:])
    laws, means = [], []
    for block in (1, 4 * 361 * 5, 1 << 20):
        monkeypatch.setattr(race_file, "_BLOCK", block)
        for convert in (np.asarray, torch.from_numpy):
            laws.append(np.asarray(RACE.rank_pmf(convert(p), convert(q), 5)))
            means.append(np.asarray(RACE.expected_rank(convert(p), convert(q))))
    for law, mean in zip(laws, means, strict=True):
        np.testing.assert_allclose(law, laws[0], rtol=0, atol=1e-15)
        np.testing.assert_allclose(mean, means[0], rtol=1e-15)


def test_no_matrix_of_the_vocabulary_is_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rates of 5,000 tokens would take 200 MB; the integrals are left out, as they take minutes."""
    rng = np.random.default_rng(9)
    p, q = rng.dirichlet(np.ones(5000), 2)
    monkeypatch.setattr(race_file, "_counted", lambda rates, most, nodes, xp: np.zeros((len(rates), most - 1)))
    for ask in (lambda: RACE.expected_rank(p, q), lambda: RACE.rank_pmf(p, q, 2)):
        tracemalloc.start()
        ask()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 80e6
    # The first rank comes by a sort: 200,000 tokens at once.
    p, q = rng.dirichlet(np.ones(200_000), 2)
    assert RACE.rank_pmf(p, q, 1) == pytest.approx([float(RACE.acceptance(p, q))], rel=RELATIVE)


@pytest.mark.parametrize("q", [[1e-307, 0.5, 0.5], [1e-307, 1e-307, 1.0], [2e-308, 1e-308, 1.0]], ids=str)
def test_ratios_near_the_largest_float(q: list[float]) -> None:
    """p/q of 5e306 and more: sums and exponents overflow to infinity, which is where they belong, in silence."""
    p = [0.5, 0.3, 0.2]
    law = RACE.rank_pmf(p, q, 3)
    exact = race_ranks.rank_law(exactly(p), exactly(q))
    np.testing.assert_allclose(law, [float(share) for share in exact], rtol=0, atol=QUADRATURE)
    assert float(RACE.expected_rank(p, q)) == pytest.approx(float(law @ [1, 2, 3]), rel=1e-12)
    accepted = float(GumbelList().acceptance(p, q, 3))
    assert float(GumbelList().acceptance_bound(p, q, 3)) <= accepted * (1 + RELATIVE) <= 1 + RELATIVE


@pytest.mark.parametrize("size", [60, 200, 400])
def test_high_ranks(size: int) -> None:
    """A certain output against a uniform draft stands at every place alike; the nodes follow the ranks."""
    law = RACE.rank_pmf_given(np.eye(size)[0], np.full(size, 1 / size), 0, size)
    np.testing.assert_allclose(law * size, 1, rtol=1e-13)


def test_a_recorded_law() -> None:
    """One rank needs race_g alone; more are read, and a row that rounding brought above one is scaled."""
    columns = {"race_g": np.array([1.0, math.inf])}
    np.testing.assert_array_equal(RACE.rank_law(columns, 1), [[0.5], [0.0]])
    with pytest.raises(TraceError, match="no race_rank"):
        RACE.rank_law(columns, 2)
    columns["race_rank"] = np.array([[0.5, 0.5 + 1e-7], [0.0, 0.0]])
    assert RACE.rank_law(columns, 2).sum(axis=1).max() <= 1
    with pytest.raises(SettingError, match="records ranks up to 2"):
        RACE.rank_law(columns, 3)
    columns["race_rank"] = np.array([[0.5, 0.6], [0.0, 0.0]])
    with pytest.raises(TraceError, match=r"sums to 1\.1"):
        RACE.rank_law(columns, 2)


def test_bad_input() -> None:
    with pytest.raises(SettingError, match="max_rank is 0"):
        RACE.rank_pmf([1.0], [1.0], 0)
    with pytest.raises(ShapeError, match=r"token is 3: ids are 0\.\.1"):
        RACE.rank_pmf_given([0.5, 0.5], [0.5, 0.5], 3, 1)
    with pytest.raises(ShapeError, match="do not broadcast"):
        RACE.rank_pmf_given(np.full((2, 2), 0.5), [0.5, 0.5], np.zeros(3, dtype=int), 1)
