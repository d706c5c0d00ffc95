"""The entropy of R: certain intervals against sums at fifty digits, KL <= H(R|X) <= H(R), and what is false."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import example, given, settings

from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from proofs_check.twins import oracle
from spectheory import entropy, kl_divergence
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.verification import (
    GumbelList,
    IndependentMatch,
    KSeq,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    Rule,
    TopKMatch,
    entropy_at_least_kl,
    expected_log_rank,
    poisson_rank_entropy,
    poisson_rank_entropy_given,
    poisson_rank_log_bound,
    rank_entropy,
    rank_entropy_bound,
    recursive_rank_entropies,
)
from spectheory.verification.rank_entropy import _GeometricMixture as GeometricMixture
from spectheory.verification.rank_entropy import _mean_offset as mean_offset

RELATIVE = 1e-12
"""Sums of up to 2000 terms, each rounded a few times by 1e-16."""
ROUNDING = 1e-11
"""What "certain up to rounding" leaves: a million blocks and a sum of p log p."""

MP = oracle.MP
MANY_PIECES = ([7 / 15, 2 / 15, 1 / 15, 5 / 15], [2 / 11, 3 / 11, 5 / 11, 1 / 11])
"""Ratios that are passed at ranks 1, 1 and 7, and one that never is."""
PAIRS = extreme_pairs()
FINITE = sorted(name for name, (p, q) in PAIRS.items() if not np.any((p > 0) & (q == 0)))


def contains(interval: Interval, value: Any) -> bool:
    """Whether a number is in the interval, up to rounding."""
    return interval.low - ROUNDING <= float(value) <= interval.high + ROUNDING


def odds(p: Floats, q: Floats) -> list[tuple[Any, Any]]:
    """(p_x, g_x) at fifty digits, by the definition of g."""
    exact = list(zip(oracle.exactly(p), oracle.exactly(q), strict=True))
    return [(x, MP.fsum(max(b * x / y - a, 0) for a, b in exact)) for x, y in exact if x > 0]


def mixture(p: Floats, q: Floats, ranks: int) -> list[Any]:
    """P(R = r) of the Poisson race, r = 1..ranks, at fifty digits."""
    law = [MP.mpf(0)] * ranks
    for x, g in odds(p, q):
        share = x / (1 + g)
        for r in range(ranks):
            law[r] += share
            share *= g / (1 + g)
    return law


# The entropy of a rank that is cut


def test_the_cut_rank_has_one_more_letter() -> None:
    """Ranks beyond the cut are lumped: the entropy of the lumped pmf, and it grows with the cut."""
    law = np.array([0.5, 0.2, 0.15])
    assert rank_entropy(law) == pytest.approx(float(entropy([0.5, 0.2, 0.15, 0.15])), rel=RELATIVE)
    assert rank_entropy(law[:2]) < rank_entropy(law)
    assert rank_entropy([1.0]) == 0
    assert rank_entropy([0.0, 0.0]) == 0
    for p, q in (PAIRS["random"], PAIRS["draft lacks a token"]):
        grown = [float(rank_entropy(PoissonRace().rank_pmf(p, q, k))) for k in (1, 2, 4, 8, 16)]
        assert grown == sorted(grown)


# R1: certain intervals of the whole rank


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9])
def test_poisson_entropies_are_their_sums(tolerance: float) -> None:
    """H(R) and E log R lie in intervals no wider than asked; sums at fifty digits, the tails below 1e-15."""
    rng = np.random.default_rng(3)
    for p, q in [rng.dirichlet(np.ones(5), 2) for _ in range(3)] + [([0.5, 0.5], [0.25, 0.75])]:
        heaviest = max(g for _, g in odds(p, q))
        law = mixture(p, q, int(50 * (1 + heaviest)))
        exact = {
            poisson_rank_entropy: -MP.fsum(share * MP.log(share) for share in law if share > 0),
            expected_log_rank: MP.fsum(share * MP.log(r) for r, share in enumerate(law, 1)),
        }
        for function, value in exact.items():
            interval = function(p, q, tolerance=tolerance)
            assert contains(interval, value)
            assert interval.high - interval.low <= tolerance
            assert abs(interval.best - float(value)) <= tolerance / 4 + ROUNDING


@pytest.mark.parametrize("mass", [0.5, 1e-2, 1e-12, 1e-100, 1e-300])
def test_heavy_tails(mass: float) -> None:
    """A target of one token of draft mass q: R is geometric, H(R) = H(R|X), E log R -> log(1/q) - Euler's constant."""
    p, q = np.array([1.0, 0.0]), np.array([mass, 1 - mass])
    exact = (-MP.log(MP.mpf(mass)) * mass - (1 - MP.mpf(mass)) * MP.log1p(-MP.mpf(mass))) / mass
    assert contains(poisson_rank_entropy(p, q), exact)
    assert poisson_rank_entropy_given(p, q) == pytest.approx(float(exact), rel=RELATIVE)
    mean = expected_log_rank(p, q)
    if mass <= 1e-12:
        assert mean.low - 1e-9 <= -math.log(mass) - float(MP.euler) <= mean.high + 1e-9
    else:
        law = [mass * (1 - MP.mpf(mass)) ** r for r in range(6_000)] if mass < 0.1 else mixture(p, q, 400)
        assert contains(mean, MP.fsum(share * MP.log(r) for r, share in enumerate(law, 1)))


