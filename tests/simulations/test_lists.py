"""Recursive rejection and Gumbel lists, simulated: kernel against twin draw for draw, then against R3 and R6.

A count is checked by the exact binomial tail on either side, so that a check fails wrongly with probability `ALARM` at
most; there are fewer than 800, and four of 2e-9, so this file fails wrongly with probability below 9e-8, of the
suite's 1e-6.
With `TRIALS` trials (R3) a probability of 0.1 is known to 0.0028, one of 0.5 to 0.0046; with half of them (R6) to
0.0039 and 0.0065.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from proofs_check.library.strategies import Floats, extreme_pairs
from simulations.draws.streams import Stream, words
from simulations.kernels.gumbel_list import gumbel_list
from simulations.kernels.lazy_gumbel_list import lazy_gumbel_list
from simulations.kernels.recursive_rejection import _inverted, recursive_rejection
from simulations.reference import candidates as twin
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.verification import GumbelList, RaceVerification, RecursiveRejection
from tests.made_up import each

ALARM = 1e-10
TRIALS = 500_000
RANKS = 3

Counts = NDArray[np.int64]

UNEVEN = np.random.default_rng(1).dirichlet(np.ones(5), size=2)

PAIRS: dict[str, tuple[Floats, Floats]] = {
    "crossed": (np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])),
    "draft lacks a token": (np.array([0.3, 0.1, 0.2, 0.4]), np.array([0.1, 0.5, 0.4, 0.0])),
    "target lacks a token": (np.array([0.0, 0.6, 0.3, 0.1]), np.array([0.4, 0.1, 0.3, 0.2])),
    "one-hot draft": (np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.0, 0.0])),
    "one-hot target": (np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.3, 0.2])),
    "random": (UNEVEN[0], UNEVEN[1]),
}

EXTREMES = {
    **{name: pair for name, pair in extreme_pairs().items() if name != "large"},
    **PAIRS,
    "ratios beyond 1e300": (np.array([0.5, 0.25, 0.25]), np.array([1e-305, 1e-310, 1.0])),
    "ratios below 1e-300": (np.array([1e-305, 1e-310, 1.0]), np.array([0.5, 0.25, 0.25])),
}


def strays(count: int, trials: int, chance: float) -> bool:
    """Whether a count is in a tail of probability below ALARM/2; chances are rounded by 1e-13 at most."""
    low, high = max(chance - 1e-13, 0.0), min(chance + 1e-13, 1.0)
    if (count > 0 and chance == 0) or (count < trials and chance == 1):
        return True
    return bool(binom.cdf(count, trials, low) < ALARM / 2 or binom.sf(count - 1, trials, high) < ALARM / 2)


def straying(counts: Counts, law: Floats) -> int:
    """How many cells of a table stray from their law."""
    trials = int(counts.sum())
    return sum(strays(int(n), trials, float(chance)) for n, chance in zip(counts.ravel(), law.ravel(), strict=True))


# R3


@cache
def rejected(name: str, replacement: bool) -> Counts:
    return recursive_rejection(*PAIRS[name], RANKS, TRIALS, state=words(11), replacement=replacement)


def joint_law(p: Floats, q: Floats, replacement: bool) -> Floats:
    """P(R = r, X = x), r = 1..RANKS and R > RANKS, ``[RANKS + 1, V]``."""
    given = [p[x] * RecursiveRejection(replacement).rank_pmf_given(p, q, x, RANKS) for x in range(p.size)]
    within = np.array(given).T
    return np.vstack([within, np.maximum(p - within.sum(axis=0), 0)])


@each("replacement", [True, False])
@each("name", EXTREMES)
def test_rejection_is_its_twin(name: str, replacement: bool) -> None:
    p, q = EXTREMES[name]
    algorithm = twin.iid_rejection if replacement else twin.distinct_rejection
    for run in range(25):
        most, state = 1 + run % 4, words(5, run)
        stream = Stream(state)
        counts = recursive_rejection(p, q, most, 1, state=state, replacement=replacement)
        judged = algorithm(p, q, most, stream)
        assert np.argwhere(counts).tolist() == [[(judged.rank or most + 1) - 1, judged.token]]
        assert state.tolist() == stream.state, "as many draws"


@pytest.mark.parametrize("replacement", [True, False], ids=["iid", "distinct"])
@pytest.mark.parametrize("tokens", [2, 7, 300])
def test_rejection_is_its_twin_in_long_runs(tokens: int, replacement: bool) -> None:
    """The draft lacks every other token, so that distinct candidates may run out of it."""
    rng, state = np.random.default_rng(tokens), words(6, tokens)
    p, q = rng.dirichlet(np.full(tokens, 0.4), size=2)
    q[1::2] = 0
    q /= q.sum()
    stream, counted = Stream(state), np.zeros((9, tokens), dtype=np.int64)
    counts = recursive_rejection(p, q, 8, 400, state=state, replacement=replacement)
    for _ in range(400):
        judged = (twin.iid_rejection if replacement else twin.distinct_rejection)(p, q, 8, stream)
        counted[(judged.rank or 9) - 1, judged.token] += 1
    np.testing.assert_array_equal(counts, counted)
    assert state.tolist() == stream.state


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 128, 200])
def test_inversion_in_blocks_is_plain_inversion(tokens: int) -> None:
    """Whatever the height; beyond the sum, where rounding alone can put it, it is the last token that has weight."""
    rng = np.random.default_rng(tokens)
    weights = rng.integers(0, 3, tokens).astype(np.float64)  # sums are exact in any order
    weights[:1] = 1
    weights[1 + tokens // 2 :] = 0
    plain = np.searchsorted(np.cumsum(weights), heights := np.arange(0, weights.sum(), 0.5), side="right")
    assert [_inverted(weights, height) for height in heights] == plain.tolist()
    assert _inverted(weights, float(weights.sum())) == np.flatnonzero(weights)[-1]


@pytest.mark.parametrize("replacement", [True, False], ids=["iid", "distinct"])
@pytest.mark.parametrize("name", PAIRS)
def test_rejection_has_the_law_of_r3(name: str, replacement: bool) -> None:
    """Ranks, outputs, and both together."""
    p, q = PAIRS[name]
    counts = rejected(name, replacement)
    ranks = RecursiveRejection(replacement).rank_pmf(p, q, RANKS)
    assert straying(counts, joint_law(p, q, replacement)) == 0
    assert straying(counts.sum(axis=1), np.append(ranks, max(1 - ranks.sum(), 0))) == 0
    assert straying(counts.sum(axis=0), p) == 0


def test_the_closed_residual_is_the_step_by_step_one() -> None:
    """After m rejections (p - s q)+ is left of p, s the sum of the survivals before: the i.i.d. rank law by hand."""
    p, q = PAIRS["random"]
    survival, s = [1.0], 0.0
    for _ in range(RANKS):
        s += survival[-1]
        survival.append(float(np.maximum(p - s * q, 0).sum()))
    assert straying(rejected("random", True).sum(axis=1), np.append(-np.diff(survival), survival[-1])) == 0


def test_wrong_laws_of_r3_are_caught() -> None:
    """Negative controls: no residual, the other kind of candidates, and the draft's own law as the output's."""
    for name in ("crossed", "draft lacks a token", "random"):
        p, q = PAIRS[name]
        for kind in (True, False):
            counts = rejected(name, kind)
            tv = float(np.maximum(p - q, 0).sum())
            unchanged = np.append((1 - tv) * tv ** np.arange(RANKS), tv**RANKS)
            assert straying(counts.sum(axis=1), unchanged) > 0
            assert straying(counts, joint_law(p, q, not kind)) > 0
            assert straying(counts.sum(axis=0), q) > 0


# R6


KERNELS = {"dense": gumbel_list, "lazy": lazy_gumbel_list}


@cache
def listed(kernel: str, name: str, k: int) -> Counts:
    return KERNELS[kernel](*PAIRS[name], k, TRIALS // 2, state=words(12))


@each("name", EXTREMES)
def test_gumbel_lists_are_their_twin(name: str) -> None:
    p, q = EXTREMES[name]
    for run in range(16):
        k, state = 1 + run % 4, words(7, run)
        stream = Stream(state)
        counts = gumbel_list(p, q, k, 1, state=state)
        found = twin.gumbel_list(p, q, k, stream)
        hit = found.output in found.drafts
        own = found.drafts[found.source] == found.output
        assert np.argwhere(counts).tolist() == [[int(hit) + int(own), found.output]]
        assert state.tolist() == stream.state


@each("name", EXTREMES)
def test_lazy_gumbel_lists_are_their_twin(name: str) -> None:
    p, q = EXTREMES[name]
    for run in range(16):
        k, state = 1 + run % 4, words(8, run)
        stream = Stream(state)
        counts = lazy_gumbel_list(p, q, k, 5, state=state)
        found = np.zeros_like(counts)
        for _ in range(5):
            output, hit = twin.lazy_gumbel_list(p, q, k, stream)
            found[hit, output] += 1
        np.testing.assert_array_equal(counts, found)
        assert state.tolist() == stream.state


@each("k", [1, 2, 4])
@each("name", PAIRS)
@each("kernel", KERNELS)
def test_gumbel_lists_have_the_law_of_r6(kernel: str, name: str, k: int) -> None:
    """Hits, hits given the output, the output's law; and the paper's bound as the hits of the output's own race."""
    p, q = PAIRS[name]
    rule, counts = GumbelList(), listed(kernel, name, k)
    hits, trials = counts[1:].sum(axis=0), int(counts.sum())
    given = rule.acceptance_given(p, q, k)
    assert not strays(int(hits.sum()), trials, float(rule.acceptance(p, q, k)))
    assert not strays(int(counts[2].sum()), trials, float(rule.acceptance_bound(p, q, k)))
    assert straying(np.array([counts[0], hits]), np.array([p * (1 - given), p * given])) == 0


