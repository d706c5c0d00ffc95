"""Y5, Y6: the loss of over-acceptance against linear programmes and at extreme pairs, in every array library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from spectheory import total_variation
from spectheory.errors import SettingError
from spectheory.limits import (
    bias_frontier,
    biased_loss,
    mean_bias_frontier,
    mixture_target,
    optimal_recovery,
    rejection_probability,
    uno_loss,
)
from spectheory.verification import TokenVerification
from tests.made_up import each

ROUNDING = 1e-12
"""Sums of a few terms of order one."""

PROGRAMME = 1e-6
"""HiGHS takes a constraint for met within 1e-7; each programme here has at most a dozen."""

PAIRS = extreme_pairs()


# Linear programmes


def random_pair(seed: int, tokens: int) -> tuple[Floats, Floats, Floats]:
    """Target, draft and an admissible acceptance, all random."""
    rng = np.random.default_rng([seed, tokens])
    p, q = rng.dirichlet(np.full(tokens, rng.choice([0.2, 1.0])), 2)
    least = np.minimum(1, p / q)
    return p, q, least + (1 - least) * rng.choice([0.0, 1.0, rng.random()], tokens)


def least_loss(p: Floats, kept: Floats, q: Floats, rejected: float | None) -> float:
    """The least TV(a + s, p) over s >= 0 and, where `rejected` is given, over 0 <= a <= q with sum(a) = 1 - rejected.

    Unknowns (a, s, t): t >= |a + s - p| entrywise, sum(a + s) = 1; the objective is sum(t)/2. Without `rejected`, a is
    fixed to `kept`.
    """
    size, eye, zero = len(p), np.eye(len(p)), np.zeros(len(p))
    above, below = np.hstack([eye, eye, -eye]), np.hstack([-eye, -eye, -eye])
    sums = [np.concatenate([zero + 1, zero + 1, zero]), np.concatenate([zero + 1, zero, zero])]
    of_a = [(0, float(share)) for share in q] if rejected is not None else [(float(a), float(a)) for a in kept]
    solved = linprog(
        np.repeat([0, 0, 0.5], size),
        A_ub=np.vstack([above, below]),
        b_ub=np.concatenate([p, -p]),
        A_eq=np.array(sums),
        b_eq=[1, 1 - rejected if rejected is not None else kept.sum()],
        bounds=of_a + [(0, None)] * (2 * size),
        method="highs",
    )
    assert solved.status == 0
    return float(solved.fun)


@each("tokens", [2, 3, 6])
@each("seed", range(12))
def test_no_recovery_law_loses_less(seed: int, tokens: int) -> None:
    """Y5 as a linear programme over recovery laws, for random pmfs and acceptances."""
    p, q, b = random_pair(seed, tokens)
    assert biased_loss(p, q, b) == pytest.approx(least_loss(p, b * q, q, None), abs=PROGRAMME)


@each("tokens", [2, 3, 6])
@each("seed", range(6))
def test_no_rule_at_all_beats_the_front(seed: int, tokens: int) -> None:
    """Y6 as a linear programme over acceptances b in [0, 1], below min(1, p/q) too, and recovery laws jointly."""
    p, q, _ = random_pair(seed, tokens)
    front = bias_frontier(p, q, points=5)
    for reject, loss in zip(front.reject, front.loss, strict=True):
        assert loss == pytest.approx(least_loss(p, q, q, float(reject)), abs=PROGRAMME)
    # Rejecting more than TV gains nothing.
    assert least_loss(p, q, q, min(1.0, float(front.reject[0]) + 0.1)) == pytest.approx(0, abs=PROGRAMME)


# The front and its mixture


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_the_front_is_one_family(name: str) -> None:
    """Its ends, its sum TV, and its numbers from the general formulas at b = (1 - theta) min(1, p/q) + theta."""
    p, q = PAIRS[name]
    tv = float(total_variation(p, q))
    front = bias_frontier(p, q, points=6)
    np.testing.assert_allclose(front.theta, [0, 0.2, 0.4, 0.6, 0.8, 1], rtol=1e-15)
    assert front.uno is not None
    np.testing.assert_allclose(front.reject + front.loss, tv, rtol=0, atol=ROUNDING)
    assert (front.loss[0], front.reject[-1]) == (0, 0)
    least = np.divide(p, q, out=np.ones_like(p), where=q > p)
    for theta, reject, loss, uno in zip(front.theta, front.reject, front.loss, front.uno, strict=True):
        accept = (1 - theta) * least + theta
        assert rejection_probability(p, q, accept) == pytest.approx(reject, abs=ROUNDING)
        assert biased_loss(p, q, accept) == pytest.approx(loss, abs=ROUNDING)
        assert uno_loss(p, q, accept) == pytest.approx(uno, abs=ROUNDING)
        assert uno >= loss - ROUNDING
    assert front.uno[-1] == pytest.approx(tv, abs=ROUNDING)


@theorem
@given(pairs(), st.floats(0, 1))
def test_the_mixture_carries_token_verification_over(pair: tuple[Floats, Floats], theta: float) -> None:
    """Acceptance of token verification for the mixture is 1 - (1 - theta) TV, and its law loses theta TV."""
    p, q = pair
    mixture, tv = mixture_target(p, q, theta), float(total_variation(p, q))
    assert TokenVerification().acceptance(mixture, q) == pytest.approx(1 - (1 - theta) * tv, abs=ROUNDING)
    assert total_variation(mixture, p) == pytest.approx(theta * tv, abs=ROUNDING)


# Means, shapes, libraries


def test_the_mean_front_is_the_mean_of_the_fronts() -> None:
    rng = np.random.default_rng(6)
    p, q = rng.dirichlet(np.ones(5), (2, 4, 3))
    each, mean = bias_frontier(p, q, points=4), mean_bias_frontier(total_variation(p, q), points=4)
    np.testing.assert_allclose(mean.reject, each.reject.mean(axis=(0, 1)), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(mean.loss, each.loss.mean(axis=(0, 1)), rtol=0, atol=ROUNDING)
    assert mean.uno is None
    # A theta of its own at each position: the same line.
    thetas = rng.random((4, 3))
    tv = np.asarray(total_variation(p, q))
    reject, loss = ((1 - thetas) * tv).mean(), (thetas * tv).mean()
    assert np.interp(reject, mean.reject[::-1], mean.loss[::-1]) == pytest.approx(loss, abs=ROUNDING)


def test_accept_and_theta_broadcast_with_the_pmfs() -> None:
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(5), size=(4, 1)), rng.dirichlet(np.ones(5), size=3)
    accept, thetas = np.ones((6, 1, 1, 5)), rng.random((4, 3))
    for function in (biased_loss, uno_loss, rejection_probability):
        assert function(p, q, accept).shape == (6, 4, 3)
    assert optimal_recovery(p, q, accept).shape == (6, 4, 3, 5)
    mixed = mixture_target(p, q, thetas)
    np.testing.assert_array_equal(mixed[1, 2], mixture_target(p[1, 0], q[2], float(thetas[1, 2])))


def test_the_most_extreme_acceptances() -> None:
    """No rejection at all, no overlap, equal pmfs: nothing is divided by zero."""
    for p, q in PAIRS.values():
        ones = np.ones_like(p)
        assert biased_loss(p, q, ones) == pytest.approx(float(total_variation(p, q)), abs=ROUNDING)
        assert uno_loss(p, q, ones) == pytest.approx(float(total_variation(p, q)), abs=ROUNDING)
        assert rejection_probability(p, q, ones) == 0
        assert optimal_recovery(p, q, ones).sum() == pytest.approx(1, abs=ROUNDING)
        with np.errstate(over="ignore"):
            least = np.where(q > p, p / np.where(q > 0, q, 1), q > 0)
        assert biased_loss(p, q, least) == pytest.approx(0, abs=ROUNDING)
        assert rejection_probability(p, q, least) == pytest.approx(float(total_variation(p, q)), abs=ROUNDING)
    np.testing.assert_array_equal(optimal_recovery([0.5, 0.5], [0.5, 0.5], [1, 1]), [0.5, 0.5])


def test_an_acceptance_may_miss_its_limits_by_its_rounding_alone() -> None:
    p, q = np.array([0.3, 0.7]), np.array([0.9, 0.1])
    ends = np.array([p[0] / q[0], 1.0])
    for accept in (ends, np.nextafter(ends, 0), np.nextafter(ends, 2)):
        assert rejection_probability(p, q, accept) == pytest.approx(0.6, abs=ROUNDING)
    for shift in ([-1e-9, 0], [0, 1e-9]):
        with pytest.raises(SettingError):
            biased_loss(p, q, ends + shift)