@pytest.mark.parametrize("name", FINITE)
def test_entropy_given_the_output_at_fifty_digits(name: str) -> None:
    """Sum p [log(1+g) + g log(1+1/g)]; absolute, as g is a difference of two prefix sums."""
    p, q = (pmf[:60] / pmf[:60].sum() for pmf in PAIRS[name])
    exact = MP.fsum(x * (MP.log1p(g) + (g * MP.log1p(1 / g) if g > 0 else 0)) for x, g in odds(p, q))
    assert poisson_rank_entropy_given(p, q) == pytest.approx(float(exact), rel=RELATIVE, abs=1e-13)


@pytest.mark.parametrize("name", FINITE)
def test_the_log_bound_at_fifty_digits(name: str) -> None:
    """Sum p log(1 + p/q), ratios beyond the floats included."""
    p, q = PAIRS[name]
    both = zip(oracle.exactly(p), oracle.exactly(q), strict=True)
    exact = MP.fsum(x * MP.log1p(x / y) for x, y in both if x > 0)
    assert poisson_rank_log_bound(p, q) == pytest.approx(float(exact), rel=RELATIVE)
    assert poisson_rank_log_bound([0.5, 0.5], [3e-310, 1.0]) == pytest.approx(0.5 * (713.5 + 0.405), rel=1e-2)


@settings(theorem, max_examples=60)
@given(pairs(max_tokens=5))
@example((np.array([0.0, math.exp(-1), 1.0]) / (1 + math.exp(-1)), np.array([1e-9, 1.0, 1e-300]) / (1 + 1e-9)))
def test_the_chain_of_channel_simulation(pair: tuple[Floats, Floats]) -> None:
    """KL <= H(R|X) <= H(R) <= E + log(E+1) + 1 in nats and in bits, E = E log R <= sum p log(1 + p/q) <= KL + log 2."""
    p, q = pair
    kl = float(kl_divergence(p, q))
    if math.isinf(kl):
        assert expected_log_rank(p, q).low == math.inf == poisson_rank_log_bound(p, q)
        return
    info, mean = entropy_at_least_kl(PoissonRace(), p, q, tolerance=1e-3), expected_log_rank(p, q, tolerance=1e-3)
    bound = float(poisson_rank_log_bound(p, q))
    assert info.kl <= info.conditional.high + ROUNDING
    assert info.conditional.low <= info.entropy.high + ROUNDING
    assert mean.low <= bound + ROUNDING
    assert bound <= kl + math.log(2) + ROUNDING
    bits = math.log(2)
    assert info.entropy.low <= rank_entropy_bound(mean.high) + ROUNDING
    assert info.entropy.low / bits <= rank_entropy_bound(mean.high / bits, unit="bits") + ROUNDING


def test_the_bound_of_no_mean_is_refused() -> None:
    for value, unit in ((-1.0, "nats"), (math.nan, "bits"), (1.0, "hartleys")):
        with pytest.raises(SettingError):
            rank_entropy_bound(value, unit)  # type: ignore[arg-type]


