"""R4 over every set of tokens in fractions, at 50 digits and over large vocabularies, kernel and arrays."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from proofs_check.statement.arithmetic import floats
from proofs_check.twins import oracle
from proofs_check.twins.list_transport import optimum
from proofs_check.twins.oracle import MP, Real
from spectheory import kernels, total_variation
from spectheory.kernels.optimal import largest_gaps
from spectheory.verification.optimal import optimal_acceptance, optimal_acceptances, optimal_rejections

ROUNDING = 1e-14
"""Sums of a few terms of order one, and their powers."""

RELATIVE = 1e-12
"""Sums of up to 2000 terms of one sign, each rounded by 1e-16."""

LARGE_SUMS = 1e-11
"""The array form adds 262,144 terms one after another, each rounded by 1e-16, and takes the 16th power."""

TINIEST = 1e-307
"""Below it floats lose digits; squares of 1e-300 are nothing."""

PAIRS = extreme_pairs()
MAX_K = 8


@pytest.fixture(params=sorted(PAIRS))
def pair(request: pytest.FixtureRequest) -> tuple[Floats, Floats]:
    return PAIRS[request.param]


def rejections_by_one_sort(p: Floats, q: Floats, max_k: int) -> list[Real]:
    """R4's rejections at 50 digits, from exact ratios in exact order; of the entries divided by their exact sums."""
    pairs_ = zip(oracle.normalised(p), oracle.normalised(q), strict=True)
    ordered = sorted((a / b if b > 0 else MP.inf, a, b) for a, b in pairs_ if a + b > 0)
    best, below_p, below_q = [MP.zero] * max_k, MP.zero, MP.zero
    for _, a, b in ordered:
        below_p, below_q = below_p + a, below_q + b
        for k in range(1, max_k + 1):
            best[k - 1] = max(best[k - 1], below_q**k - below_p)
    return best


def fractions(weights: tuple[int, ...]) -> tuple[Fraction, ...]:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


weights = st.integers(1, 6).flatmap(
    lambda tokens: st.tuples(*[st.tuples(*[st.integers(0, 9)] * tokens).filter(any)] * 2)
)
"""Two lists of integer weights over up to six tokens."""


# The definition


@theorem
@given(weights, st.integers(1, 5))
def test_the_kernel_is_the_minimum_over_all_sets(two_weights: tuple[tuple[int, ...], tuple[int, ...]], k: int) -> None:
    """Every set in fractions, not only prefixes."""
    p, q = (fractions(weights) for weights in two_weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "SMALLEST", 1)
        assert optimal_acceptance(floats(p), floats(q), k) == pytest.approx(float(optimum(p, q, k)), abs=ROUNDING)


# Digits


