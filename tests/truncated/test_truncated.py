"""§9: no completion of the unseen tails leaves an interval, the tight ends are attained, a wrong cap is found out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import chain, combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import spectheory
from proofs_check.agreement.truncated_cases import corners, small_pairs, spread, vertices
from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from spectheory import truncated
from spectheory.errors import PmfError, SettingError, ShapeError, SpectheoryError
from spectheory.intervals import Interval
from spectheory.limits import branching_bound
from spectheory.truncated import TopLogProbs
from spectheory.truncated.completions import best_completion
from spectheory.verification import (
    ArgmaxDraft,
    GreedyMatch,
    IndependentMatch,
    PoissonRace,
    RaceVerification,
    TokenVerification,
    TopKMatch,
)

ROUNDING = 1e-12
"""Sums of a few terms of order one, and the ends widened by 16 units in the last place per term."""

STEEP = 1e-8
"""Ends with logarithms, squares and quotients move by up to 1e5 times the rounding of a mass of :data:`SIZEABLE`."""

SIZEABLE = 1e-2
"""A mass lost in rounding may be 0 or 1e-15, and logarithms and quotients tell the two apart: this one is neither."""

SOLVER = 1e-7
"""Tolerance of the linear programs' solver (HiGHS) on values and constraints."""

EDGE = 4e-15
"""Rounding of a definition's own sum, which shows where an end is cut to the possible range."""

Pair = tuple[TopLogProbs, TopLogProbs]
Slow = Callable[[Floats, Floats], float]

WEIGHTS = (0.05, 0.4, 1.0, 1.7, 6.0)
"""Values of c at which hockey sticks are compared."""


# Quantities by their definitions, on full pmfs


def slow_hockey(p: Floats, q: Floats, c: float) -> float:
    return float(sum(max(0.0, c * b - a) for a, b in zip(p, q, strict=True)))


def slow_kl(p: Floats, q: Floats) -> float:
    terms = (a * (math.log(a) - math.log(b)) if b > 0 else math.inf for a, b in zip(p, q, strict=True) if a > 0)
    return sum(terms)


def slow_renyi(p: Floats, q: Floats, order: float) -> float:
    if order > 1 and np.any((p > 0) & (q == 0)):
        return math.inf
    both = (p > 0) & (q > 0)
    exponents = order * np.log(p[both]) + (1 - order) * np.log(q[both])
    return float(np.logaddexp.reduce(exponents)) / (order - 1) if both.any() else math.inf


def slow_chi_square(p: Floats, q: Floats) -> float:
    if np.any((p > 0) & (q == 0)):
        return math.inf
    with np.errstate(over="ignore"):
        return float(sum((a - b) * ((a - b) / b) for a, b in zip(p, q, strict=True) if b > 0))


def slow_harmonic(p: Floats, q: Floats) -> float:
    return float(sum(2 * a * (b / (a + b)) for a, b in zip(p, q, strict=True) if a + b > 0))


def slow_rank(p: Floats, q: Floats, k: int) -> float:
    """P(R <= k) of the Poisson race; k = 1 is the exponential race."""
    total = 0.0
    for a, b in zip(p, q, strict=True):
        if a > 0 and b > 0:
            total += a * (1 - (1 - 1 / (1 + slow_hockey(p, q, a / b))) ** k)
    return total


def slow_optimal(p: Floats, q: Floats, k: int) -> float:
    """Every set of tokens (R4)."""
    tokens = range(len(p))
    sets = chain.from_iterable(combinations(tokens, size) for size in range(len(p) + 1))
    return 1 + min(float(p[list(chosen)].sum() - q[list(chosen)].sum() ** k) for chosen in sets)


def slow_entropy(p: Floats, power: int = 1) -> float:
    return float(sum(a * abs(math.log(a)) ** power for a in p if a > 0))