# R3 with i.i.d. candidates


def test_recursive_entropies_are_their_sums() -> None:
    """Both entropies from 600 ranks of the law and of the laws given the output; the tails are below 1e-20."""
    p, q = MANY_PIECES
    law = RecursiveRejection().rank_pmf(p, q, 600)
    laws = [(x, RecursiveRejection().rank_pmf_given(p, q, i, 600)) for i, x in enumerate(p) if x > 0]
    conditional, whole = recursive_rank_entropies(p, q)
    assert whole == pytest.approx(float(rank_entropy(law)), abs=ROUNDING)
    assert conditional == pytest.approx(sum(x * float(rank_entropy(given_x)) for x, given_x in laws), abs=ROUNDING)


@settings(theorem, max_examples=60)
@given(pairs(max_tokens=5))
@example((np.array([math.exp(-21), 1.0]) / (1 + math.exp(-21)), np.array([1e-300, 1e-18]) / (1e-300 + 1e-18)))
def test_recursive_entropies_whatever_the_tail(pair: tuple[Floats, Floats]) -> None:
    """Pieces of ranks against single ranks: 3000 of them and certain ends for what is left; the chain; E[R].

    After m ranks a mass G is left and E[R - m] in it is (max p/q - s)/G, so its entropy is at most the geometric one's.
    """
    p, q = pair
    if np.any((p > 0) & (q == 0)):
        return
    most = float(RecursiveRejection().expected_rank(p, q))
    assert most == np.max(p[p > 0] / q[p > 0])
    conditional, whole = recursive_rank_entropies(p, q)
    assert float(kl_divergence(p, q)) <= conditional + ROUNDING
    assert conditional <= whole + ROUNDING
    law = RecursiveRejection().rank_pmf(p, q, 3000)
    left = float(max(1 - law.sum(), 0.0))
    taken = float(np.maximum(1 - np.concatenate([[0.0], np.cumsum(law)[:-1]]), 0).sum())
    assert taken <= most * (1 + RELATIVE) + ROUNDING
    if most < 100:  # at least a hundredth of what is left goes at every rank
        assert taken == pytest.approx(most, rel=1e-6)
        assert whole == pytest.approx(float(rank_entropy(law)), abs=1e-6)
    left += ROUNDING  # a mass that rounding hides may have a large mean; the bound grows with the mass
    odds_left = max((most - taken) / left - 1, 0.0)
    rest = math.log1p(odds_left) + (odds_left * math.log1p(1 / odds_left) if odds_left > 0 else 0)
    lumped = float(rank_entropy(law))
    assert lumped - ROUNDING <= whole <= lumped + left * rest * (1 + 1e-9) + ROUNDING


@pytest.mark.parametrize("mass", [0.5, 1e-5, 1e-300])
def test_heavy_recursive_tails(mass: float) -> None:
    """One token of draft mass q is output at a geometric rank, whatever q."""
    exact = float((-MP.log(MP.mpf(mass)) * mass - (1 - MP.mpf(mass)) * MP.log1p(-MP.mpf(mass))) / mass)
    for value in recursive_rank_entropies([1.0, 0.0], [mass, 1 - mass]):
        assert value == pytest.approx(exact, rel=RELATIVE)


# What is false


def test_a_cut_rank_of_recursive_rejection_may_have_less_entropy_than_kl() -> None:
    """One candidate of p = (.999, .001), q = (.01, .99) is accepted with probability .011: .06 against 4.59."""
    p, q = [0.999, 0.001], [0.01, 0.99]
    cut = rank_entropy(RecursiveRejection().rank_pmf(p, q, 1))
    assert cut == pytest.approx(-0.011 * math.log(0.011) - 0.989 * math.log(0.989), abs=ROUNDING)
    assert cut < 0.07 < 4.5 < kl_divergence(p, q) < entropy_at_least_kl(RecursiveRejection(), p, q).entropy.low