@pytest.mark.parametrize("compiled", [True, False])
def test_rejections_at_fifty_digits(
    pair: tuple[Floats, Floats], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Absolute here: where p(H) nearly cancels against q(H)^k, the entries' own rounding decides the digits."""
    monkeypatch.setattr(kernels, "SMALLEST", 1 if compiled else math.inf)
    for p, q in (pair, pair[::-1]):
        rejections = optimal_rejections(p, q, MAX_K)
        for value, exact in zip(rejections, rejections_by_one_sort(p, q, MAX_K), strict=True):
            assert abs(MP.mpf(float(value)) - exact) <= ROUNDING


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("share", [1e-3, 1e-9, 1e-15, 1e-300])
def test_small_rejections_keep_their_digits(share: float, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare tokens the draft hardly has, or the target: an acceptance near one has lost its distance from one."""
    monkeypatch.setattr(kernels, "SMALLEST", 1 if compiled else math.inf)
    rare = share * np.array([1.0, 0.5, 0.25, 2.0])
    p, q = (np.append(x, 1 - x.sum()) for x in (rare, rare * np.array([0.01, 0.02, 1.5, 0.3])))
    for one, other in ((p, q), (q, p)):
        for value, exact in zip(optimal_rejections(one, other, 3), of_rare_tokens(one, other, 3), strict=True):
            assert abs(MP.mpf(float(value)) - exact) <= RELATIVE * exact + TINIEST


def of_rare_tokens(p: Floats, q: Floats, max_k: int) -> list[Real]:
    """Every set in deep precision, the last entry taken as one minus the others exactly."""
    with MP.workdps(oracle.DEEP):
        a, b = ([*oracle.exactly(x[:-1]), 1 - MP.fsum(oracle.exactly(x[:-1]))] for x in (p, q))
        sets = [h for size in range(len(a) + 1) for h in combinations(range(len(a)), size)]
        sums = [(MP.fsum(a[x] for x in h), MP.fsum(b[x] for x in h)) for h in sets]
        return [max(in_q**k - in_p for in_p, in_q in sums) for k in range(1, max_k + 1)]


def test_digits_are_lost_where_sides_are_not_chosen() -> None:
    """Negative control: prefix sums alone, or one less the acceptance, keep none at 1e-18."""
    p, q = np.array([1 - 1e-18, 1e-18]), np.array([1 - 1e-20, 1e-20])
    assert optimal_rejections(p, q, 2)[1] == pytest.approx(1e-18 - 2e-20, rel=RELATIVE)
    assert 1 - optimal_acceptance(p, q, 2) == 0
    assert q[0] ** 2 - p[0] == 0


def test_a_large_vocabulary() -> None:
    """Kernel and array form at V = 262,144, where the kernel looks inside few blocks alone."""
    rng = np.random.default_rng(0)
    values = 3 * rng.standard_normal(262_144)
    p, q = (np.exp(x - x.max()) for x in (values, values + rng.standard_normal(values.size)))
    p, q = p / p.sum(), q / q.sum()
    rejections = optimal_rejections(p, q, 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "installed", lambda: False)
        np.testing.assert_allclose(rejections, optimal_rejections(p, q, 16), rtol=0, atol=LARGE_SUMS)
    q_equal = optimal_rejections(p, p.copy(), 16)
    np.testing.assert_array_equal(q_equal[1:], 0)
    assert optimal_acceptances(np.stack([p, q])[:, None], np.stack([p, q]), 2).shape == (2, 2, 2)
    one_hot = np.eye(1, p.size)[0]
    np.testing.assert_allclose(
        optimal_rejections(one_hot, q, 16), (1 - q[0]) ** np.arange(1, 17), rtol=RELATIVE, atol=0
    )


@theorem
@given(st.integers(1, 700), st.integers(0, 10**6), st.sampled_from([1e-9, 0.1, 1.0, 5.0]))
def test_kernel_and_arrays_agree(tokens: int, seed: int, spread: float) -> None:
    """Blocks of every filling, ties, and tokens that one of the two lacks."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(tokens, 0.3)) * (rng.random(tokens) < 0.9) + 1e-30
    p = np.round(q * np.exp(spread * rng.standard_normal(tokens)), 12) + 1e-30 * (rng.random(tokens) < 0.5)
    p[0] += 1e-20
    p, q = p / p.sum(), q / q.sum()
    q[rng.random(tokens) < 0.1] = 0
    q[-1] += 1 - q.sum()
    np.testing.assert_allclose(largest_gaps(p, q, MAX_K), optimal_rejections(p, q, MAX_K), rtol=0, atol=10 * ROUNDING)


# Theorems


@theorem
@given(pairs())
def test_between_one_candidate_and_the_union_bound(pair: tuple[Floats, Floats]) -> None:
    """alpha*_1 = 1 - TV; it grows with k; a list of k candidates is hit at most sum min(p, kq) (a union bound)."""
    p, q = pair
    values = optimal_acceptances(p, q, MAX_K)
    assert values[0] == pytest.approx(1 - total_variation(p, q), abs=ROUNDING)
    assert np.all(np.diff(values) >= -ROUNDING)
    for k, value in enumerate(values, 1):
        assert -ROUNDING <= value <= np.minimum(p, k * q).sum() + ROUNDING


# Arrays and bad input


def test_rare_acceptances_keep_their_digits() -> None:
    """Almost disjoint pmfs: relative digits of what is accepted, and no rule with i.i.d. candidates above."""
    p, q = np.array([1 - 1e-15, 1e-15]), np.array([1e-15, 1 - 1e-15])
    exact_p, exact_q = oracle.normalised(p), oracle.normalised(q)
    for k in (1, 2, 5):
        prefixes = ((), (0,), (1,))
        masses = [(MP.fsum(exact_p[i] for i in h), MP.fsum(exact_q[i] for i in h)) for h in prefixes]
        least = min(1 + a - b**k for a, b in masses)
        assert abs(MP.mpf(float(optimal_acceptance(p, q, k))) - least) <= 1e-13 * least
    lost = abs(float(1 - optimal_rejections(p, q, 2)[-1]) / float(optimal_acceptance(p, q, 2)) - 1)
    assert lost > 1e-4, "the control: one minus the rejection"