MONOTONE: dict[str, tuple[Callable[[TopLogProbs, TopLogProbs], Interval], Slow]] = {
    "total variation": (truncated.total_variation, lambda p, q: float(np.abs(p - q).sum() / 2)),
    "token": (partial(truncated.acceptance, TokenVerification()), lambda p, q: float(np.minimum(p, q).sum())),
    "similarity": (truncated.harmonic_mean_similarity, slow_harmonic),
    "distance": (truncated.harmonic_mean_distance, lambda p, q: 1 - slow_harmonic(p, q)),
    "race": (partial(truncated.acceptance, RaceVerification()), lambda p, q: slow_rank(p, q, 1)),
    "poisson": (lambda t, d: truncated.acceptance(PoissonRace(), t, d, 3), lambda p, q: slow_rank(p, q, 3)),
    "optimal 1": (lambda t, d: truncated.optimal_acceptance(t, d, 1), lambda p, q: slow_optimal(p, q, 1)),
    "optimal 3": (lambda t, d: truncated.optimal_acceptance(t, d, 3), lambda p, q: slow_optimal(p, q, 3)),
    "renyi 1/2": (lambda t, d: truncated.renyi_divergence(t, d, 0.5), lambda p, q: slow_renyi(p, q, 0.5)),
    **{
        f"g({c})": (lambda t, d, c=c: truncated.hockey_stick(t, d, c), lambda p, q, c=c: slow_hockey(p, q, c))
        for c in WEIGHTS
    },
}
"""Quantities whose ends are the best completion and the disjoint tails."""

UNBOUNDED: dict[str, tuple[Callable[[TopLogProbs, TopLogProbs], Interval], Slow]] = {
    "kl": (truncated.kl_divergence, slow_kl),
    "renyi 2": (lambda t, d: truncated.renyi_divergence(t, d, 2.0), lambda p, q: slow_renyi(p, q, 2.0)),
    "renyi 1": (lambda t, d: truncated.renyi_divergence(t, d, 1.0), slow_kl),
    "chi square": (truncated.chi_square, slow_chi_square),
}

RISING = ("token", "similarity", "race", "poisson", "optimal 1", "optimal 3")
"""Of the monotone ones, those that are largest at the best completion."""

MATCHING: dict[str, tuple[Callable[[TopLogProbs, TopLogProbs], Interval], Slow]] = {
    "independent": (partial(truncated.acceptance, IndependentMatch()), lambda p, q: float(np.sum(p * q))),
}

ALL = MONOTONE | UNBOUNDED | MATCHING

BEYOND = ("poisson", "optimal 3", "renyi 1/2")
"""Numbers of candidates and an order that the ledger leaves out: it has two candidates and orders 1, 2 and infinity."""


# Completions


def anywhere(top: TopLogProbs, rng: np.random.Generator, count: int) -> list[Floats]:
    """Random mixtures of extreme points, from flat to one-sided."""
    ends = np.array(corners(top))
    shares = [rng.dirichlet(np.full(len(ends), 10.0 ** rng.uniform(-2, 1))) for _ in range(count)]
    return [share @ ends for share in shares]


SMALL = small_pairs(seed=1, count=60, most=6)
LACKS_ONE: Pair = (TopLogProbs([0, 1], [0.0, -math.inf], 5), TopLogProbs([0], [math.log(0.5)], 5))
ONE_OF_EACH: Pair = (TopLogProbs([0], [math.log(0.5)], 5), TopLogProbs([0], [math.log(0.5)], 6))


def holds(interval: Interval, value: float) -> bool:
    if interval.kind == "exact":
        return near(interval.best, value)
    edge = EDGE * max(1.0, value) if value < math.inf else 0.0
    return interval.low - edge <= value <= interval.high + edge


def near(a: float, b: float, tolerance: float = ROUNDING) -> bool:
    return a == b or abs(a - b) <= tolerance * max(1.0, abs(b))


def tails_can_avoid_each_other(target: TopLogProbs, draft: TopLogProbs) -> bool:
    needs = [math.ceil(top.unseen / top.cap - ROUNDING) if top.cap > 0 else 0 for top in (target, draft)]
    return sum(needs) <= target.vocabulary - len(np.union1d(target.known, draft.known))


# Certain


