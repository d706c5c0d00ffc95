"""D1-D3 against their definitions at 50 digits, on pmfs at the ends of what floats can say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import TINIEST, Floats, extreme_pairs, pairs, theorem
from proofs_check.twins import oracle
from spectheory import divergences
from spectheory.distributions import validate_pmf
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.errors import PmfError
from tests.made_up import each

RELATIVE = 1e-12
"""Sums of non-negative terms lose a few bits each; the worst are KL terms just beyond its series (ratio 1.2), whose
cancellation costs sixty units, times the rounding of logarithms as large as 700."""

CANCELLING = 1e-11
"""Rényi divergences: exponents of up to 10 log 1e-300 = 7000 round to 1e-12 before they are exponentiated."""

NORMALISED = 1e-30
"""Divergences of second order: pmfs that differ by rounding alone, 1e-16 an entry, are equal once normalised."""

SWEPT = 25
"""Tokens per pair at which g(p_x/q_x) is written out."""

PAIRS = extreme_pairs()
TWO_PMFS = sorted(oracle.DIVERGENCES)
ONE_PMF = ["entropy", "second_log_moment"]
ORDERS = [0.5, 2.0, 3.0, 10.0, math.inf]


def close(value: Any, exact: Any, tolerance: float = RELATIVE, floor: float = 0.0) -> bool:
    """Whether a float is the exact value up to the tolerance, relative below and above one, but for the floor."""
    if exact == oracle.MP.inf:
        return float(value) == math.inf
    return bool(abs(oracle.MP.mpf(float(value)) - exact) <= tolerance * abs(exact) + floor)


every_pair = each("pair", PAIRS.values())


@every_pair
@each("name", TWO_PMFS)
def test_two_pmfs_at_fifty_digits(name: str, pair: tuple[Floats, Floats]) -> None:
    p, q = pair
    for a, b in ((p, q), (q, p)):
        assert close(getattr(divergences, name)(a, b), oracle.DIVERGENCES[name](a, b)), (name, a, b)


@every_pair
@each("name", ONE_PMF)
def test_one_pmf_at_fifty_digits(name: str, pair: tuple[Floats, Floats]) -> None:
    for pmf in pair:
        value, exact = getattr(divergences, name)(pmf), getattr(oracle, name)(pmf)
        assert close(value, exact), (name, pmf)
        assert math.copysign(1, value) == 1, "an entropy of -0.0 prints badly"


@every_pair
@each("order", ORDERS)
def test_renyi_at_fifty_digits(order: float, pair: tuple[Floats, Floats]) -> None:
    for a, b in (pair, pair[::-1]):
        check_renyi(a, b, order)


def check_renyi(p: Floats, q: Floats, order: float) -> None:
    value, exact = divergences.renyi_divergence(p, q, order), oracle.renyi_divergence(p, q, order)
    if exact == oracle.MP.inf:
        assert value == math.inf
    else:
        assert abs(float(value) - exact) <= CANCELLING * (1 + abs(exact)), (order, p, q)


@every_pair
def test_renyi_of_order_one_is_kl(pair: tuple[Floats, Floats]) -> None:
    assert divergences.renyi_divergence(*pair, 1) == divergences.kl_divergence(*pair)


@every_pair
@each("c", [0.0, 1e-300, 0.5, 1.0, 1.0000001, 3.0, 1e300])
def test_hockey_stick_at_fifty_digits(c: float, pair: tuple[Floats, Floats]) -> None:
    check_hockey_stick(*pair, c)


def check_hockey_stick(p: Floats, q: Floats, c: float) -> None:
    value, exact = divergences.hockey_stick(p, q, c), oracle.hockey_stick(p, q, c)
    # c q is rounded before p is taken off, so nearly equal weights leave an error relative to c, not to g.
    assert abs(oracle.MP.mpf(float(value)) - exact) <= RELATIVE * abs(exact) + 1e-16 * c


@every_pair
def test_hockey_stick_at_every_ratio_by_one_sort(pair: tuple[Floats, Floats]) -> None:
    """g(p_x/q_x) for all x at once equals the sum written out, to 1e-12 of 1 + g, the form the race uses."""
    for p, q in (pair, pair[::-1]):
        swept = hockey_stick_at_ratios(p, q, np)
        for x in range(min(len(p), SWEPT)):
            if q[x] == 0:
                assert swept[x] == (math.inf if p[x] > 0 else 0)
            else:
                exact = oracle.hockey_stick(p, q, p[x] / q[x])
                assert abs(float(swept[x]) - exact) <= RELATIVE * (1 + exact)


def test_kl_of_nearly_equal_pmfs_keeps_its_digits() -> None:
    """The naive sum of p log(p/q) has lost every digit where the library still has twelve."""
    p, q = PAIRS["nearly equal"]
    exact = oracle.kl_divergence(p, q)
    assert exact < 1e-17
    assert not close(np.sum(p * np.log(p / q)), exact, 0.1)
    assert close(divergences.kl_divergence(p, q), exact)


@pytest.mark.parametrize("size", [0.001, 0.01, 0.1])
def test_kl_keeps_its_digits_at_every_ratio(size: float) -> None:
    """Two tokens, one of them rare, its ratio swept through both ways the library sums a term."""
    q = np.array([size, 1 - size])
    for u in (*np.linspace(-0.99, 2, 150), *np.linspace(-0.22, 0.22, 45), 1e-3, -1e-5, 1e-9):
        p = np.array([size * (1 + u), 1 - size * (1 + u)])
        exact = oracle.kl_divergence(p, q)
        assert abs(float(divergences.kl_divergence(p, q)) - exact) <= RELATIVE * exact


# Array libraries


def test_weights_broadcast_with_the_pmfs() -> None:
    drafts, weights = np.random.default_rng(3).dirichlet(np.ones(5), size=3), np.array([0.5, 1.0, 2.0])
    single = [divergences.hockey_stick(drafts[0], q, c) for q, c in zip(drafts, weights, strict=True)]
    np.testing.assert_array_equal(divergences.hockey_stick(drafts[0], drafts, weights), single)


def test_lists_and_integers_become_double_precision() -> None:
    assert divergences.total_variation([1, 0], [0, 1]) == 1.0
    assert divergences.entropy(torch.tensor([0, 1])).dtype == torch.float64


# Bad input


def test_the_first_bad_entry_is_named_in_torch_too() -> None:
    with pytest.raises(PmfError, match=r"pmf\[1, 0\] is -0\.5"):
        validate_pmf(torch.tensor([[0.5, 0.5], [-0.5, 1.5]]))


@pytest.mark.parametrize(("off", "refused"), [(1e-9, False), (1e-7, True)])
def test_sums_are_checked_to_the_precision_of_the_array(off: float, refused: bool) -> None:
    pmf = np.array([0.5, 0.5 + off])
    if refused:
        with pytest.raises(PmfError):
            validate_pmf(pmf)
        validate_pmf(pmf.astype(np.float32))
    else:
        assert validate_pmf(pmf) is pmf


# Drawn pairs


@theorem
@given(pairs(), st.floats(0.001, 50))
def test_drawn_pairs_at_fifty_digits(pair: tuple[Floats, Floats], c: float) -> None:
    """Any pair, relative to the value however small: the ledger's draws end at ratios of 1e30 and errors of 1e-12."""
    for name in TWO_PMFS:
        floor = TINIEST if name in ("total_variation", "harmonic_mean_similarity") else NORMALISED
        assert close(getattr(divergences, name)(*pair), oracle.DIVERGENCES[name](*pair), floor=floor), name
    for name in ONE_PMF:
        assert close(getattr(divergences, name)(pair[0]), getattr(oracle, name)(pair[0]), floor=TINIEST), name
    for order in (0.25, *ORDERS):
        check_renyi(*pair, order)
    check_hockey_stick(*pair, c)


