"""R1, R3, R5-R8: the rules with several candidates at the ends of floats, by simulation, in batches and texts."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import islice, permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.typing import NDArray

from proofs_check.algorithms import enumeration, rank_laws
from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from proofs_check.statement.arithmetic import floats
from proofs_check.twins import oracle
from proofs_check.twins.list_transport import optimum
from spectheory.errors import PmfError, SettingError, ShapeError, TraceError
from spectheory.verification import (
    GumbelList,
    KSeq,
    PoissonRace,
    RaceVerification,
    RankRule,
    RecursiveRejection,
    Rule,
    TopKMatch,
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
RANK_RULES: list[RankRule] = [
    PoissonRace(),
    RaceVerification(),
    RecursiveRejection(),
    RecursiveRejection(replacement=False),
    TopKMatch(),
]
JUDGED_TOGETHER: list[KSeq | GumbelList] = [KSeq(), GumbelList()]
EVERY_RULE: list[Rule] = [*RANK_RULES, *JUDGED_TOGETHER]


def fractions(*weights: int) -> Pmf:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


ODD = [
    (fractions(7, 2, 1, 5), fractions(2, 3, 5, 1)),
    (fractions(1, 0, 6, 4), fractions(5, 3, 0, 1)),
    (fractions(1, 1, 1, 20), fractions(9, 8, 7, 3)),
]
# R3: recursive rejection


@pytest.mark.parametrize(("p", "q"), ODD, ids=str)
def test_distinct_candidates_of_four_tokens(p: Pmf, q: Pmf) -> None:
    """Rank law, law given each output and acceptance are those of the algorithm, three rejections deep."""
    rule, joint = RecursiveRejection(replacement=False), rank_laws.recursive_rejection(p, q, 4, replacement=False)
    exact = floats(rank_laws.rank_law(joint, 4))
    np.testing.assert_allclose(rule.rank_pmf(floats(p), floats(q), 4), exact, atol=ROUNDING)
    for k in range(1, 5):
        assert rule.acceptance(floats(p), floats(q), k) == pytest.approx(exact[:k].sum(), abs=ROUNDING)
    for x, share in enumerate(p):
        if share > 0:
            law = floats(joint.get((r, x), Fraction(0)) / share for r in range(1, 5))
            np.testing.assert_allclose(rule.rank_pmf_given(floats(p), floats(q), x, 4), law, atol=ROUNDING)


@pytest.mark.parametrize("name", sorted(set(PAIRS) - {"large"}))
def test_recursive_rejection_keeps_small_masses(name: str) -> None:
    """Each rank to a relative 1e-12 where it is above the rounding of what it comes from: at fifty digits."""
    p, q = PAIRS[name]
    left, mass, exact = oracle.exactly(p), oracle.MP.mpf(1), []
    for _ in range(5):
        taken = [mass * b for b in oracle.exactly(q)]
        exact.append(float(oracle.MP.fsum(min(a, b) for a, b in zip(left, taken, strict=True))))
        left = [max(a - b, 0) for a, b in zip(left, taken, strict=True)]
        mass = oracle.MP.fsum(left)
    law = RecursiveRejection().rank_pmf(p, q, 5)
    # The mass of rank r + 1 is rounded by 1e-16 of what was left to rank r, entry by entry.
    before = np.maximum(1 - np.concatenate([[0], np.cumsum(exact)[:-1]]), np.array(exact))
    np.testing.assert_allclose(law, exact, rtol=RELATIVE, atol=1e-16 * float(np.min(before)))


def test_taking_off_p_anew_loses_the_digits() -> None:
    """Negative control: (p - s q)+ from p itself misses P(R = 3) of nearly equal pmfs by more than carrying it does."""
    p, q = PAIRS["nearly equal"]
    s, mass = 0.0, 1.0
    anew = []
    for _ in range(3):
        anew.append(float(np.minimum(np.maximum(p - s * q, 0), mass * q).sum()))
        s += mass
        mass = float(np.maximum(p - s * q, 0).sum())
    law = RecursiveRejection().rank_pmf(p, q, 3)
    assert abs(anew[2] / law[2] - 1) > 100 * RELATIVE


def test_the_order_of_rejections_matters() -> None:
    """Sequoia's residual after rejecting 0 and 1 is another than after 1 and 0: sums over sets would be wrong."""
    p, q = fractions(1, 1, 8, 10), fractions(8, 6, 3, 3)
    residuals = {}
    for first, second in permutations((0, 1)):
        left, draft = enumeration.normalised(enumeration.positive_part(p, q)), list(q)
        draft[first] = Fraction(0)
        left = enumeration.normalised(enumeration.positive_part(left, enumeration.normalised(tuple(draft))))
        residuals[first, second] = left
    assert residuals[0, 1] != residuals[1, 0]