@pytest.mark.parametrize("name", BEYOND)
def test_no_completion_leaves_the_interval(name: str) -> None:
    """Extreme and random tails of 60 pairs, without any tolerance beyond the interval's own."""
    interval, slow = ALL[name]
    rng = np.random.default_rng(2)
    for target, draft in SMALL:
        within = interval(target, draft)
        some_p, some_q = corners(target), corners(draft)
        for _ in range(15):
            p, q = some_p[rng.integers(len(some_p))], some_q[rng.integers(len(some_q))]
            assert holds(within, slow(p, q)), (name, target, draft, p, q)
        for p, q in zip(anywhere(target, rng, 10), anywhere(draft, rng, 10), strict=True):
            assert holds(within, slow(p, q)), (name, target, draft, p, q)


@theorem
@given(pairs(), st.integers(1, 6), st.integers(1, 6), st.integers(0, 5))
def test_the_whole_pmfs_are_a_completion(pair: tuple[Floats, Floats], m: int, other: int, token: int) -> None:
    """Any two pmfs, 1e-300 and zeros among their entries, cut to lists of any length: the truth is inside."""
    p, q = pair
    m, other, token = min(m, len(p)), min(other, len(p)), min(token, len(p) - 1)
    if np.any((p > 0) & (p < 1e-290)) or np.any((q > 0) & (q < 1e-290)):
        p, q = (np.where(pmf < 1e-290, 0.0, pmf) for pmf in pair)
    target, draft = TopLogProbs.from_pmf(p, m, [token]), TopLogProbs.from_pmf(q, other, [token])
    for name, (interval, slow) in ALL.items():
        assert holds(interval(target, draft), slow(p, q)), name


@pytest.mark.parametrize("m", [1, 5, 40])
@pytest.mark.parametrize("name", sorted(extreme_pairs()))
def test_the_library_on_whole_pmfs_is_inside(name: str, m: int) -> None:
    p, q = extreme_pairs()[name]
    m = min(m, len(p))
    target, draft = TopLogProbs.from_pmf(p, m), TopLogProbs.from_pmf(q, m)
    for interval, value in (
        (truncated.total_variation(target, draft), spectheory.total_variation(p, q)),
        (truncated.kl_divergence(target, draft), spectheory.kl_divergence(p, q)),
        (truncated.chi_square(target, draft), spectheory.chi_square(p, q)),
        (truncated.renyi_divergence(target, draft, math.inf), spectheory.renyi_divergence(p, q, math.inf)),
        (truncated.renyi_divergence(target, draft, 0.3), spectheory.renyi_divergence(p, q, 0.3)),
        (truncated.harmonic_mean_distance(target, draft), spectheory.harmonic_mean_distance(p, q)),
        (truncated.acceptance(TokenVerification(), target, draft), TokenVerification().acceptance(p, q)),
        (truncated.acceptance(RaceVerification(), target, draft), RaceVerification().acceptance(p, q)),
        (truncated.acceptance(IndependentMatch(), target, draft), IndependentMatch().acceptance(p, q)),
        (truncated.acceptance(ArgmaxDraft(), target, draft), ArgmaxDraft().acceptance(p, q)),
        (truncated.acceptance(GreedyMatch(), target, draft), GreedyMatch().acceptance(p, q)),
        (truncated.entropy(target), spectheory.entropy(p)),
        (truncated.second_log_moment(target), spectheory.second_log_moment(p)),
    ):
        assert holds(interval, float(value))


# Attained


@pytest.mark.parametrize("name", BEYOND)
def test_the_end_is_the_value_at_the_best_completion(name: str) -> None:
    interval, slow = MONOTONE[name]
    compared = 0
    for target, draft in SMALL:
        ends, value = interval(target, draft), slow(*best_completion(target, draft))
        if name in RISING:
            compared += 1
            assert near(ends.high, value)
        elif min(target.unseen, draft.unseen) > SIZEABLE:
            compared += 1
            assert near(ends.low, value, STEEP)
    assert compared >= 20


def least_hockey(target: TopLogProbs, draft: TopLogProbs, c: float) -> float:
    """The least g(c) over all completions as a linear program in p, q and the terms."""
    size = target.vocabulary
    eye = np.eye(size)
    bounds = []
    for top in (target, draft):
        pmf, known = spread(top, np.zeros(top.hidden)), np.isin(np.arange(size), top.known)
        bounds += [(pmf[x], pmf[x]) if known[x] else (0.0, top.cap) for x in range(size)]
    sums = np.kron(np.eye(2), np.ones(size))
    solved = linprog(
        np.concatenate([np.zeros(2 * size), np.ones(size)]),
        A_ub=np.hstack([-eye, c * eye, -eye]),
        b_ub=np.zeros(size),
        A_eq=np.hstack([sums, np.zeros((2, size))]),
        b_eq=np.array([1.0, 1.0]),
        bounds=[*bounds, *[(0.0, None)] * size],
    )
    assert solved.status == 0
    return float(solved.fun)


