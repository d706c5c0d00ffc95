"""R1, R5 to R8: the other rules with several candidates."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.typing import NDArray

from proofs_check.algorithms import rank_laws
from proofs_check.library.strategies import Floats, pairs, theorem
from proofs_check.statement.arithmetic import floats
from proofs_check.twins import oracle
from proofs_check.twins.list_transport import optimum
from spectheory.verification import (
    GumbelList,
    KSeq,
    PoissonRace,
    RaceVerification,
    RankRule,
    Rule,
    TopKMatch,
)
from tests.verification.rank_rule_cases import (
    FALSE_ALARM,
    JUDGED_TOGETHER,
    ODD,
    PAIRS,
    RELATIVE,
    ROUNDING,
    SORTED,
    fractions,
)

# R1: the Poisson race


def simulated_race(p: Floats, q: Floats, candidates: int, runs: int, seed: int) -> NDArray[np.int64]:
    """Rank of the output in `runs` Poisson races, each cut after so many candidates (then no better one is left)."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(size=(runs, candidates)), axis=1)
    candidates_of = rng.choice(len(q), size=(runs, candidates), p=q)
    cost = times * (q / p)[candidates_of]
    assert np.all(cost.min(axis=1) < times[:, -1] * (q / p).min()), "a later candidate could have been the output"
    return cost.argmin(axis=1) + 1


def test_the_poisson_race_simulated() -> None:
    """200,000 races: P(R = r) within 5.5 standard errors for r <= 6; the distinct race's law is seen to differ."""
    p, q, runs = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5]), 200_000
    ranks = simulated_race(p, q, 80, runs, seed=2)
    share = np.bincount(ranks, minlength=8)[1:7] / runs
    law = PoissonRace().rank_pmf(p, q, 6)
    error = np.sqrt(law * (1 - law) / runs)
    assert np.all(np.abs(share - law) <= FALSE_ALARM * error)
    wrong = RaceVerification().rank_pmf(p, q, 6)
    assert np.any(np.abs(share - wrong) > 2 * FALSE_ALARM * error)


@pytest.mark.parametrize("name", sorted(PAIRS))
@pytest.mark.parametrize("k", [1, 3, 1000])
def test_poisson_acceptance_at_fifty_digits(name: str, k: int) -> None:
    """1 - sum p (g/(1+g))^k from the definition of g, relative: small acceptances keep their digits."""
    p, q = (pmf[:60] / pmf[:60].sum() for pmf in PAIRS[name])
    mp = oracle.MP
    exact = mp.mpf(0)
    for x, y in zip(oracle.exactly(p), oracle.exactly(q), strict=True):
        if x > 0 and y > 0:
            g = mp.fsum(max(b * x / y - a, 0) for a, b in zip(oracle.exactly(p), oracle.exactly(q), strict=True))
            exact += -x * mp.expm1(-k * mp.log1p(1 / g)) if g > 0 else x
    assert float(PoissonRace().acceptance(p, q, k)) == pytest.approx(float(exact), rel=RELATIVE, abs=0)


def test_the_poisson_race_along_a_text() -> None:
    """The law from the recorded g is the law given the token, infinite g included."""
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.5, 0.5, 0.0])
    g = np.array([0.25, 0.0, math.inf])
    law = PoissonRace().rank_law({"race_g": g}, 5)
    for x in (0, 1, 2):
        np.testing.assert_allclose(law[x], PoissonRace().rank_pmf_given(p, q, x, 5), atol=ROUNDING)
    np.testing.assert_array_equal(PoissonRace().accepted_at({"race_g": g}), law[:, 0])


# R5: k-SEQ


def test_kseq_given_the_output_is_the_printed_product() -> None:
    """min(p/rho, q) (1-(1-beta)^k) / (beta p) = min(1, rho q/p) at the root."""
    p, q = map(floats, ODD[0])
    for k in (2, 5, 40):
        rho = float(KSeq().rho(p, q, k))
        beta = float(np.minimum(q, p / rho).sum())
        printed = np.minimum(p / rho, q) * (1 - (1 - beta) ** k) / beta / p
        np.testing.assert_allclose(KSeq().acceptance_given(p, q, k), printed, rtol=RELATIVE)
        assert 1 - (1 - beta) ** k == pytest.approx(rho * beta, rel=RELATIVE)


@pytest.mark.parametrize("rule", JUDGED_TOGETHER, ids=lambda rule: rule.name)
def test_one_rank_law_does_not_serve_every_k(rule: Rule) -> None:
    """P(R = 1) of k-SEQ depends on k: it is no rule of ranks."""
    assert not isinstance(rule, RankRule)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_kseq_at_the_ends(name: str) -> None:
    """Relative digits at overlaps of 1e-300; equal pmfs: rho = 1 and 1; disjoint ones: 0."""
    p, q = PAIRS[name]
    for k in (1, 4, 1000):
        rho, value = float(KSeq().rho(p, q, k)), float(KSeq().acceptance(p, q, k))
        beta = oracle.MP.fsum(min(b, a / rho) for a, b in zip(oracle.exactly(p), oracle.exactly(q), strict=True))
        beta = min(beta, oracle.MP.mpf(1))
        exact = -oracle.MP.expm1(k * oracle.MP.log1p(-beta)) if beta < 1 else 1
        assert value == pytest.approx(float(exact), rel=RELATIVE, abs=0)
        assert 1 <= rho <= k
    if name == "disjoint":
        assert value == 0
    if name == "equal":
        assert rho == pytest.approx(1, abs=ROUNDING)
        assert value == pytest.approx(1, abs=ROUNDING)


# R6: Gumbel list sampling


