"""§9 with several candidates: intervals of R1, R2, R3, R5 and R6, laws of the rank, and which ends are attained."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from proofs_check.algorithms.rank_laws import gumbel_list_hit
from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from proofs_check.theorems.path.completions import corners, small_pairs, spread
from proofs_check.twins.race_ranks import rank_law
from spectheory import truncated
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.truncated import TopLogProbs, ranks
from spectheory.truncated.completions import best_completion
from spectheory.verification import (
    GumbelList,
    KSeq,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    poisson_rank_entropy,
    rank_entropy_bound,
)

ROUNDING = 5e-12
"""Sums of a few terms of order one; R6's integral is good to 1e-12, and its ends are widened by as much."""

EDGE = 1e-14
"""Rounding of a definition's own sum and root, which shows where an end is cut to the possible range."""

MOST = 4
"""Ranks of the laws."""


# Quantities by their definitions, on full pmfs


def slow_hockey(p: Floats, q: Floats, c: float) -> float:
    return float(sum(max(0.0, c * b - a) for a, b in zip(p, q, strict=True)))


def poisson_given(p: Floats, q: Floats, x: int, r: int) -> float:
    if q[x] == 0:
        return 0.0
    g = slow_hockey(p, q, p[x] / q[x])
    return (g / (1 + g)) ** (r - 1) / (1 + g)


def recursive_joint(p: Floats, q: Floats, ranks: int) -> Floats:
    """P(R = r, X = x), ``[ranks, V]``: token verification of each candidate against the normalised residual."""
    law, mass, left = np.zeros((ranks, len(p))), 1.0, p
    for r in range(ranks):
        law[r] = mass * np.minimum(left, q)
        residual = np.maximum(left - q, 0.0)
        if residual.sum() <= ROUNDING:  # p = q: what rounding leaves is not judged again
            break
        mass, left = mass * residual.sum(), residual / residual.sum()
    return law


@lru_cache(maxsize=4)
def laws(target: TopLogProbs, draft: TopLogProbs) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """The laws of R1 and R3, made once for all ranks."""
    poisson, recursive = (
        truncated.rank_pmf(rule, target, draft, MOST) for rule in (PoissonRace(), RecursiveRejection())
    )
    return poisson, recursive


# Completions