def test_the_caps_of_tokens_known_to_none_can_bind() -> None:
    """The one outside token would take p-mass near .15 without its cap of .1, and g(c) would come out too small."""
    target = TopLogProbs([0, 1], np.log([0.75, 0.1]), 4)
    draft = TopLogProbs([0, 1], np.log([0.35, 0.348]), 4, [2], [math.log(0.001)])
    assert target.unseen == pytest.approx(0.15)
    for pair in ((target, draft), (draft, target)):
        masses = best_completion(*pair)
        assert (masses[0] if pair[0] is target else masses[1])[-3] == pytest.approx(target.cap)
    free = [TopLogProbs(t.tokens, t.log_probs, 50, t.extra_tokens, t.extra_log_probs) for t in (target, draft)]
    for c in WEIGHTS:
        for pair in ((target, draft), (draft, target)):
            assert truncated.hockey_stick(*pair, c).low == pytest.approx(least_hockey(*pair, c), abs=SOLVER)
    c = WEIGHTS[2]
    assert truncated.hockey_stick(*free, c).low < least_hockey(target, draft, c) - 0.01, "negative control"


def climb(value: Slow, target: TopLogProbs, draft: TopLogProbs, rng: np.random.Generator) -> float:
    """A local search for the largest value: move mass between two unseen tokens of one side while it helps."""
    tails = []
    for top in (target, draft):
        corners = np.array(list(vertices(top.hidden, top.cap, top.unseen)))
        tails.append(rng.dirichlet(np.ones(len(corners))) @ corners)
    tops, step = (target, draft), 0.3
    best = value(*(spread(top, tail) for top, tail in zip(tops, tails, strict=True)))
    while step > 1e-5:
        improved = False
        for side, top in enumerate(tops):
            for i, j in permutations(range(top.hidden), 2):
                tail = tails[side].copy()
                move = min(step, tail[i], top.cap - tail[j])
                tail[i] -= move
                tail[j] += move
                trial = [*tails[:side], tail, *tails[side + 1 :]]
                reached = value(spread(target, trial[0]), spread(draft, trial[1]))
                if move > 0 and reached > best + ROUNDING:
                    best, tails, improved = reached, trial, True
        step /= 1 if improved else 2
    return best


@pytest.mark.parametrize("name", ["race", "poisson", "optimal 3"])
def test_search_reaches_the_high_end_and_does_not_pass_it(name: str) -> None:
    """These are no f-divergences: their order rests on the proof in `completions`, so it is searched against."""
    interval, slow = MONOTONE[name]
    rng = np.random.default_rng(4)
    gaps = []
    for target, draft in [pair for pair in SMALL if all(top.hidden > 1 for top in pair)][:10]:
        found, high = climb(slow, target, draft, rng), interval(target, draft).high
        assert found <= high
        gaps.append(high - found)
    assert np.median(gaps) < 1e-3


def test_the_other_end_is_attained_by_tails_that_avoid_each_other() -> None:
    count = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        target, draft = (TopLogProbs.from_pmf(rng.dirichlet(np.ones(12)), int(rng.integers(2, 6))) for _ in "pq")
        if not tails_can_avoid_each_other(target, draft):
            continue
        count += 1
        outside = np.setdiff1d(np.arange(12), np.union1d(target.known, draft.known))
        pmfs = []
        for top, places in ((target, outside), (draft, outside[::-1])):
            full = math.floor(top.unseen / top.cap)
            pmf = spread(top, np.zeros(top.hidden))
            pmf[places[:full]] = top.cap
            pmf[places[full : full + 1]] = top.unseen - full * top.cap
            pmfs.append(pmf)
        for name, (interval, slow) in {**MONOTONE, **MATCHING}.items():
            if not name.startswith("optimal"):
                ends = interval(target, draft)
                end = ends.low if name in (*RISING, "independent") else ends.high
                assert near(end, slow(*pmfs), STEEP if name == "renyi 1/2" else ROUNDING), name
    assert count >= 10