def test_distinct_candidates_end_with_the_vocabulary() -> None:
    """R <= V for sure, also where the draft is exhausted at once; ranks beyond V have probability 0."""
    rng = np.random.default_rng(5)
    rule = RecursiveRejection(replacement=False)
    for tokens in range(1, 7):
        p, q = rng.dirichlet(np.full(tokens, 0.5), 2)
        law = rule.rank_pmf(p, q, tokens + 1)
        assert law[:tokens].sum() == pytest.approx(1, abs=ROUNDING)
        assert law[tokens] <= ROUNDING
    np.testing.assert_allclose(rule.rank_pmf([0.0, 0.25, 0.75], [1.0, 0.0, 0.0], 3), [0, 0.75, 0.25], atol=ROUNDING)


def test_the_estimate_is_unbiased() -> None:
    """Mean of 40,000 trials within 5.5 standard errors (rank 1 exact); wrong by 1% of P(R > 1) would be seen."""
    rng = np.random.default_rng(6)
    p, q = rng.dirichlet(np.full(6, 0.7), 2)
    exact = RecursiveRejection(replacement=False).rank_pmf(p, q, 6)
    rule = RecursiveRejection(replacement=False)
    mean, error = rule.rank_pmf_estimate(p, q, 6, 40_000, rng=np.random.default_rng(1))
    assert np.all(np.abs(mean - exact) <= FALSE_ALARM * error + ROUNDING)
    assert mean[0] == pytest.approx(exact[0], abs=ROUNDING)
    assert np.all(error < 0.01 * (1 - exact[0]))
    # Negative control: the law of i.i.d. candidates.
    wrong = RecursiveRejection().rank_pmf(p, q, 6)
    assert np.any(np.abs(mean - wrong) > 2 * FALSE_ALARM * error + ROUNDING)


def test_the_estimate_takes_batches_of_any_library() -> None:
    rule = RecursiveRejection(replacement=False)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    batch = rule.rank_pmf_estimate(np.stack([p, q]), q, 3, 50, rng=np.random.default_rng(1))
    assert batch[0].shape == batch[1].shape == (2, 3)
    np.testing.assert_allclose(batch[0][1], [1, 0, 0], atol=ROUNDING)
    same = [np.random.default_rng(2), np.random.default_rng(2)]
    alone = rule.rank_pmf_estimate(p, q, 3, 50, rng=same[0])
    other = rule.rank_pmf_estimate(torch.tensor(p), torch.tensor(q), 3, 50, rng=same[1])
    np.testing.assert_allclose(other[0].numpy(), alone[0], rtol=RELATIVE)


def test_long_enumerations_name_the_estimate() -> None:
    p = np.full(300, 1 / 300)
    with pytest.raises(SettingError, match=r"300 tokens and rank 3 have 300\^2 orders.*use rank_pmf_estimate"):
        RecursiveRejection(replacement=False).rank_pmf(p, p, 3)
    with pytest.raises(SettingError, match="use rank_pmf_estimate"):
        RecursiveRejection(replacement=False).rank_pmf(p, p, 10**9)
    assert RecursiveRejection(replacement=False).rank_pmf(p, p, 1)[0] == pytest.approx(1)
    with pytest.raises(SettingError, match="rank_pmf is exact"):
        RecursiveRejection().rank_pmf_estimate(p, p, 3, 10, rng=np.random.default_rng(1))
    with pytest.raises(SettingError, match="trials is 1"):
        RecursiveRejection(replacement=False).rank_pmf_estimate(p, p, 3, 1, rng=np.random.default_rng(1))


def test_mean_ranks_in_batches() -> None:
    """In the library of the arrays; distinct candidates have no closed form."""
    batch = RecursiveRejection().expected_rank(torch.full((2, 2), 0.5), torch.tensor([0.25, 0.75]))
    assert batch.tolist() == [2, 2]
    with pytest.raises(SettingError, match="no closed form"):
        RecursiveRejection(replacement=False).expected_rank([1.0], [1.0])


def test_a_large_vocabulary_is_enumerated_in_blocks() -> None:
    """Rank 2 at V = 1500, several blocks, against its O(V^2) definition."""
    rng = np.random.default_rng(7)
    p, q = rng.dirichlet(np.full(1500, 0.3), 2)
    left = np.maximum(p - q, 0)
    left /= left.sum()
    second = sum(
        (q[x] - p[x]) * np.minimum(left, q / (1 - q[x]))[np.arange(1500) != x].sum() for x in np.nonzero(q > p)[0]
    )
    assert RecursiveRejection(replacement=False).rank_pmf(p, q, 2)[1] == pytest.approx(second, rel=RELATIVE)


