"""§9: laws of the rank and its entropy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from spectheory import truncated
from spectheory.errors import SettingError
from spectheory.truncated import TopLogProbs
from spectheory.verification import (
    GumbelList,
    KSeq,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    poisson_rank_entropy,
    rank_entropy_bound,
)
from tests.truncated.candidate_cases import (
    EDGE,
    MOST,
    ROUNDING,
    SMALL,
    holds,
    laws,
    poisson_given,
    recursive_joint,
    some,
)

Pair = tuple[TopLogProbs, TopLogProbs]


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


# Edges


ONE_OF_EACH: Pair = (TopLogProbs([0], [math.log(0.5)], 5), TopLogProbs([0], [math.log(0.5)], 6))

EVERY: tuple[Callable[[TopLogProbs, TopLogProbs, int], object], ...] = (
    partial(truncated.acceptance, RecursiveRejection()),
    partial(truncated.acceptance, KSeq()),
    partial(truncated.acceptance, GumbelList()),
    truncated.gumbel_list_acceptance_bound,
    partial(truncated.acceptance, RaceVerification()),
    partial(truncated.rank_pmf, PoissonRace()),
    partial(truncated.rank_pmf, RecursiveRejection()),
)