def test_the_other_end_is_loose_where_tails_must_meet() -> None:
    """Three tokens, one known to each side: the tails share one place, TV is 1/2 at most, the interval says 1."""
    target, draft = TopLogProbs([0], [math.log(0.5)], 3), TopLogProbs([1], [math.log(0.5)], 3)
    assert not tails_can_avoid_each_other(target, draft)
    value = MONOTONE["total variation"][1]
    assert max(value(p, q) for p in corners(target) for q in corners(draft)) == 0.5
    assert truncated.total_variation(target, draft).high == 1.0


def test_finite_far_ends_are_certain() -> None:
    """Two unseen tokens of the draft with more mass than one can hold: KL and its kin are bounded."""
    rng = np.random.default_rng(6)
    target = TopLogProbs.from_pmf([0.5, 0.2, 0.2, 0.1], 2)
    draft = TopLogProbs.from_pmf([0.3, 0.3, 0.25, 0.15], 2)
    for name, (interval, slow) in UNBOUNDED.items():
        ends = interval(target, draft)
        assert ends.high < math.inf
        found = [slow(p, q) for p in [*corners(target), *anywhere(target, rng, 20)] for q in corners(draft)]
        assert all(holds(ends, value) for value in found), name
    assert truncated.renyi_divergence(target, draft, math.inf).high == pytest.approx(math.log(0.2 / 0.1))


# One pmf


def test_the_moments_bound_the_branching_bound() -> None:
    """B2' falls in mu and rises in mu2: at mu's low and mu2's high end it is above its value at the truth."""
    rng = np.random.default_rng(11)
    pmfs = rng.dirichlet(np.full(200, 0.1), size=20)
    tops = [TopLogProbs.from_pmf(p, 10) for p in pmfs]
    mu = truncated.mean_interval(truncated.entropy(top) for top in tops)
    mu2 = truncated.mean_interval(truncated.second_log_moment(top) for top in tops)
    true_mu, true_mu2 = (float(np.mean([slow_entropy(p, power) for p in pmfs])) for power in (1, 2))
    assert mu.low < true_mu < mu.high
    assert mu2.low < true_mu2 < mu2.high
    for capacity in (1, 4, 16, 64, 1024):
        certified = branching_bound(mu.low, mu2.high, capacity)
        for first in np.linspace(mu.low, mu.high, 5):
            for second in np.linspace(max(mu2.low, first**2), mu2.high, 5):
                assert branching_bound(float(first), float(second), capacity) <= certified + ROUNDING


# Matching


def test_independent_match_is_attained() -> None:
    """Bilinear, so largest on extreme tails; equal where neither side has an extra token of its own."""
    for target, draft in SMALL:
        largest = float(np.max(np.array(corners(target)) @ np.array(corners(draft)).T))
        high = truncated.acceptance(IndependentMatch(), target, draft).high
        assert largest <= high + EDGE
        if not len(target.extra_tokens) + len(draft.extra_tokens):
            assert near(high, largest)


def test_an_extra_token_counts_as_large_as_the_cap() -> None:
    """Draft mass is better spent outside, where target mass meets it, than on an extra token of the target's own."""
    target = TopLogProbs([0], [math.log(0.4)], 9, [1], [math.log(0.001)])
    draft = TopLogProbs([2], [math.log(0.3)], 9)
    p, q = np.zeros(9), np.zeros(9)
    p[[0, 1, 2, 3]] = 0.4, 0.001, 0.4, 0.199
    q[[2, 0, 3, 4]] = 0.3, 0.3, 0.3, 0.1
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    assert holds(truncated.acceptance(IndependentMatch(), target, draft), float(p @ q))


def test_the_ends_of_top_k_are_attained() -> None:
    """As long as all k drafts are listed."""
    exact = 0
    for target, draft in SMALL:
        for k in range(1, target.vocabulary + 1):
            ends = truncated.acceptance(TopKMatch(), target, draft, k)
            exact += ends.kind == "exact"
            listed = draft.tokens[:k]
            if k <= len(draft.tokens):
                for end, worst in ((ends.low, min), (ends.high, max)):
                    assert near(end, worst(p[listed].sum() for p in corners(target)))
    assert exact > 100