@each("tokens", [300, 20_000])
def test_lazy_gumbel_lists_at_many_tokens(tokens: int) -> None:
    """Against R6 with a hundredfold of the dense kernel's trials, the two against one another, and one control.

    Two samples of the same law differ in the share of misses by six standard deviations of their difference with
    probability below 2e-9. At 20,000 tokens the difference that is seen is 0.03, R6 is held to 0.005.
    """
    rng = np.random.default_rng(tokens)
    target, noise = 3 * rng.standard_normal(tokens), rng.standard_normal(tokens)
    p, q = (np.exp(logits) / np.exp(logits).sum() for logits in (target, target + noise))
    lazy = lazy_gumbel_list(p, q, 4, 500_000, state=words(13)).sum(axis=1)
    rule = GumbelList()
    assert not strays(int(lazy[1:].sum()), 500_000, float(rule.acceptance(p, q, 4)))
    assert not strays(int(lazy[2]), 500_000, float(rule.acceptance_bound(p, q, 4)))
    assert strays(int(lazy[1:].sum()), 500_000, float(rule.acceptance(p, q, 3)))
    trials = 60_000_000 // tokens // 4
    dense = gumbel_list(p, q, 4, trials, state=words(14)).sum(axis=1)
    spread = math.sqrt(0.25 / trials + 0.25 / 500_000)
    assert abs(dense[0] / trials - lazy[0] / 500_000) <= 6 * spread
    assert abs(dense[2] / trials - lazy[2] / 500_000) <= 6 * spread