def test_a_wrong_formula_is_caught() -> None:
    """Negative control: KL with its arguments exchanged, entropy in bits and a dropped half all fail the oracle."""
    p, q = PAIRS["random"]
    assert not close(divergences.kl_divergence(q, p), oracle.kl_divergence(p, q), 1e-3)
    assert not close(divergences.entropy(p) / math.log(2), oracle.entropy(p), 1e-3)
    assert not close(2 * divergences.total_variation(p, q), oracle.total_variation(p, q), 1e-3)


@theorem
@given(pairs(max_tokens=6), st.sampled_from([1e-9, 0.3, 1 - 1e-12, 1 + 1e-12, 1.0001, 2.0, 40.0]), st.integers(0, 9))
def test_renyi_of_near_pmfs_and_orders_near_one(pair: tuple[Floats, Floats], order: float, digits: int) -> None:
    """Fifty digits wherever the pmfs differ by more than their rounding; never negative."""
    p, other = pair
    q = p + 10.0**-digits * (other - p)
    q = q / q.sum()
    value = float(divergences.renyi_divergence(p, q, order))
    assert value >= 0
    exact = oracle.renyi_divergence(p, q, order)
    distance = float(divergences.total_variation(p, q))
    if distance > 1e-12 and exact < 1e300:
        # The rounding of the entries, 1e-16, against their distance, to second order as the divergence itself.
        assert abs(value - exact) <= (RELATIVE + 64 * (1e-16 / distance) ** 2) * exact


def test_renyi_by_its_sum_alone_would_fail() -> None:
    """Negative control: the logarithm of the sum over order - 1 has no digit left at 1 - 1e-15."""
    p, q, order = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5]), 1 - 1e-15
    naive = np.log(np.sum(p**order * q ** (1 - order))) / (order - 1)
    kl = float(divergences.kl_divergence(p, q))
    assert abs(naive - kl) > 1e-2
    assert float(divergences.renyi_divergence(p, q, order)) == pytest.approx(kl, rel=1e-12)