def test_the_first_choices_are_known() -> None:
    target = TopLogProbs([4, 2], np.log([0.25, 0.25]), 9)
    draft = TopLogProbs([2, 7], np.log([0.3, 0.2]), 9)
    assert target.tokens.tolist() == [2, 4], "ties to the lowest index"
    assert truncated.acceptance(GreedyMatch(), target, draft) == Interval.exact(1.0)
    assert truncated.acceptance(GreedyMatch(), TopLogProbs([4], [math.log(0.3)], 9), draft) == Interval.exact(0.0)
    assert truncated.acceptance(ArgmaxDraft(), target, draft).kind == "exact"
    assert truncated.acceptance(ArgmaxDraft(), target, draft).best == pytest.approx(0.25)


# Given the output


def test_ends_given_the_output_are_attained() -> None:
    """Token: the extreme ranges. Race, high: the least g (linear program) once the token has its best ratio."""
    count = 0
    for target, draft in SMALL[:30]:
        for token in range(target.vocabulary):
            (p_low, p_high), (q_low, q_high) = target.range(token), draft.range(token)
            if p_low != p_high or p_high == 0 or q_low == q_high or q_high == 0:
                continue
            count += 1
            by_token = truncated.acceptance_given(TokenVerification(), target, draft, token)
            values = [min(1.0, q[token] / p_low) for q in corners(draft)]
            assert near(by_token.low, min(values))
            assert near(by_token.high, max(values))
            high = truncated.acceptance_given(RaceVerification(), target, draft, token).high
            known = TopLogProbs(
                draft.tokens,
                draft.log_probs,
                draft.vocabulary,
                [*draft.extra_tokens, token],
                [*draft.extra_log_probs, math.log(q_high)],
            )
            assert high == pytest.approx(1 / (1 + least_hockey(target, known, p_low / q_high)), abs=SOLVER)
    assert count > 20


def test_the_low_end_given_the_output_is_attained() -> None:
    """The draft's two unseen tokens hold .4 together and .3 at most, so the output has q in [.1, .3]."""
    target, draft = TopLogProbs.from_pmf([0.5, 0.3, 0.2, 0.0], 4), TopLogProbs.from_pmf([0.3, 0.3, 0.25, 0.15], 2)
    race = truncated.acceptance_given(RaceVerification(), target, draft, 2)
    whole = corners(target)[0]
    found = [1 / (1 + slow_hockey(whole, q, whole[2] / q[2])) for q in corners(draft)]
    assert near(race.low, min(found))
    assert near(race.high, max(found))


# Edges


def test_everything_known_is_exact() -> None:
    rng = np.random.default_rng(10)
    p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
    target, draft = TopLogProbs.from_pmf(p, 8), TopLogProbs.from_pmf(q, 8)
    for name, (interval, slow) in ALL.items():
        ends = interval(target, draft)
        assert ends.kind == "exact", name
        assert near(ends.best, slow(p, q)), name
    for token in range(8):
        assert truncated.acceptance_given(RaceVerification(), target, draft, token).kind == "exact"
    assert truncated.entropy(target) == Interval.exact(truncated.entropy(target).best)


def test_impossible_tokens_are_knowledge() -> None:
    """-inf in the list closes it; a sum of one does not, since other tokens may hold what rounding hides."""
    closed, open_ = TopLogProbs([3, 1], [0.0, -math.inf], 5), TopLogProbs([3], [0.0], 5)
    draft = TopLogProbs([3, 2], np.log([0.5, 0.25]), 5)
    assert truncated.kl_divergence(closed, draft).kind == "exact"
    assert truncated.kl_divergence(closed, draft).best == pytest.approx(math.log(2))
    assert truncated.kl_divergence(open_, draft).high == math.inf
    half = TopLogProbs([3, 2, 1], log(0.5, 0.5, 0.0), 5)
    assert truncated.kl_divergence(closed, half).high == pytest.approx(math.log(2))
    assert truncated.kl_divergence(open_, half).high == math.inf
    assert truncated.kl_divergence(open_, half).low == pytest.approx(math.log(2), abs=STEEP)
    two = TopLogProbs([3, 2], log(0.5, 0.5), 5)
    assert truncated.kl_divergence(two, half).kind == "bound"
    assert truncated.kl_divergence(two, half).high == math.inf, "1e-15 of target mass may be where the draft has none"
    assert truncated.total_variation(open_, draft).high == pytest.approx(0.5, abs=ROUNDING)
    assert truncated.kl_divergence(draft, closed).low == math.inf
    assert truncated.kl_divergence(draft, open_).low < math.inf, "1e-15 of draft mass may be where the target is"
    assert truncated.acceptance(RaceVerification(), closed, draft).kind == "exact"
    assert truncated.entropy(closed).best == 0.0
    assert open_.range(0)[1] <= ROUNDING