def test_names_and_traces_of_recursive_rejection() -> None:
    """One rank is token verification, more are read from the trace, each kind from a column of its own."""
    iid, distinct = RecursiveRejection(), RecursiveRejection(replacement=False)
    assert (iid.name, distinct.name) == ("recursive", "recursive-distinct")
    assert iid == RecursiveRejection(True)
    assert iid != distinct
    columns = {"log_target": np.log([0.5, 0.25]), "log_draft": np.log([0.25, 0.5])}
    for rule in (iid, distinct):
        np.testing.assert_allclose(rule.rank_law(columns, 1), [[0.5], [1.0]], rtol=RELATIVE)
    with pytest.raises(TraceError, match="no rejection_rank"):
        iid.rank_law(columns, 2)
    with pytest.raises(TraceError, match="no distinct_rank"):
        distinct.rank_law({**columns, "rejection_rank": np.ones((2, 2)) / 2}, 2)
    recorded: NDArray[np.float64] = np.array([[0.5, 0.2], [1.0, 0.0]])
    np.testing.assert_array_equal(iid.rank_law({**columns, "rejection_rank": recorded}, 2), recorded)
    with pytest.raises(SettingError, match="ranks up to 2"):
        iid.rank_law({**columns, "rejection_rank": recorded}, 3)
    np.testing.assert_array_equal(distinct.rank_law({**columns, "distinct_rank": recorded}, 2), recorded)
    assert (iid.estimated, distinct.estimated) == (False, True)
    assert [rule.known_ranks({"distinct_rank": recorded}, 8) for rule in (iid, distinct)] == [8, 2]
    assert TopKMatch().known_ranks({"draft_rank": np.array([1, 3])}, 8) == 8


# R1: the Poisson race