def test_a_gumbel_list_of_many_races() -> None:
    """At k = 24 the power of 1 - h is far from linear."""
    p, q = fractions(7, 2, 1), fractions(2, 3, 5)
    for x in range(3):
        exact = float(rank_laws.gumbel_list_hit(p, q, x, 24))
        assert GumbelList().acceptance_given(floats(p), floats(q), 24)[x] == pytest.approx(exact, abs=ROUNDING)


@pytest.mark.parametrize(
    "name", ["tiny entries", "tiny in both", "one-hot", "one-hot target", "target lacks a token", "draft lacks a token"]
)
def test_gumbel_lists_at_the_ends(name: str) -> None:
    """Relative digits at masses of 1e-300 and ratios of 1e300, against the floats taken as fractions."""
    p, q = (tuple(Fraction(float(v)) for v in pmf) for pmf in PAIRS[name])
    given_output = GumbelList().acceptance_given(*PAIRS[name], 3)
    for x in range(len(p)):
        if p[x] > 0:
            exact = float(rank_laws.gumbel_list_hit(p, q, x, 3)) if q[x] > 0 else 0.0
            assert given_output[x] == pytest.approx(exact, rel=SORTED, abs=0)


@pytest.mark.parametrize("mass", [1e-3, 1e-6, 1e-9, 1e-12])
def test_gumbel_lists_over_all_scales(mass: float) -> None:
    """What the other races add at large g is small and lives at small times; it is there to the last digits."""
    p, q = np.array([0.5, 0.5]), np.array([mass, 1 - mass])
    exact = rank_laws.gumbel_list_hit(*(tuple(Fraction(float(v)) for v in pmf) for pmf in (p, q)), 0, 3)
    assert GumbelList().acceptance_given(p, q, 3)[0] == pytest.approx(float(exact), rel=1e-14, abs=0)


def printed_bound(p: Floats, q: Floats, k: int) -> float:
    """rowan2025's double sum."""
    both = [x for x in range(len(p)) if p[x] > 0 and q[x] > 0]
    sums = (np.sum(np.maximum(p / p[x], q / q[x]) + (k - 1) * p / p[x]) for x in both)
    return float(sum(k / total for total in sums))


@settings(theorem, max_examples=60)
@given(pairs())
def test_the_gumbel_bound(pair: tuple[Floats, Floats]) -> None:
    """The printed double sum, below the exact value, both relative; at k = 1 they are A2."""
    p, q = pair
    for k in (1, 3):
        bound = float(GumbelList().acceptance_bound(p, q, k))
        assert bound == pytest.approx(printed_bound(p, q, k), rel=SORTED)
        exact = float(GumbelList().acceptance(p, q, k))
        assert bound <= exact * (1 + SORTED)
    assert GumbelList().acceptance(p, q, 1) == pytest.approx(float(RaceVerification().acceptance(p, q)), rel=SORTED)


def simulated_lists(p: Floats, q: Floats, k: int, runs: int, seed: int) -> tuple[float, float]:
    """Shares of runs whose output is among the drafts, and is the draft of its own race."""
    clocks = np.random.default_rng(seed).exponential(size=(runs, k, len(p)))
    drafts = np.argmin(clocks / q, axis=2)
    best = (clocks / p).reshape(runs, -1).argmin(axis=1)
    races, outputs = best // len(p), best % len(p)
    hits = drafts[np.arange(runs), races] == outputs
    return float((drafts == outputs[:, None]).any(axis=1).mean()), float(hits.mean())


@pytest.mark.parametrize("k", [2, 4])
def test_gumbel_lists_simulated(k: int) -> None:
    """400,000 runs: both probabilities within 5.5 standard errors; the bound as a wrong acceptance is rejected."""
    p, q, runs = np.array([0.45, 0.05, 0.3, 0.2]), np.array([0.1, 0.3, 0.15, 0.45]), 400_000
    listed, hits = simulated_lists(p, q, k, runs, seed=k)
    exact, bound = float(GumbelList().acceptance(p, q, k)), float(GumbelList().acceptance_bound(p, q, k))
    error = 0.5 / math.sqrt(runs)
    assert abs(listed - exact) <= FALSE_ALARM * error
    assert abs(hits - bound) <= FALSE_ALARM * error
    assert abs(listed - bound) > 2 * FALSE_ALARM * error


# R7: the draft's top k


def test_top_k_ties_greedy_targets_and_texts() -> None:
    """Ties go to the lowest index; a greedy target is its one-hot pmf; a text is read from the recorded place."""
    p, q = np.array([0.1, 0.2, 0.3, 0.4]), np.full(4, 0.25)
    for wrap in (np.asarray, torch.from_numpy):
        assert TopKMatch().rank_pmf(wrap(p), wrap(q), 6).tolist() == [0.1, 0.2, 0.3, 0.4, 0, 0]
    assert TopKMatch().rank_pmf([0.0, 1.0], [0.3, 0.7], 2).tolist() == [1, 0]
    law = TopKMatch().rank_law({"draft_rank": np.array([3, 1])}, 3)
    assert law.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert TopKMatch().rank_pmf_given(p, q, np.array([2, 0]), 3).tolist() == law.tolist()


# R8: R5 and R4 at equal k


@settings(theorem, max_examples=80)
@given(pairs(max_tokens=5))
def test_kseq_lies_between_a_share_of_r4_and_r4(pair: tuple[Floats, Floats]) -> None:
    """At masses of any size, where rho has to be found: at least 1 - (1-1/k)^k of R4."""
    p, q = pair
    for k in (1, 3):
        most = optimum(p.tolist(), q.tolist(), k)
        assert (1 - (1 - 1 / k) ** k) * most - SORTED <= KSeq().acceptance(p, q, k) <= most + SORTED