def test_disjoint_lists() -> None:
    target, draft = TopLogProbs([0], [math.log(0.9)], 10), TopLogProbs([1], [math.log(0.8)], 10)
    assert truncated.acceptance(TokenVerification(), target, draft).low == 0.0
    assert truncated.acceptance(TokenVerification(), target, draft).high == pytest.approx(0.3, abs=ROUNDING)
    assert truncated.acceptance(GreedyMatch(), target, draft).best == 0.0


def test_a_wrong_cap_is_found_out() -> None:
    """Negative control: the sampled token's probability taken as the cap, and completions leave every interval."""
    p, q = np.array([0.4, 0.3, 0.2, 0.08, 0.02]), np.array([0.1, 0.35, 0.3, 0.15, 0.1])
    target, draft = TopLogProbs.from_pmf(p, 1, extra=[4]), TopLogProbs.from_pmf(q, 1, extra=[4])
    vocabulary = 100
    target, draft, wrong_target, wrong_draft = (
        TopLogProbs(tokens, logs, vocabulary, *extra)
        for tokens, logs, extra in (
            *((top.tokens, top.log_probs, (top.extra_tokens, top.extra_log_probs)) for top in (target, draft)),
            *(([*top.tokens, 4], [*top.log_probs, *top.extra_log_probs], ()) for top in (target, draft)),
        )
    )
    truth = [np.concatenate([pmf, np.zeros(vocabulary - 5)]) for pmf in (p, q)]
    for name in ("independent", "race", "token"):
        assert holds(ALL[name][0](target, draft), ALL[name][1](*truth)), name
    assert truncated.entropy(wrong_target).low > slow_entropy(truth[0])
    assert truncated.second_log_moment(wrong_target).low > slow_entropy(truth[0], 2)
    assert truncated.acceptance(IndependentMatch(), wrong_target, wrong_draft).high < float(truth[0] @ truth[1])
    assert truncated.acceptance(RaceVerification(), wrong_target, wrong_draft).high < slow_rank(*truth, 1)
    assert truncated.acceptance(TokenVerification(), wrong_target, wrong_draft).high < np.minimum(*truth).sum()


def test_masses_that_miss_are_scaled() -> None:
    """Single precision: a peaked softmax whose log-probabilities add up to more than one, and a whole one to less."""
    logs = np.log(np.array([0.9, 0.0999999, 1e-7], dtype=np.float64)) + 1e-6
    top = TopLogProbs([0, 1, 2], logs, 50)
    assert top.unseen == 0.0
    assert top.miss == pytest.approx(1e-6, rel=1e-3)
    assert top.probabilities.sum() == pytest.approx(1.0, abs=ROUNDING)
    whole = TopLogProbs([0, 1], np.log([0.5, 0.5]) - 1e-6, 2)
    assert whole.probabilities.sum() == pytest.approx(1.0, abs=ROUNDING)
    even = TopLogProbs([0], [math.log(0.1) - 1e-7], 10)
    assert even.cap == pytest.approx(0.1, abs=ROUNDING)
    assert 9 * even.cap == pytest.approx(even.unseen, abs=ROUNDING)