def test_top_k_ranks_name_the_output() -> None:
    """R7: H(R) = H(p), whatever KL is."""
    p, q = PAIRS["peaked"]
    assert rank_entropy(TopKMatch().rank_pmf(p, q, len(p))) == pytest.approx(float(entropy(p)), abs=ROUNDING)
    assert entropy(p) < kl_divergence(p, q)


REFUSED: list[tuple[Rule, str]] = [
    (RaceVerification(), "candidates are distinct"),
    (RecursiveRejection(replacement=False), "candidates are distinct"),
    (TopKMatch(), "candidates are distinct"),
    (KSeq(), "cut at k candidates"),
    (GumbelList(), "cut at k candidates"),
    (IndependentMatch(), "not known to have i.i.d. candidates"),
]


@pytest.mark.parametrize(("rule", "why"), REFUSED, ids=lambda value: getattr(value, "name", ""))
def test_the_false_form_cannot_be_asked_for(rule: Rule, why: str) -> None:
    with pytest.raises(SettingError, match=why) as caught:
        entropy_at_least_kl(rule, [0.5, 0.5], [0.25, 0.75])
    assert repr(rule.name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_infinite_ranks_have_infinite_closed_forms() -> None:
    assert expected_log_rank([0.5, 0.5], [1.0, 0.0]) == Interval.exact(math.inf)
    assert poisson_rank_entropy_given([0.5, 0.5], [1.0, 0.0]) == math.inf


def test_moments_of_a_block_of_ranks() -> None:
    """Mass and mean of R - start, of blocks and of all ranks from one on, against sums at thirty digits."""
    mixture = GeometricMixture(np.array([0.2, 0.5, 0.3]), np.array([0.0, 0.4, 150.0]))
    starts, lengths = np.array([1.0, 3.0, 7.0, 4.0]), np.array([2.0, 1.0, 5.0, np.inf])
    mass, offset = mixture._moments(starts, lengths)
    with mpmath.workdps(30):
        for number, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            pmf = partial(_exact_pmf, mixture)
            ranks = [start, mpmath.inf if math.isinf(length) else start + length - 1]
            total = mpmath.nsum(pmf, ranks)
            mean = mpmath.nsum(lambda r, start=start, pmf=pmf: (r - start) * pmf(r), ranks) / total
            assert float(mass[number]) == pytest.approx(float(total), rel=RELATIVE)
            assert float(offset[number]) == pytest.approx(float(mean), rel=RELATIVE, abs=RELATIVE)


def _exact_pmf(mixture: GeometricMixture, rank: Any) -> Any:
    weights = zip(map(mpmath.mpf, mixture.weights.tolist()), map(mpmath.mpf, mixture.odds.tolist()), strict=True)
    return sum((p * g ** (rank - 1) / (1 + g) ** rank for p, g in weights), mpmath.mpf(0))


def test_the_mean_of_a_geometric_law_that_ends() -> None:
    """Rates on both sides of the series' end, against sums at thirty digits."""
    rates, lengths = np.array([1e-9, 0.003, 0.0099, 0.0199, 0.0201, 3.0]), np.array([5.0, 6.0, 2.0, 2.0, 9.0, 4.0])
    with mpmath.workdps(30):
        for rate, length, mean in zip(rates, lengths, mean_offset(rates, lengths), strict=True):
            weights = [mpmath.exp(-mpmath.mpf(float(rate)) * j) for j in range(int(length))]
            exact = sum(j * weight for j, weight in enumerate(weights)) / sum(weights)
            assert float(mean) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("what", ["log rank", "surprisal"])
def test_an_interval_that_is_asked_wide_holds_the_mean(what: Literal["log rank", "surprisal"]) -> None:
    """Where an output may be certain to be first, a long first block holds it beside others."""
    for weights, odds in (([0.9, 0.1], [0.0, 0.4]), ([0.5, 0.5], [0.0, 1e9]), ([0.2, 0.3, 0.5], [0.0, 3.0, 1e3])):
        mixture = GeometricMixture(np.array(weights), np.array(odds))
        narrow = mixture.mean_of(what, 1e-9)
        for tolerance in (1e-3, 0.07, 0.25, 1.0):
            wide = mixture.mean_of(what, tolerance)
            assert wide.low <= narrow.high + ROUNDING
            assert narrow.low <= wide.high + ROUNDING
