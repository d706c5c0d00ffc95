"""§9: no completion of the unseen tails leaves an interval, and the tight ends are attained."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectheory
from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from proofs_check.theorems.path.completions import corners, spread, vertices
from spectheory import truncated
from spectheory.truncated import TopLogProbs
from spectheory.truncated.completions import best_completion
from spectheory.verification import (
    ArgmaxDraft,
    GreedyMatch,
    IndependentMatch,
    RaceVerification,
    TokenVerification,
)
from tests.truncated.truncated_cases import (
    ALL,
    MATCHING,
    MONOTONE,
    ROUNDING,
    SMALL,
    SOLVER,
    STEEP,
    UNBOUNDED,
    WEIGHTS,
    Slow,
    holds,
    least_hockey,
    near,
)

SIZEABLE = 1e-2
"""A mass lost in rounding may be 0 or 1e-15, and logarithms and quotients tell the two apart: this one is neither."""

RISING = ("token", "similarity", "race", "poisson", "optimal 1", "optimal 3")
"""Of the monotone ones, those that are largest at the best completion."""

BEYOND = ("poisson", "optimal 3", "renyi 1/2")
"""Numbers of candidates and an order that the ledger leaves out: it has two candidates and orders 1, 2 and infinity."""


# Completions


def anywhere(top: TopLogProbs, rng: np.random.Generator, count: int) -> list[Floats]:
    """Random mixtures of extreme points, from flat to one-sided."""
    ends = np.array(corners(top))
    shares = [rng.dirichlet(np.full(len(ends), 10.0 ** rng.uniform(-2, 1))) for _ in range(count)]
    return [share @ ends for share in shares]


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
        reached, high = climb(slow, target, draft, rng), interval(target, draft).high
        assert reached <= high
        gaps.append(high - reached)
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


def test_finite_far_ends_are_certain() -> None:
    """Two unseen tokens of the draft with more mass than one can hold: KL and its kin are bounded."""
    rng = np.random.default_rng(6)
    target = TopLogProbs.from_pmf([0.5, 0.2, 0.2, 0.1], 2)
    draft = TopLogProbs.from_pmf([0.3, 0.3, 0.25, 0.15], 2)
    for name, (interval, slow) in UNBOUNDED.items():
        ends = interval(target, draft)
        assert ends.high < math.inf
        values = [slow(p, q) for p in [*corners(target), *anywhere(target, rng, 20)] for q in corners(draft)]
        assert all(holds(ends, value) for value in values), name
    assert truncated.renyi_divergence(target, draft, math.inf).high == pytest.approx(math.log(0.2 / 0.1))