def some(top: TopLogProbs, rng: np.random.Generator, count: int) -> list[Floats]:
    """Extreme completions and random mixtures of them, half of each."""
    ends = np.array(corners(top))
    shares = [rng.dirichlet(np.full(len(ends), 10.0 ** rng.uniform(-2, 1))) for _ in range(count // 2)]
    return [*(ends[rng.integers(len(ends))] for _ in shares), *(share @ ends for share in shares)]


SMALL = small_pairs(seed=31, count=30, most=5)


def holds(interval: Interval, value: float, tolerance: float = EDGE) -> bool:
    if interval.kind == "exact":
        return abs(interval.best - value) <= ROUNDING
    return interval.low - tolerance <= value <= interval.high + tolerance


CHECKED = 1e-6
"""Width of the library's own H(R), which a completion's value is known to."""

Bound = Callable[[TopLogProbs, TopLogProbs], Interval]

Slow = Callable[[Floats, Floats], float]


def slow_poisson(p: Floats, q: Floats, r: int) -> float:
    return sum(p[x] * poisson_given(p, q, x, r) for x in range(len(p)) if p[x] > 0)


def slow_recursive(p: Floats, q: Floats, k: int) -> float:
    return float(recursive_joint(p, q, k).sum())


def slow_recursive_rank(p: Floats, q: Floats, r: int) -> float:
    return float(recursive_joint(p, q, r)[-1].sum())


def slow_kseq(p: Floats, q: Floats, k: int) -> float:
    """The acceptance at the root of R5's equation."""

    def one(rho: float) -> float:
        return float(np.minimum(q, p / rho).sum())

    def above(rho: float) -> float:
        return 1 - (1 - one(rho)) ** k - rho * one(rho)

    # At k = 1, and where p and q are equal or disjoint, the two sides are equal at 1.
    rho = float(brentq(above, 1, k, xtol=1e-15)) if k > 1 and above(1) > 0 > above(k) else 1.0
    return 1 - (1 - one(rho)) ** k


def slow_list_bound(p: Floats, q: Floats, k: int) -> float:
    """As printed."""
    can = [x for x in range(len(p)) if p[x] > 0 and q[x] > 0]
    return sum(k / sum(max(c / p[x], d / q[x]) + (k - 1) * c / p[x] for c, d in zip(p, q, strict=True)) for x in can)


def slow_list(p: Floats, q: Floats, k: int) -> float:
    """Exponentials integrated one by one."""
    can = [x for x in range(len(p)) if p[x] > 0 and q[x] > 0]
    return float(sum(p[x] * gumbel_list_hit(tuple(p), tuple(q), x, k) for x in can))


def slow_distinct(p: Floats, q: Floats, k: int) -> float:
    """Every set of tokens that may come before the winner."""
    return float(sum(rank_law([float(x) for x in p], [float(x) for x in q])[:k]))


def with_k(
    bound: Callable[[TopLogProbs, TopLogProbs, int], Interval], slow: Callable[[Floats, Floats, int], float], k: int
) -> tuple[Bound, Slow]:
    return (lambda target, draft: bound(target, draft, k)), (lambda p, q: slow(p, q, k))


QUANTITIES: dict[str, tuple[Bound, Slow]] = {
    f"{name} {k}": with_k(bound, slow, k)
    for name, bound, slow, most in (
        ("recursive", partial(truncated.acceptance, RecursiveRejection()), slow_recursive, 4),
        ("kseq", partial(truncated.acceptance, KSeq()), slow_kseq, 3),
        ("list bound", truncated.gumbel_list_acceptance_bound, slow_list_bound, 3),
        ("list", partial(truncated.acceptance, GumbelList()), slow_list, 3),
        ("distinct", partial(truncated.acceptance, RaceVerification()), slow_distinct, 3),
        ("poisson rank", lambda t, d, r: laws(t, d)[0][r - 1], slow_poisson, MOST),
        ("recursive rank", lambda t, d, r: laws(t, d)[1][r - 1], slow_recursive_rank, MOST),
    )
    for k in range(1, most + 1)
}

BEYOND = ("recursive 4", "kseq 3", "list bound 3", "list 3", "distinct 3", "poisson rank 4", "recursive rank 4")
"""Numbers of candidates that the ledger leaves out: it has two, three ranks, and three candidates of R3."""

ATTAINED = ("recursive 1", "kseq 2", "kseq 3", "list bound 2", "list bound 3", "poisson rank 1")
"""Those whose ends are their values at the best completion and where the tails avoid each other."""

ATTAINED_LOW = (*ATTAINED, "list 2", "list 3")
"""Those whose low end is their value where the tails avoid each other."""


def values_of(p: Floats, q: Floats) -> dict[str, float]:
    """The same, by the functions of full pmfs."""
    values = {}
    poisson, recursive = PoissonRace().rank_pmf(p, q, MOST), RecursiveRejection().rank_pmf(p, q, MOST)
    for r in range(MOST):
        values[f"poisson rank {r + 1}"], values[f"recursive rank {r + 1}"] = float(poisson[r]), float(recursive[r])
    for k in (1, 2, 3):
        values[f"recursive {k}"] = float(recursive[:k].sum())
        values[f"kseq {k}"] = float(KSeq().acceptance(p, q, k))
        values[f"list bound {k}"] = float(GumbelList().acceptance_bound(p, q, k))
        values[f"list {k}"] = float(GumbelList().acceptance(p, q, k))
        values[f"distinct {k}"] = float(RaceVerification().acceptance(p, q, k))
    return values


# Certain


@pytest.mark.parametrize("name", BEYOND)
def test_no_completion_leaves_the_interval(name: str) -> None:
    """Extreme and random tails of 30 pairs, without any tolerance beyond the interval's own."""
    interval, slow = QUANTITIES[name]
    rng = np.random.default_rng(2)
    for target, draft in SMALL:
        within = interval(target, draft)
        assert 0 <= within.low <= within.high <= 1
        for p, q in zip(some(target, rng, 12), some(draft, rng, 12), strict=True):
            assert holds(within, slow(p, q)), (name, target, draft, p, q)


def cut(pmf: Floats) -> Floats:
    """Without what a server's logarithms would not tell from zero."""
    return np.where(pmf < 1e-290, 0.0, pmf)


@settings(theorem, max_examples=100)
@given(pairs(), st.integers(1, 6), st.integers(1, 6), st.integers(0, 5))
def test_the_whole_pmfs_are_a_completion(pair: tuple[Floats, Floats], m: int, other: int, token: int) -> None:
    """Any two pmfs, 1e-18 and zeros among their entries, cut to lists of any length: the library's value is inside."""
    p, q = (cut(pmf) for pmf in pair)
    token = min(token, len(p) - 1)
    target = TopLogProbs.from_pmf(p, min(m, len(p)), [token])
    draft = TopLogProbs.from_pmf(q, min(other, len(p)), [token])
    for name, value in values_of(p, q).items():
        assert holds(QUANTITIES[name][0](target, draft), value, ROUNDING), name


@pytest.mark.parametrize("m", [1, 5, 40])
@pytest.mark.parametrize("name", sorted(set(extreme_pairs()) - {"large"}))
def test_the_library_on_whole_pmfs_is_inside(name: str, m: int) -> None:
    p, q = extreme_pairs()[name]
    target, draft = (TopLogProbs.from_pmf(pmf, min(m, len(p))) for pmf in (p, q))
    for quantity, value in values_of(p, q).items():
        assert holds(QUANTITIES[quantity][0](target, draft), value, ROUNDING), quantity


def test_everything_known_is_exact() -> None:
    rng = np.random.default_rng(10)
    p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
    target, draft = TopLogProbs.from_pmf(p, 8), TopLogProbs.from_pmf(q, 8)
    for name, value in values_of(p, q).items():
        ends = QUANTITIES[name][0](target, draft)
        assert ends.kind == "exact", name
        assert ends.best == pytest.approx(value, abs=ROUNDING), name
    for token in range(8):
        for rule in (PoissonRace(), RecursiveRejection()):
            intervals, expected = (
                truncated.rank_pmf_given(rule, target, draft, token, MOST),
                rule.rank_pmf_given(p, q, token, MOST),
            )
            assert all(interval.kind == "exact" for interval in intervals)
            np.testing.assert_allclose([interval.best for interval in intervals], expected, atol=ROUNDING)
    known, whole = truncated.poisson_rank_entropy(target, draft), poisson_rank_entropy(p, q)
    assert known.low == pytest.approx(whole.low, abs=CHECKED)
    assert known.high == pytest.approx(whole.high, abs=CHECKED)


@pytest.mark.evidence
@settings(theorem, max_examples=60)
@given(pairs(), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_stated_error_covers_the_server(pair: tuple[Floats, Floats], m: int, seed: int) -> None:
    """Log-probabilities shaken by 1e-6: with that error stated, the unshaken truth is inside."""
    rng = np.random.default_rng(seed)
    tops = []
    for pmf in (cut(pmf) for pmf in pair):
        top = TopLogProbs.from_pmf(pmf, min(m, len(pmf)))
        noise = rng.uniform(-1e-6, 1e-6, len(top.tokens)) * (top.log_probs > -math.inf)
        tops.append(TopLogProbs(top.tokens, np.minimum(0.0, top.log_probs + noise), len(pmf), error=1e-6))
    for name, value in values_of(*(cut(pmf) for pmf in pair)).items():
        assert holds(QUANTITIES[name][0](*tops), value, ROUNDING), name


# Attained, or beyond the naive


@pytest.mark.parametrize("name", [name for name in ATTAINED if not name.endswith(" 2")])
def test_the_high_end_is_the_value_at_the_best_completion(name: str) -> None:
    interval, slow = QUANTITIES[name]
    for target, draft in SMALL:
        assert interval(target, draft).high == pytest.approx(slow(*best_completion(target, draft)), abs=ROUNDING)


def test_the_low_end_is_attained_by_tails_that_avoid_each_other() -> None:
    count = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        target, draft = (TopLogProbs.from_pmf(rng.dirichlet(np.ones(12)), int(rng.integers(2, 6))) for _ in "pq")
        outside = np.setdiff1d(np.arange(12), np.union1d(target.known, draft.known))
        full = [math.floor(top.unseen / top.cap) for top in (target, draft)]
        if sum(full) + 2 > len(outside):
            continue
        count += 1
        pmfs = []
        for top, places, whole in ((target, outside, full[0]), (draft, outside[::-1], full[1])):
            pmf = spread(top, np.zeros(top.hidden))
            pmf[places[:whole]] = top.cap
            pmf[places[whole]] = top.unseen - whole * top.cap
            pmfs.append(pmf)
        for name in ATTAINED_LOW:
            interval, slow = QUANTITIES[name]
            value = values_of(*pmfs)[name] if name.startswith("list ") else slow(*pmfs)
            assert interval(target, draft).low == pytest.approx(value, abs=ROUNDING), name
    assert count >= 5


def test_the_exact_list_and_the_distinct_race_see_splits() -> None:
    """Two halves of a token are a poorer match than the whole, down to R6's printed bound and to the Poisson race."""
    p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    first, second = (np.append(np.repeat(pmf[:1] / 2, 2), pmf[1:]) for pmf in (p, q))
    assert slow_list(p, q, 2) == pytest.approx(0.8541666666666666, abs=ROUNDING)
    assert slow_list(first, second, 2) == pytest.approx(0.84375, abs=ROUNDING)
    first, second = (np.append(pmf[:1], np.repeat(pmf[1:] / 2, 2)) for pmf in (p, q))
    assert slow_distinct(first, second, 2) < slow_distinct(p, q, 2) - 0.05
    for parts in (1, 4, 16, 256):
        fine_p, fine_q = (np.repeat(pmf / parts, parts) for pmf in (p, q))
        poisson, listed = float(PoissonRace().acceptance(p, q, 2)), slow_list_bound(p, q, 2)
        above = [float(RaceVerification().acceptance(fine_p, fine_q, 2)) - poisson] if parts <= 16 else []
        above.append(float(GumbelList().acceptance(fine_p, fine_q, 2)) - listed)
        assert all(0 < gap < 0.3 / parts for gap in above)


def test_remainders_lie_in_their_ranges_however_few_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps s are monotone and attained; the masses G are certain with one cell, and tighter with more."""
    rng = np.random.default_rng(7)
    widths = {}
    for cells in (1, 8, 512):
        monkeypatch.setattr(ranks, "_CELLS", cells)
        widths[cells] = 0.0
        for target, draft in SMALL:
            ranges = ranks._remainders(target, draft, 4)
            widths[cells] += float(np.sum(ranges.left_high - ranges.left_low))
            for p, q in zip(some(target, rng, 8), some(draft, rng, 8), strict=True):
                left = np.append(1.0, 1 - np.cumsum(recursive_joint(p, q, 4).sum(axis=1)))
                s = np.append(0.0, np.cumsum(left)[:-1])
                assert np.all((ranges.s_low - ROUNDING <= s) & (s <= ranges.s_high + ROUNDING))
                assert np.all((ranges.left_low - ROUNDING <= left) & (left <= ranges.left_high + ROUNDING))
    assert widths[1] > widths[8] > widths[512]


def test_a_wrong_cap_is_found_out() -> None:
    """Negative control: the sampled token's probability taken as the cap, and the truth leaves the intervals."""
    p, q = np.array([0.2, 0.3, 0.3, 0.18, 0.02]), np.array([0.3, 0.25, 0.25, 0.18, 0.02])
    right = [TopLogProbs.from_pmf(pmf, 1, extra=[4]) for pmf in (p, q)]
    longer = [np.append(pmf, np.zeros(95)) for pmf in (p, q)]
    right = [TopLogProbs(top.tokens, top.log_probs, 100, top.extra_tokens, top.extra_log_probs) for top in right]
    wrong = [TopLogProbs([*t.tokens, 4], [*t.log_probs, *t.extra_log_probs], 100) for t in right]
    truth = values_of(*longer)
    for name in ("recursive 2", "kseq 2", "list bound 2", "list 2", "poisson rank 1"):
        assert holds(QUANTITIES[name][0](*right), truth[name]), name
        assert QUANTITIES[name][0](*wrong).high < truth[name], name


def test_the_order_of_the_rules() -> None:
    """Ends keep the order that their rules have (R8)."""
    for target, draft in SMALL:
        for k in (1, 2, 3):
            best = truncated.optimal_acceptance(target, draft, k)
            poisson = truncated.acceptance(PoissonRace(), target, draft, k)
            listed = truncated.acceptance(GumbelList(), target, draft, k)
            assert truncated.acceptance(RaceVerification(), target, draft, k).low >= poisson.low - ROUNDING
            assert listed.low >= truncated.gumbel_list_acceptance_bound(target, draft, k).low - ROUNDING
            for ends in (listed, truncated.acceptance(RecursiveRejection(), target, draft, k)):
                assert ends.high <= best.high + ROUNDING


def test_what_the_draft_cannot_draw_is_not_accepted() -> None:
    """A complete draft list: the target's mass beyond it is lost to every rule and any number of candidates."""
    target = TopLogProbs([0, 1], np.log([0.5, 0.3]), 50)
    with np.errstate(divide="ignore"):
        draft = TopLogProbs([0, 2, 3], np.log([0.75, 0.25, 0.0]), 50)
    assert draft.complete
    for k in (1, 2, 3, 10):
        for bound in (partial(truncated.acceptance, RaceVerification()), partial(truncated.acceptance, GumbelList())):
            assert bound(target, draft, k).high <= 0.7 + ROUNDING
    assert truncated.acceptance(RaceVerification(), target, draft, 10).low == pytest.approx(0.5, abs=ROUNDING)


# Laws of the rank


def test_laws_fall_and_add_up() -> None:
    """P(R <= k) is in the sum of the law's intervals, and neither end of the law rises in r."""
    for target, draft in SMALL:
        poisson, recursive = laws(target, draft)
        for law, total in (
            (poisson, truncated.acceptance(PoissonRace(), target, draft, MOST)),
            (recursive, truncated.acceptance(RecursiveRejection(), target, draft, MOST)),
        ):
            assert sum(interval.low for interval in law) <= total.high + ROUNDING
            assert sum(interval.high for interval in law) >= total.low - ROUNDING
            assert all(a.low >= b.low - ROUNDING for a, b in pairwise(law))
            assert all(a.high >= b.high - ROUNDING for a, b in pairwise(law))


def test_the_fourth_rank_given_the_output_in_every_completion() -> None:
    """Tokens known to both, to one and to none; the ledger has three ranks, and two candidates."""
    rng = np.random.default_rng(9)
    for target, draft in SMALL:
        completions = list(zip(some(target, rng, 12), some(draft, rng, 12), strict=True))
        for token in range(target.vocabulary):
            if target.range(token)[1] == 0:
                continue
            poisson = truncated.rank_pmf_given(PoissonRace(), target, draft, token, MOST)[-1]
            recursive = truncated.rank_pmf_given(RecursiveRejection(), target, draft, token, MOST)[-1]
            accepted = {
                k: truncated.acceptance_given(RecursiveRejection(), target, draft, token, k) for k in (1, 3, MOST)
            }
            for p, q in completions:
                if p[token] <= ROUNDING:  # may be rounding of an impossible output
                    continue
                share = recursive_joint(p, q, MOST)[:, token] / p[token]
                rounding = EDGE / p[token]
                assert holds(poisson, poisson_given(p, q, token, MOST))
                assert holds(recursive, float(share[-1]), rounding)
                assert all(holds(ends, float(share[:k].sum()), rounding) for k, ends in accepted.items())


def test_peaks_inside_the_range_are_seen() -> None:
    """Negative control: of a rank's law given the output, the values at the two ends of a are no bounds."""
    target, draft = TopLogProbs.from_pmf([0.5, 0.2, 0.15, 0.15], 2), TopLogProbs.from_pmf([0.15, 0.45, 0.2, 0.2], 2)
    one = truncated.acceptance_given(RaceVerification(), target, draft, 0)
    third = truncated.rank_pmf_given(PoissonRace(), target, draft, 0, 3)[2]
    assert one.low < 1 / 3 < one.high
    assert third.high == pytest.approx(4 / 27, abs=ROUNDING)
    assert third.high > max(a * (1 - a) ** 2 for a in (one.low, one.high)) + 1e-5


def test_peaks_of_the_law_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a completion whose third rank is above the bound made of the two ends of g."""
    p, q = np.array([0.5536, 0.0, 0.4464, 0.0, 0.0]), np.array([0.1969, 0.0603, 0.1527, 0.1839, 0.4062])
    target, draft = TopLogProbs.from_pmf(p, 1), TopLogProbs.from_pmf(q, 2)
    value = float(PoissonRace().rank_pmf(p, q, 3)[2])
    assert truncated.rank_pmf(PoissonRace(), target, draft, 3)[2].high >= value
    monkeypatch.setattr(np, "clip", lambda peak, least, most: np.maximum(least, most))
    assert truncated.rank_pmf(PoissonRace(), target, draft, 3)[2].high < value - 1e-5


# Entropy of the rank


def test_the_entropy_of_the_rank_in_every_completion() -> None:
    """Finite ends need a draft whose unseen mass leaves none of its tokens out; low ends hold for any finite rank."""
    rng = np.random.default_rng(8)
    finite, compared = 0, 0
    made = [
        (TopLogProbs.from_pmf([0.5, 0.2, 0.2, 0.1], 2), TopLogProbs.from_pmf([0.3, 0.3, 0.25, 0.15], 2)),
        (TopLogProbs.from_pmf([0.3, 0.3, 0.2, 0.2], 3), TopLogProbs.from_pmf([0.28, 0.26, 0.24, 0.22], 2)),
    ]
    for target, draft in [*SMALL, *made]:
        if truncated.kl_divergence(target, draft).low == math.inf:
            continue
        ends = truncated.poisson_rank_entropy(target, draft)
        finite += ends.high < math.inf and not target.complete
        assert ends.low >= truncated.kl_divergence(target, draft).low - ROUNDING
        for p, q in zip(some(target, rng, 6), some(draft, rng, 6), strict=True):
            if np.all(q[p > 0] > 1e-6):
                compared += 1
                value = poisson_rank_entropy(p, q)
                assert value.high >= ends.low - ROUNDING
                assert value.low <= ends.high + ROUNDING
    assert finite >= 2
    assert compared >= 60


def test_an_infinite_rank_is_refused() -> None:
    with np.errstate(divide="ignore"):
        draft = TopLogProbs([0, 1], np.log([1.0, 0.0]), 5)
    with pytest.raises(SettingError, match="lacks a token of the target in every completion"):
        truncated.poisson_rank_entropy(TopLogProbs([0, 1], np.log([0.5, 0.5]), 5), draft)


def test_the_largest_entropy_of_a_rank() -> None:
    """Attained by the zeta laws, and below both forms of li2018; without the normalisation it would fail."""
    ranks = np.arange(1, 2_000_001, dtype=np.float64)
    for s in (2.5, 3.0, 5.0):
        law = ranks**-s / np.sum(ranks**-s)
        mean, entropy = float(law @ np.log(ranks)), -float(law @ np.log(law))
        assert truncated.largest_rank_entropy(mean) == pytest.approx(entropy, abs=1e-6), "the tail beyond 2e6 ranks"
        assert s * mean < entropy - 0.01, "negative control"
    for mean in (0.0, 1e-12, 1e-3, 0.1, 1.0, 5.0, 50.0, 1e4):
        bits = rank_entropy_bound(mean / math.log(2), unit="bits") * math.log(2)
        assert mean <= truncated.largest_rank_entropy(mean) <= min(rank_entropy_bound(mean), bits) + ROUNDING
    assert truncated.largest_rank_entropy(0.0) == 0
    assert truncated.largest_rank_entropy(math.inf) == math.inf


@pytest.mark.parametrize("s", [1.5, 3.0, 20.0, 60.0, 99.9, 100.1, 400.0, 990.0])
def test_the_largest_entropy_of_a_rank_at_any_scale(s: float) -> None:
    """E log R and H of the zeta laws at 340 digits, down to 1e-298: never below, and above by rounding alone."""
    with mpmath.workdps(340):
        zeta = mpmath.zeta(s)
        exact = -mpmath.zeta(s, derivative=1) / zeta
        mean = math.nextafter(float(exact), math.inf)
        entropy = s * exact + mpmath.log(zeta)
        largest = truncated.largest_rank_entropy(mean)
        assert entropy <= largest <= entropy * (1 + 1e-9)
        if s >= 60:
            assert s * mean + math.log(float(zeta)) < entropy * (1 - 1e-3), "negative control: log zeta rounded to 0"


@pytest.mark.parametrize("share", [1e-300, 1e-30, 1e-17, 1e-16, 1e-12])
def test_the_largest_entropy_of_a_rank_that_is_two_once_in_a_while(share: float) -> None:
    """H of the law (1 - e, e), which for tiny e is nearly the zeta law."""
    with mpmath.workdps(340):
        e = mpmath.mpf(share)
        entropy = -(1 - e) * mpmath.log(1 - e) - e * mpmath.log(e)
        largest = truncated.largest_rank_entropy(math.nextafter(float(e * mpmath.log(2)), math.inf))
        assert entropy <= largest <= entropy * (1 + 1e-8)
