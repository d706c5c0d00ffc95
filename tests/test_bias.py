"""Y5, Y6: the loss of over-acceptance against definitions in fractions, linear programmes and whole algorithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from proofs_check import enumeration
from proofs_check.enumeration import Model, Pmf, Prefix, normalised, positive_part
from proofs_check.strategies import Floats, extreme_pairs, pairs, theorem
from spectheory import total_variation
from spectheory.errors import PmfError, SettingError, ShapeError, SpectheoryError
from spectheory.limits import (
    bias_frontier,
    biased_loss,
    expected_rejections,
    mean_bias_frontier,
    mixture_target,
    optimal_recovery,
    rejection_probability,
    uno_loss,
)
from spectheory.verification import TokenVerification

ROUNDING = 1e-12
"""Sums of a few terms of order one."""

PROGRAMME = 1e-6
"""HiGHS takes a constraint for met within 1e-7; each programme here has at most a dozen."""

PAIRS = extreme_pairs()


# One position in fractions: the output law itself, not its formulas


def grid_pmfs(tokens: int, total: int) -> list[Pmf]:
    cells = [cell for cell in product(range(total + 1), repeat=tokens) if sum(cell) == total]
    return [tuple(Fraction(weight, total) for weight in cell) for cell in cells]


def distance(p: Pmf, q: Pmf) -> Fraction:
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def acceptances(p: Pmf, q: Pmf, rng: np.random.Generator) -> Pmf:
    """A random b between min(1, p/q) and 1; each end is drawn often."""
    chosen = []
    for a, b in zip(p, q, strict=True):
        least = min(Fraction(1), a / b) if b > 0 else Fraction(0)
        chosen.append(least + (1 - least) * Fraction(int(rng.integers(5)), 4))
    return tuple(chosen)


def output(q: Pmf, accept: Pmf, recovery: Pmf) -> tuple[Fraction, Pmf]:
    """Run the rule once: the probability of a rejection and the law of the output."""
    rejected = sum(((1 - b) * share for b, share in zip(accept, q, strict=True)), Fraction(0))
    law = tuple(b * share + rejected * r for b, share, r in zip(accept, q, recovery, strict=True))
    return rejected, law


def floats(pmf: Pmf) -> Floats:
    return np.array([float(share) for share in pmf])


def fraction_cases(tokens: int, total: int) -> list[tuple[Pmf, Pmf, Pmf]]:
    rng = np.random.default_rng(total)
    every = grid_pmfs(tokens, total)
    return [(p, q, acceptances(p, q, rng)) for p in every for q in every]


@pytest.mark.parametrize(("tokens", "total"), [(1, 1), (2, 6), (3, 4), (4, 2)])
def test_losses_are_those_of_the_output_laws(tokens: int, total: int) -> None:
    """OPT and UNO as what comes out when the rule is run; Y6; OPT's formula of the theory page, UNO's too."""
    for p, q, b in fraction_cases(tokens, total):
        p_, q_, b_ = floats(p), floats(q), floats(b)
        recovery = optimal_recovery(p_, q_, b_)
        kept = tuple(x * y for x, y in zip(b, q, strict=True))
        excess = positive_part(p, kept)
        best = normalised(excess) if sum(excess) > 0 else p
        np.testing.assert_allclose(recovery, floats(best), rtol=0, atol=ROUNDING)
        rejected, law = output(q, b, best)
        loss = distance(law, p)
        assert rejected + loss == distance(p, q)
        assert loss == distance(p, kept) - rejected / 2
        assert biased_loss(p_, q_, b_) == pytest.approx(float(loss), abs=ROUNDING)
        assert rejection_probability(p_, q_, b_) == pytest.approx(float(rejected), abs=ROUNDING)
        _, uno_law = output(q, b, p)
        assert uno_loss(p_, q_, b_) == pytest.approx(float(distance(uno_law, p)), abs=ROUNDING)
        assert loss <= distance(uno_law, p) <= distance(p, q)


def test_every_law_between_zero_and_a_is_optimal_and_no_other() -> None:
    """A random law with 0 <= r <= A on {A >= 0} reaches the least loss; one that leaves the range loses more."""
    rng = np.random.default_rng(3)
    inside = outside = 0
    for p, q, b in fraction_cases(3, 6):
        rejected, _ = output(q, b, p)
        if rejected == 0:
            continue
        kept = tuple(x * y for x, y in zip(b, q, strict=True))
        most = tuple(share / rejected for share in positive_part(p, kept))  # A where it is positive, else 0
        least = distance(output(q, b, normalised(most))[1], p)
        draw = normalised(tuple(Fraction(int(w)) for w in rng.integers(1, 5, 3)))
        for law in (draw, *fill(most)):
            loss = distance(output(q, b, law)[1], p)
            optimal = all(r <= limit for r, limit in zip(law, most, strict=True))
            assert (loss == least) == optimal
            inside, outside = inside + optimal, outside + (not optimal)
    assert min(inside, outside) > 100


def fill(most: Pmf) -> list[Pmf]:
    """Extreme laws of {0 <= r <= most, sum 1}: fill the tokens up in order, forwards and backwards."""
    laws = []
    for order in (range(len(most)), reversed(range(len(most)))):
        left, law = Fraction(1), [Fraction(0)] * len(most)
        for x in order:
            law[x] = min(left, most[x])
            left -= law[x]
        laws.append(tuple(law))
    return laws


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


@pytest.mark.parametrize("tokens", [2, 3, 6])
@pytest.mark.parametrize("seed", range(12))
def test_no_recovery_law_loses_less(seed: int, tokens: int) -> None:
    """Y5 as a linear programme over recovery laws, for random pmfs and acceptances."""
    p, q, b = random_pair(seed, tokens)
    assert biased_loss(p, q, b) == pytest.approx(least_loss(p, b * q, q, None), abs=PROGRAMME)


@pytest.mark.parametrize("tokens", [2, 3, 6])
@pytest.mark.parametrize("seed", range(6))
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


def test_recovering_from_the_target_is_a_bias_that_buys_nothing() -> None:
    """Negative control: at the unbiased acceptance OPT loses nothing, UNO half of what it could."""
    front = bias_frontier([0.5, 0.5], [0.75, 0.25], points=2)
    assert front.uno is not None
    assert front.loss[0] == 0
    assert front.uno[0] == pytest.approx(0.125, abs=ROUNDING)
    uno = uno_loss([0.5, 0.5], [0.75, 0.25], [2 / 3, 1.0])
    assert rejection_probability([0.5, 0.5], [0.75, 0.25], [2 / 3, 1.0]) + uno > 0.25 + 0.1, "above the front"


THETAS = [Fraction(0), Fraction(1, 3), Fraction(3, 4), Fraction(1)]


@pytest.mark.parametrize("theta", THETAS, ids=str)
def test_over_acceptance_is_token_verification_of_a_mixture(theta: Fraction) -> None:
    """Y6 in fractions: b = min(1, m/q) with m = (1-theta) p + theta q, one recovery law, output exactly m."""
    for p in grid_pmfs(3, 4):
        for q in grid_pmfs(3, 4):
            mixture = tuple((1 - theta) * a + theta * b for a, b in zip(p, q, strict=True))
            one = Fraction(1)
            least = [min(one, a / b) if b > 0 else one for a, b in zip(p, q, strict=True)]
            accept = tuple((1 - theta) * least_x + theta for least_x in least)
            assert accept == tuple(min(one, m / b) if b > 0 else one for m, b in zip(mixture, q, strict=True))
            excess = positive_part(p, q)
            recovery = normalised(excess) if sum(excess) > 0 else p
            if theta < 1 and sum(excess) > 0:
                assert recovery == normalised(positive_part(mixture, q))
            rejected, law = output(q, accept, recovery)
            assert law == mixture
            assert rejected == (1 - theta) * distance(p, q)
            assert distance(law, p) == theta * distance(p, q)
            value = mixture_target(floats(p), floats(q), float(theta))
            np.testing.assert_allclose(value, floats(mixture), rtol=0, atol=ROUNDING)


@theorem
@given(pairs(), st.floats(0, 1))
def test_the_mixture_carries_token_verification_over(pair: tuple[Floats, Floats], theta: float) -> None:
    """Acceptance of token verification for the mixture is 1 - (1 - theta) TV, and its law loses theta TV."""
    p, q = pair
    mixture, tv = mixture_target(p, q, theta), float(total_variation(p, q))
    assert TokenVerification().acceptance(mixture, q) == pytest.approx(1 - (1 - theta) * tv, abs=ROUNDING)
    assert total_variation(mixture, p) == pytest.approx(theta * tv, abs=ROUNDING)


def made_up(which: int, seed: int) -> Model:
    """A model of the last token and the position, zeros among its entries."""

    @cache
    def at(position: int, last: int) -> Pmf:
        rng = np.random.default_rng([seed, which, position, last])
        weights = rng.integers(0, 4, 3)
        weights[rng.integers(3)] += 1
        return normalised(tuple(Fraction(int(weight)) for weight in weights))

    return lambda prefix: at(len(prefix), prefix[-1] if prefix else 0)


def biased_coupling(theta: Fraction) -> enumeration.Coupling:
    """(draft, output) of one over-accepting step; a rejected draft is never what is recovered."""

    def coupling(p: Pmf, q: Pmf) -> dict[tuple[int, int], Fraction]:
        excess = positive_part(p, q)
        recovery = normalised(excess) if sum(excess) > 0 else p
        joint: dict[tuple[int, int], Fraction] = {}
        for i, share in enumerate(q):
            if share > 0:
                accept = (1 - theta) * min(Fraction(1), p[i] / share) + theta
                joint[i, i] = share * accept
                for j, recovered in enumerate(recovery):
                    if accept < 1 and recovered > 0:
                        assert i != j
                        joint[i, j] = share * (1 - accept) * recovered
        return joint

    return coupling


@pytest.mark.parametrize("theta", THETAS, ids=str)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_sequence_follows_the_mixture_chain(seed: int, theta: Fraction) -> None:
    """Whole texts of the biased rule: exactly the law of token verification with the mixture as its target.

    Their rejections are Y1 of the mixture chain, which the sum of (1 - theta) TV along *target* texts is not.
    """
    target, draft, steps = made_up(1, seed), made_up(2, seed), 3

    def mixture(prefix: Prefix) -> Pmf:
        return tuple((1 - theta) * a + theta * b for a, b in zip(target(prefix), draft(prefix), strict=True))

    biased = enumeration.coupled_verification(biased_coupling(theta))
    decoding = enumeration.Decoding(biased, k=steps, length=steps, spare=0)
    law = decoding.law(target, draft)
    lossless = enumeration.Decoding(enumeration.token_verification, k=steps, length=steps, spare=0)
    assert {key: share for key, share in law.items() if share > 0} == lossless.law(mixture, draft)
    assert enumeration.output_law(law) == {t: s for t, s in enumeration.text_law(mixture, steps).items() if s > 0}
    rejections = Fraction(0)
    for (_, accepted), share in law.items():
        rejections += share * (len(accepted) - int(sum(accepted) + len(accepted) > steps))

    def arrays(model: Model) -> Floats:
        """Position n sees n tokens, the last of them x; the first sees none, whatever x."""
        rows = [[model(()) if n == 0 else model((*([0] * (n - 1)), x)) for x in range(3)] for n in range(steps)]
        return np.array([[floats(row) for row in matrix] for matrix in rows])

    p, q = arrays(target), arrays(draft)
    chain_mixture = mixture_target(p, q, float(theta))
    exact = expected_rejections(chain_mixture, q, [1, 0, 0])
    assert exact == pytest.approx(float(rejections), abs=ROUNDING)
    along_target = (1 - float(theta)) * float(expected_rejections(p, q, [1, 0, 0]))
    if 0 < theta < 1:
        assert abs(along_target - float(rejections)) > 1e-3, "negative control: prefixes follow the biased law"


# Means, shapes, libraries


def test_the_mean_front_is_the_mean_of_the_fronts() -> None:
    rng = np.random.default_rng(6)
    p, q = rng.dirichlet(np.ones(5), (2, 4, 3))
    each, mean = bias_frontier(p, q, points=4), mean_bias_frontier(total_variation(p, q), points=4)
    np.testing.assert_allclose(mean.reject, each.reject.mean(axis=(0, 1)), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(mean.loss, each.loss.mean(axis=(0, 1)), rtol=0, atol=ROUNDING)
    assert mean.uno is None
    # A theta of its own at each position: the same line.
    own = rng.random((4, 3))
    tv = np.asarray(total_variation(p, q))
    reject, loss = ((1 - own) * tv).mean(), (own * tv).mean()
    assert np.interp(reject, mean.reject[::-1], mean.loss[::-1]) == pytest.approx(loss, abs=ROUNDING)


def test_leading_dimensions_broadcast() -> None:
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(5), size=(4, 1)), rng.dirichlet(np.ones(5), size=3)
    front = bias_frontier(p, q, points=3)
    assert front.uno is not None
    assert front.theta.shape == (3,)
    assert front.reject.shape == front.loss.shape == front.uno.shape == (4, 3, 3)
    one = bias_frontier(p[2, 0], q[1], points=3)
    np.testing.assert_allclose(front.uno[2, 1], np.asarray(one.uno), rtol=1e-14)
    accept = np.ones((6, 1, 1, 5))
    for function in (biased_loss, uno_loss, rejection_probability):
        assert function(p, q, accept).shape == (6, 4, 3)
    assert optimal_recovery(p, q, accept).shape == (6, 4, 3, 5)
    thetas = rng.random((4, 3))
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


def test_torch_and_the_strict_array_api_give_the_same() -> None:
    strict = pytest.importorskip("array_api_strict")
    p, q, b = random_pair(5, 6)
    front = bias_frontier(p, q, points=3)
    for convert in (torch.from_numpy, strict.asarray):
        arrays = target, draft, _ = (convert(p), convert(q), convert(b))
        for function in (biased_loss, rejection_probability, uno_loss):
            value = function(*arrays)
            assert type(value) is type(target)
            assert float(value) == pytest.approx(float(function(p, q, b)), abs=ROUNDING)
        for name in ("theta", "reject", "loss", "uno"):
            values = getattr(bias_frontier(target, draft, points=3), name)
            assert type(values) is type(target)
            np.testing.assert_allclose([float(v) for v in values], getattr(front, name), rtol=0, atol=ROUNDING)
        law = optimal_recovery(*arrays)
        np.testing.assert_allclose([float(v) for v in law], optimal_recovery(p, q, b), rtol=0, atol=ROUNDING)
        assert type(mixture_target(target, draft, 0.5)) is type(target)
        assert type(mean_bias_frontier(target).loss) is type(target)
    single = bias_frontier(torch.from_numpy(p).float(), torch.from_numpy(q).float())
    assert {single.theta.dtype, single.reject.dtype, single.loss.dtype} == {torch.float32}


def test_an_acceptance_may_miss_its_limits_by_its_rounding_alone() -> None:
    p, q = np.array([0.3, 0.7]), np.array([0.9, 0.1])
    ends = np.array([p[0] / q[0], 1.0])
    for accept in (ends, np.nextafter(ends, 0), np.nextafter(ends, 2)):
        assert rejection_probability(p, q, accept) == pytest.approx(0.6, abs=ROUNDING)
    for shift in ([-1e-9, 0], [0, 1e-9]):
        with pytest.raises(SettingError):
            biased_loss(p, q, ends + shift)


# Bad input

FAIR, LEAN = [0.5, 0.5], [0.75, 0.25]
BAD: dict[str, tuple[Callable[[], Any], type[SpectheoryError], str]] = {
    "below": (
        lambda: biased_loss(FAIR, LEAN, [0.5, 1.0]),
        SettingError,
        "accept[0] is 0.5: must be in [min(1, p/q), 1] = [0.666667, 1]",
    ),
    "above": (lambda: uno_loss(FAIR, LEAN, [1.0, 1.1]), SettingError, "accept[1] is 1.1"),
    "in a batch": (
        lambda: optimal_recovery([FAIR, FAIR], LEAN, [[1, 1], [1, 0.9]]),
        SettingError,
        "accept[1, 1] is 0.9: must be in [min(1, p/q), 1] = [1, 1]",
    ),
    "nan": (lambda: rejection_probability(FAIR, LEAN, [math.nan, 1]), SettingError, "accept[0] is nan"),
    "negative": (lambda: biased_loss([1, 0], [1, 0], [1, -0.5]), SettingError, "accept[1] is -0.5"),
    "scalar": (lambda: biased_loss(FAIR, LEAN, 1.0), ShapeError, "accept has shape ()"),
    "one for all": (lambda: biased_loss(FAIR, LEAN, [1.0]), ShapeError, "accept has shape (1,)"),
    "leading": (lambda: biased_loss([FAIR] * 3, LEAN, [[1, 1]] * 2), ShapeError, "accept has shape (2, 2)"),
    "pmf": (lambda: bias_frontier([0.5, 0.6], LEAN), PmfError, "target sums to 1.1"),
    "vocabulary": (lambda: bias_frontier(FAIR, [1.0]), ShapeError, "target has 2 tokens and draft 1"),
    "points": (lambda: bias_frontier(FAIR, LEAN, points=1), SettingError, "points is 1: must be >= 2"),
    "mean points": (lambda: mean_bias_frontier([0.5], points=0), SettingError, "points is 0"),
    "theta": (lambda: mixture_target(FAIR, LEAN, 1.5), SettingError, "theta is 1.5: must be in [0, 1]"),
    "theta nan": (lambda: mixture_target(FAIR, LEAN, math.nan), SettingError, "theta is nan"),
    "distance": (lambda: mean_bias_frontier([[0.5, -0.5]]), SettingError, "total_variation[0, 1] is -0.5"),
    "no position": (lambda: mean_bias_frontier([]), SettingError, "there is no position"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_named_in_one_line(case: str) -> None:
    call, error, fragment = BAD[case]
    with pytest.raises(error) as caught:
        call()
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)