def simulated_race(p: Floats, q: Floats, candidates: int, runs: int, seed: int) -> NDArray[np.int64]:
    """Rank of the output in `runs` Poisson races, each cut after so many candidates (then no better one is left)."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(size=(runs, candidates)), axis=1)
    drawn = rng.choice(len(q), size=(runs, candidates), p=q)
    cost = times * (q / p)[drawn]
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


@pytest.mark.parametrize("drawn", [1e-3, 1e-6, 1e-9, 1e-12])
def test_gumbel_lists_over_all_scales(drawn: float) -> None:
    """What the other races add at large g is small and lives at small times; it is there to the last digits."""
    p, q = np.array([0.5, 0.5]), np.array([drawn, 1 - drawn])
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
    own = drafts[np.arange(runs), races] == outputs
    return float((drafts == outputs[:, None]).any(axis=1).mean()), float(own.mean())


@pytest.mark.parametrize("k", [2, 4])
def test_gumbel_lists_simulated(k: int) -> None:
    """400,000 runs: both probabilities within 5.5 standard errors; the bound as a wrong acceptance is rejected."""
    p, q, runs = np.array([0.45, 0.05, 0.3, 0.2]), np.array([0.1, 0.3, 0.15, 0.45]), 400_000
    listed, own = simulated_lists(p, q, k, runs, seed=k)
    exact, bound = float(GumbelList().acceptance(p, q, k)), float(GumbelList().acceptance_bound(p, q, k))
    error = 0.5 / math.sqrt(runs)
    assert abs(listed - exact) <= FALSE_ALARM * error
    assert abs(own - bound) <= FALSE_ALARM * error
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


# Every rule


@pytest.mark.parametrize("rule", RANK_RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    "name", ["random", "peaked", "tiny entries", "draft lacks a token", "zeros in both", "one token"]
)
def test_the_laws_of_a_rule_agree(rule: RankRule, name: str) -> None:
    """Rank law = mean of the laws given the output; acceptance = its sum; one draft = the law at rank 1."""
    p, q = (pmf[:30] / pmf[:30].sum() for pmf in PAIRS[name])
    tokens = np.arange(len(p))
    law, given_output = rule.rank_pmf(p, q, 3), rule.rank_pmf_given(p, q, tokens, 3)
    assert given_output.shape == (len(p), 3)
    alive = p > 0
    np.testing.assert_allclose(law, p[alive] @ given_output[alive], atol=SORTED)
    for k in (1, 2, 3):
        assert rule.acceptance(p, q, k) == pytest.approx(float(law[:k].sum()), abs=SORTED)
    np.testing.assert_allclose(given_output[alive, 0], rule.acceptance_given(p, q)[alive], atol=SORTED)


def calls(rule: Rule) -> list[Callable[[Any, Any], Any]]:
    """Every function of two pmfs a rule has."""
    if isinstance(rule, KSeq | GumbelList):
        third: Callable[[Any, Any], Any] = rule.acceptance_bound if isinstance(rule, GumbelList) else rule.rank_pmf
        return [
            lambda p, q: rule.acceptance(p, q, 3),
            lambda p, q: rule.acceptance_given(p, q, 3),
            lambda p, q: third(p, q, 3),
        ]
    assert isinstance(rule, RankRule)
    return [
        lambda p, q: rule.acceptance(p, q, 3),
        rule.acceptance_given,
        lambda p, q: rule.rank_pmf(p, q, 3),
        lambda p, q: rule.rank_pmf_given(p, q, 1, 3),
    ]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
@pytest.mark.parametrize("name", ["random", "tiny entries", "draft lacks a token", "equal", "disjoint"])
def test_arrays_of_three_libraries_and_batches(rule: Rule, name: str) -> None:
    strict = pytest.importorskip("array_api_strict")
    p, q = (pmf[:20] / pmf[:20].sum() for pmf in PAIRS[name])
    for call in calls(rule):
        alone = call(p, q)
        value = call(torch.from_numpy(p), torch.from_numpy(q))
        assert isinstance(value, torch.Tensor)
        assert value.dtype == torch.float64
        np.testing.assert_allclose(value.numpy(), alone, rtol=RELATIVE, atol=ROUNDING)
        np.testing.assert_allclose(
            np.asarray(call(strict.asarray(p), strict.asarray(q))), alone, rtol=RELATIVE, atol=ROUNDING
        )
        batch = call(np.stack([p, q])[:, None], np.stack([q, p, q]))
        assert batch.shape == (2, 3, *np.shape(alone))
        np.testing.assert_allclose(batch[0, 0], alone, rtol=RELATIVE, atol=ROUNDING)
        np.testing.assert_allclose(batch[1, 1], call(q, p), rtol=RELATIVE, atol=ROUNDING)


BAD: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda rule: rule.acceptance([0.5, 0.6], [0.5, 0.5], 2), PmfError, "target sums to 1.1"),
    (lambda rule: rule.acceptance_given([0.5, 0.5], [0.5, math.nan]), PmfError, "draft[1] is nan"),
    (lambda rule: rule.acceptance([1.0], [0.5, 0.5], 2), ShapeError, "one vocabulary"),
    (lambda rule: rule.acceptance([1.0], [1.0], 0), SettingError, " is 0: must be >= 1"),
    (lambda rule: rule.acceptance([1.0], [1.0], 1.5), SettingError, " is 1.5: must be a whole number"),
]
BAD_RANKS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda rule: rule.rank_pmf([1.0], [0.5, 0.5], 2), ShapeError, "one vocabulary"),
    (lambda rule: rule.rank_pmf([1.0], [1.0], 0), SettingError, "max_rank is 0: must be >= 1"),
    (lambda rule: rule.rank_pmf_given([1.0], [1.0], 0, 0), SettingError, "max_rank is 0: must be >= 1"),
    (lambda rule: rule.rank_pmf_given([1.0], [1.0], 1, 2), ShapeError, "token is 1: ids are 0..0"),
    (lambda rule: rule.rank_pmf_given([1.0], [1.0], -1, 2), ShapeError, "token is -1: ids are 0..0"),
]
REFUSALS = [(rule, *bad) for rule in EVERY_RULE for bad in BAD]
REFUSALS += [(rule, *bad) for rule in RANK_RULES for bad in BAD_RANKS]


@pytest.mark.parametrize(("rule", "call", "error", "fragment"), REFUSALS, ids=lambda value: getattr(value, "name", ""))
def test_bad_input_is_named_in_one_line(
    rule: Rule, call: Callable[[Rule], Any], error: type[Exception], fragment: str
) -> None:
    with pytest.raises(error) as caught:
        call(rule)
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)


def test_iid_ranks_have_no_end() -> None:
    """The recursion goes on after nothing is left."""
    from spectheory.verification.recursive import iid_ranks

    shares = [float(np.sum(joint)) for joint in islice(iid_ranks(np.array([1.0]), np.array([1.0]), np), 3)]
    assert shares == [1, 0, 0]


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-15])
def test_rare_outputs_keep_the_law_of_their_rank(rare: float) -> None:
    """A token that only the second candidate can be: the law given it is certain, however rare it is."""
    law = RecursiveRejection(replacement=False).rank_pmf_given([1 - rare, rare], [1.0, 0.0], 1, 2)
    np.testing.assert_allclose(law, [0.0, 1.0], rtol=ROUNDING)


def test_the_mean_rank_of_a_token_that_neither_has() -> None:
    """No warning: zero times infinity is left out, not computed."""
    assert float(RaceVerification().expected_rank([0.0, 1.0], [0.0, 1.0])) == 1.0