@each("kernel", KERNELS)
def test_wrong_laws_of_r6_are_caught(kernel: str) -> None:
    """Negative controls at k = 4: the bound as the acceptance, and k independent attempts at the race."""
    for name in ("crossed", "draft lacks a token", "random"):
        p, q = PAIRS[name]
        counts = listed(kernel, name, 4)
        hits, trials = int(counts[1:].sum()), int(counts.sum())
        alpha = float(RaceVerification().acceptance(p, q))
        assert strays(hits, trials, float(GumbelList().acceptance_bound(p, q, 4)))
        assert strays(hits, trials, 1 - (1 - alpha) ** 4)
        assert strays(int(counts[2].sum()), trials, alpha)


# The door


def test_bad_input_is_one_clear_line() -> None:
    p, q = PAIRS["crossed"]
    for run in (recursive_rejection, gumbel_list, lazy_gumbel_list):
        for count in (0, -3, 2.5, True):
            with pytest.raises(SettingError, match="must be a whole number >= 1"):
                run(p, q, count, 10, state=words(1))  # type: ignore[arg-type]
            with pytest.raises(SettingError, match="trials is"):
                run(p, q, 2, count, state=words(1))  # type: ignore[arg-type]
        with pytest.raises(PmfError, match="sums to"):
            run(p, [0.5, 0.4, 0.0], 2, 10, state=words(1))
        with pytest.raises(PmfError, match=r"\[1\] is -0.5"):
            run([1.5, -0.5, 0.0], q, 2, 10, state=words(1))
        with pytest.raises(PmfError, match="nan"):
            run([math.nan, 0.5, 0.5], q, 2, 10, state=words(1))
        with pytest.raises(ShapeError, match="one vocabulary"):
            run(p, [0.5, 0.5], 2, 10, state=words(1))
        with pytest.raises(ShapeError, match="one position"):
            run([p, p], q, 2, 10, state=words(1))


def test_runs_add_up() -> None:
    """Two runs of one stream are one long run."""
    p, q = PAIRS["random"]
    for run in (recursive_rejection, gumbel_list, lazy_gumbel_list):
        state, whole = words(3), words(3)
        parts = run(p, q, 3, 700, state=state) + run(p, q, 3, 300, state=state)
        np.testing.assert_array_equal(parts, run(p, q, 3, 1000, state=whole))