@theorem
@given(pairs(), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_stated_error_covers_the_server(pair: tuple[Floats, Floats], m: int, seed: int) -> None:
    """Log-probabilities shaken by 1e-6: with that error stated, the unshaken truth is inside."""
    rng = np.random.default_rng(seed)
    tops = []
    for pmf in pair:
        pmf = np.where(pmf < 1e-290, 0.0, pmf)
        top = TopLogProbs.from_pmf(pmf, min(m, len(pmf)))
        noise = rng.uniform(-1e-6, 1e-6, len(top.tokens)) * (top.log_probs > -math.inf)
        tops.append(TopLogProbs(top.tokens, np.minimum(0.0, top.log_probs + noise), len(pmf), error=1e-6))
    for name, (interval, slow) in ALL.items():
        assert holds(interval(*tops), slow(*(np.where(pmf < 1e-290, 0.0, pmf) for pmf in pair))), name


def test_mean_over_positions() -> None:
    every = [truncated.entropy(top) for pair in SMALL[:5] for top in pair]
    mean = truncated.mean_interval(every)
    assert mean.low == pytest.approx(np.mean([i.low for i in every]))
    assert mean.high == pytest.approx(np.mean([i.high for i in every]))
    assert truncated.mean_interval([Interval.exact(1.0), Interval.exact(2.0)]) == Interval.exact(1.5)
    with pytest.raises(ShapeError):
        truncated.mean_interval([])


def log(*values: float) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: TopLogProbs([0, 0], log(0.5, 0.25), 9), PmfError, "token 0 comes 2 times"),
        (lambda: TopLogProbs([0], log(0.5), 9, [0], log(0.5)), PmfError, "token 0 comes 2 times"),
        (lambda: TopLogProbs([0], [0.5], 9), PmfError, "token 0 has log-probability 0.5"),
        (lambda: TopLogProbs([0], [math.nan], 9), PmfError, "log-probability nan"),
        (lambda: TopLogProbs([0], log(0.5), 9, [3], [-9999.0]), PmfError, "stand-in such as -9999"),
        (lambda: TopLogProbs([0], log(0.5), 9, [3], log(0.6)), PmfError, "extra token has log-probability -0.51"),
        (lambda: TopLogProbs([0, 1], log(0.6, 0.5), 9), PmfError, "known tokens have mass 1.1"),
        (lambda: TopLogProbs([0, 1], log(0.2, 0.1), 5), PmfError, "3 unseen tokens have mass 0.7: at most 0.3"),
        (lambda: TopLogProbs([0, 1], log(0.2, 0.0), 5), PmfError, "3 unseen tokens have mass 0.8: at most 0,"),
        (lambda: TopLogProbs([0, 1], log(0.4, 0.5), 2), PmfError, "0 unseen tokens have mass 0.1"),
        (lambda: TopLogProbs([], [], 5), ShapeError, "no log-probabilities"),
        (lambda: TopLogProbs([1, 2], log(0.5), 5), ShapeError, "one log-probability per token"),
        (lambda: TopLogProbs([0.5], log(0.5), 5), ShapeError, "integer ids"),
        (lambda: TopLogProbs([5], log(0.5), 5), SettingError, "token 5: must be 0 to 4"),
        (lambda: TopLogProbs([0], log(0.5), 0), SettingError, "vocabulary is 0"),
        (lambda: TopLogProbs([0], log(0.5), 5, error=0.1), SettingError, "error is 0.1"),
        (lambda: TopLogProbs.from_pmf([0.5, 0.5], 3), SettingError, "m is 3"),
        (lambda: TopLogProbs([0], log(0.5), 5).range(5), SettingError, "token is 5"),
        (lambda: truncated.total_variation(*ONE_OF_EACH), ShapeError, "target has 5 tokens and draft 6"),
        (lambda: truncated.acceptance(GreedyMatch(), *ONE_OF_EACH), ShapeError, "target has 5 tokens and draft 6"),
        (lambda: truncated.optimal_acceptance(*SMALL[0], 0), SettingError, "k is 0"),
        (lambda: truncated.hockey_stick(*SMALL[0], math.inf), SettingError, "c is inf"),
        (lambda: truncated.renyi_divergence(*SMALL[0], 0.0), SettingError, "order is 0"),
        (lambda: truncated.acceptance_given(RaceVerification(), *LACKS_ONE, 1), SettingError, "target probability 0"),
    ],
)
def test_bad_input_is_named(make: Callable[[], object], error: type[SpectheoryError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
