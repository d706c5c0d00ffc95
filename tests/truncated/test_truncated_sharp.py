"""§9 where masses are tiny: no completion leaves KL, chi-square or Rényi; the best completion itself would be left."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import Floats, pairs, theorem
from spectheory import truncated
from spectheory.distributions import ratio
from spectheory.intervals import Interval
from spectheory.truncated import TopLogProbs, divergences
from spectheory.truncated.completions import best_completion
from spectheory.truncated.divergences import _least_renyi_divergence
from spectheory.truncated.top import rounding_slack

EDGE = 4e-15
"""Rounding of a definition's own sum, relative above 1."""

ATTAINED = 1e-10
"""The ends give way by 1e-14 of every mass, steep quantities by some hundred times that."""

TINIEST = 1e-300
"""Smallest probability here: the lists hold no log-probability below -708."""

FEW, SHARP = 1_000, 7_000
"""Sharp pairs; evaluated at the best completion itself, 33 of them all leave their interval, of few some at each order.
"""

Pair = tuple[Floats, Floats]


def renyi(p: Floats, q: Floats, order: float) -> float:
    """By definition, at orders 1 and infinity too."""
    if order >= 1 and np.any((p > 0) & (q == 0)):
        return math.inf
    both = (p > 0) & (q > 0)
    if not both.any():
        return math.inf
    logs = np.log(p[both]) - np.log(q[both])
    if order == math.inf:
        return float(logs.max())
    if order == 1:
        return math.fsum(p[both] * logs)
    return float(np.logaddexp.reduce(np.log(p[both]) + (order - 1) * logs)) / (order - 1)


def chi_square(p: Floats, q: Floats) -> float:
    if np.any((p > 0) & (q == 0)):
        return math.inf
    with np.errstate(over="ignore"):
        return float(sum((a - b) * ((a - b) / b) for a, b in zip(p, q, strict=True) if b > 0))


ORDERS = (0.5, 1.0, 1.5, 2.0, 7.0, math.inf)

ALL: dict[str, tuple[Callable[[TopLogProbs, TopLogProbs], Interval], Callable[[Floats, Floats], float]]] = {
    "chi square": (truncated.chi_square, chi_square),
    **{
        f"order {order:g}": (
            lambda t, d, order=order: truncated.renyi_divergence(t, d, order),
            lambda p, q, order=order: renyi(p, q, order),
        )
        for order in ORDERS
    },
}


def holds(interval: Interval, value: float) -> bool:
    if interval.kind == "exact":
        return interval.best == value or math.isclose(interval.best, value, rel_tol=1e-12, abs_tol=1e-12)
    edge = EDGE * max(1.0, value) if value < math.inf else 0.0
    return interval.low - edge <= value <= interval.high + edge


def plain_low(target: TopLogProbs, draft: TopLogProbs, order: float) -> float:
    """The wrong way: the divergence of the best completion as floats have it, less its slack in total variation.

    The unseen masses are taken at the ends of their ranges that make it small.
    """
    target, draft = copy(target), copy(draft)
    object.__setattr__(target, "unseen", target.unseen_range[0])
    object.__setattr__(draft, "unseen", draft.unseen_range[1])
    p, q = best_completion(target, draft)
    masses, ratios = p[p > 0], ratio(p, q, np)[p > 0]
    slack, logs = rounding_slack(target, draft), np.log(ratios)
    factor = 1.0 if order in (1, math.inf) else (1 + order) / abs(order - 1)
    finite = np.abs(logs[logs < math.inf]).max(initial=0.0)
    if order == 1:
        value = float(np.sum(masses * logs))
    elif order == math.inf:
        value = float(logs.max())
    else:
        value = float(np.logaddexp.reduce(np.log(masses) + (order - 1) * logs)) / (order - 1)
    return value - factor * (3 - 2 * math.log(slack) + float(finite)) * slack


def cut(rng: np.random.Generator, p: Floats, extra: bool = True) -> TopLogProbs:
    """A list of random length, and sometimes one token more."""
    tokens = len(p)
    asked = rng.integers(0, tokens, size=int(extra and rng.random() < 0.3))
    return TopLogProbs.from_pmf(p, int(rng.integers(1, tokens + 1)), asked)


def sharp_pmf(rng: np.random.Generator, tokens: int) -> Floats:
    """Weights over 2, 40 or 300 decades or on a grid of 12, a fifth of them 0."""
    kind = rng.integers(4)
    decades = rng.integers(0, 4, tokens) * 12.0 if kind == 3 else rng.uniform(0, (2, 40, 299)[kind], tokens)
    weights = 10.0 ** (decades.min() - decades) * (rng.random(tokens) > 0.2)
    if not weights.any():
        weights[0] = 1.0
    p = weights / weights.sum()
    return np.where(p < TINIEST, 0.0, p)


def sharp_pair(rng: np.random.Generator) -> Pair:
    """Independent, equal or permuted."""
    tokens, kind = int(rng.integers(3, 6)), rng.random()
    p = sharp_pmf(rng, tokens)
    return p, p if kind < 0.3 else rng.permutation(p) if kind < 0.5 else sharp_pmf(rng, tokens)


def some_completion(top: TopLogProbs, rng: np.random.Generator) -> Floats:
    """A mixture of up to three tails that fill one token after the other to the cap, or one of them."""
    p = np.zeros(top.vocabulary)
    p[top.known] = top.probabilities
    unseen = np.setdiff1d(np.arange(top.vocabulary), top.known)
    shares = rng.dirichlet(np.ones(int(rng.integers(1, 4))))
    for share in shares:
        left = top.unseen
        for token in rng.permutation(unseen):
            p[token] += share * min(top.cap, left)
            left -= min(top.cap, left)
    return p


# The pairs that were left


@pytest.mark.parametrize("name", ALL)
def test_equal_pmfs_may_be_equal(name: str) -> None:
    """Truth is 0; 1e-17 of target mass on a token with 1e-36 of draft mass made it 770."""
    x = np.array([0.9, 0.1, 1e-36, 0.0])
    assert ALL[name][0](TopLogProbs.from_pmf(x, 1), TopLogProbs.from_pmf(x, 3)).low == 0.0


@pytest.mark.parametrize("c", [1e-10, 1e-18, 1e-36, 1e-150, 1e-300])
@pytest.mark.parametrize("s", [0.1, 0.4])
def test_a_cap_next_to_nothing(c: float, s: float) -> None:
    """The draft's capped mass belongs on the target's token; put elsewhere it made all of these infinite.

    In the best completion q = c there, and the rest of p lies on the draft's first token.
    """
    p, q = np.array([0, s, 1 - s, 0.0]), np.array([c, c, c, 1 - 3 * c])
    target, draft = TopLogProbs.from_pmf(p, 1), TopLogProbs.from_pmf(q, 2)
    lows = {name: interval(target, draft).low for name, (interval, _) in ALL.items()}
    for name, (_, slow) in ALL.items():
        assert lows[name] <= slow(p, q), name
    best_p, best_q = np.array([1 - s, s * (1 - 2 * c), s * 2 * c]), np.array([c, 1 - 3 * c, 2 * c])
    for name, (_, slow) in ALL.items():
        assert lows[name] == pytest.approx(slow(best_p, best_q), rel=ATTAINED), name


@pytest.mark.parametrize("dust", [1e-20, 1e-36, 1e-300])
def test_dust_that_the_draft_knows(dust: float) -> None:
    """The target's unseen mass follows the draft in proportion, 1e-17 of it or less on the dust."""
    target = TopLogProbs([0], [math.log(0.9)], 4)
    draft = TopLogProbs([0, 1, 2, 3], np.log([0.95, 0.05, dust, dust]), 4)
    best_p, best_q = np.array([0.9, 0.1]), np.array([0.95, 0.05])
    for name, (interval, slow) in ALL.items():
        assert interval(target, draft).low == pytest.approx(slow(best_p, best_q), rel=ATTAINED), name


def test_infinite_only_where_it_is_sure() -> None:
    """Target mass on a token known to be impossible for the draft, or more than the possible ones can hold."""
    closed = TopLogProbs([0, 1, 2], [math.log(0.5), math.log(0.5), -math.inf], 5)
    known = TopLogProbs([2], [math.log(0.5)], 5)
    forced = TopLogProbs([0], [math.log(0.4)], 5)  # token 1 holds .4 of the other .6
    free = TopLogProbs([0], [math.log(0.6)], 5)
    for order in ORDERS[1:]:
        assert _least_renyi_divergence(known, closed, order) == math.inf
        assert _least_renyi_divergence(forced, closed, order) == math.inf
        assert _least_renyi_divergence(free, closed, order) < 1
    assert _least_renyi_divergence(known, closed, 0.5) < math.inf


@pytest.mark.parametrize("error", [0.0, 1e-6, 1e-2])
def test_no_order_is_too_large(error: float) -> None:
    """Below order infinity by at most its distance in the truth; a stated error costs each log-ratio some of it."""
    p, q = np.array([0.5, 0.25, 0.125, 0.125]), np.array([0.125, 0.25, 0.25, 0.375])
    target, draft = (TopLogProbs([0, 1], np.log(x[[0, 1]]), 4, error=error) for x in (p, np.sort(q)[::-1]))
    lows = [_least_renyi_divergence(target, draft, order) for order in (2.0, 30.0, 1e3, 9e5, 1.1e6, 1e12, math.inf)]
    assert all(low > 0 for low in lows)
    known = math.log(0.5 / 0.375)
    for order, low in zip((9e5, 1.1e6, 1e12, math.inf), lows[3:], strict=True):
        assert known - 10 * error - math.log(4) / order - 1e-6 < low <= known


# Certain


@pytest.mark.parametrize("pairs", [FEW, pytest.param(SHARP, marks=pytest.mark.evidence)])
def test_sharp_pairs_stay_inside(pairs: int) -> None:
    """Every quantity in turn, both pmfs as the truth; other completions of every tenth pair."""
    rng = np.random.default_rng(1)
    every = list(ALL.items())
    for i in range(pairs):
        p, q = sharp_pair(rng)
        target, draft = cut(rng, p), cut(rng, q)
        name, (interval, slow) = every[i % len(every)]
        ends = interval(target, draft)
        assert holds(ends, slow(p, q)), (name, p, q, target, draft, ends)
        for _ in range(5 * (i % 10 == 0)):
            p, q = some_completion(target, rng), some_completion(draft, rng)
            assert holds(ends, slow(p, q)), (name, p, q, target, draft, ends)


def test_the_plain_completion_is_left() -> None:
    """Negative control on the first of these pairs, at every order."""
    rng = np.random.default_rng(1)
    left = dict.fromkeys(ORDERS[1:], 0)
    for _ in range(FEW):
        if all(left.values()):
            break
        p, q = sharp_pair(rng)
        target, draft = cut(rng, p), cut(rng, q)
        for order in left:
            truth = renyi(p, q, order)
            left[order] += plain_low(target, draft, order) > truth + EDGE * max(1.0, truth)
    assert all(count > 0 for count in left.values()), left


def low_temperature(rng: np.random.Generator, *, equal: bool, tokens: int = 1000) -> Pair:
    """Softmaxes of normal logits at temperature 0.1: of one model with deviation 2, or of two with deviation 3."""
    first, second = rng.standard_normal((2, tokens))
    logits = (20 * first, 20 * first) if equal else (30 * first, 30 * second)
    grown = [np.exp(x - x.max()) for x in logits]
    return grown[0] / grown[0].sum(), grown[1] / grown[1].sum()


@pytest.mark.parametrize("equal", [True, False])
def test_low_temperature_stays_inside(equal: bool) -> None:
    rng = np.random.default_rng(2)
    left = 0
    for _ in range(25):
        p, q = low_temperature(rng, equal=equal)
        for m in (1, 5, 20):
            for n in (5, 20):
                target, draft = TopLogProbs.from_pmf(p, m), TopLogProbs.from_pmf(q, n)
                for order in (1.0, 2.0, math.inf):
                    ends, truth = truncated.renyi_divergence(target, draft, order), renyi(p, q, order)
                    assert holds(ends, truth), (m, n, order, ends, truth)
                    left += plain_low(target, draft, order) > truth + EDGE * max(1.0, truth)
    assert left > 0, "negative control: the plain completion"


@pytest.mark.evidence
def test_the_stated_error_covers_the_server() -> None:
    """Log-probabilities shaken by 1e-6, or rounded to single precision: with that error stated the truth is inside."""
    rng = np.random.default_rng(3)
    for i in range(1_000):
        truth, tops = sharp_pair(rng), []
        for pmf in truth:
            top = cut(rng, pmf, extra=False)
            noise = np.where(top.log_probs > -math.inf, rng.uniform(-1e-6, 1e-6, len(top.tokens)), 0.0)
            tops.append(TopLogProbs(top.tokens, np.minimum(top.log_probs + noise, 0.0), len(pmf), error=1e-6))
        name, (interval, slow) = list(ALL.items())[i % len(ALL)]
        assert holds(interval(*tops), slow(*truth)), (name, truth, tops)


@theorem
@given(pairs(5), st.integers(0, 2**32 - 1))
def test_any_ratios_give_a_lower_bound(pair: Pair, seed: int) -> None:
    """The proof: tangents anywhere bound the divergence, so errors in the best completion's ratios do no harm."""
    p, q = (np.where(pmf < TINIEST, 0.0, pmf) for pmf in pair)
    rng = np.random.default_rng(seed)
    target, draft = cut(rng, p), cut(rng, q)

    def anything(parts: object, *_: float) -> Floats:
        size = len(divergences.overlap(target, draft).both_target) + len(divergences.overlap(target, draft).target_only)
        size += len(divergences.overlap(target, draft).draft_only) + 1
        return rng.standard_normal(size) * 10.0 ** rng.uniform(-3, 2.5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divergences, "_best_log_ratios", anything)
        for order in (0.1, *ORDERS, 40.0, 1e5, 1e8):
            low, truth = _least_renyi_divergence(target, draft, order), renyi(p, q, order)
            assert low <= truth + EDGE * max(1.0, truth) / min(1.0, abs(order - 1) or 1.0), order


@pytest.mark.parametrize("wrong", ["caps", "tangents"])
def test_wrong_programs_are_found_out(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the truth is the best completion, so half the caps or tangents too low in q leave it."""
    p, q = np.array([0.5, 0.3, 0.1, 0.1]), np.array([0.4, 0.36, 0.12, 0.12])
    target, draft = TopLogProbs.from_pmf(p, 4), TopLogProbs.from_pmf(q, 1)
    truth, least, sides = renyi(p, q, 1.0), divergences._least, divergences._sides
    assert truth - ATTAINED < _least_renyi_divergence(target, draft, 1.0) <= truth
    if wrong == "tangents":
        monkeypatch.setattr(divergences, "_least", lambda p, q, a, b, wide: least(p, q, a, b - 0.01, wide))
    else:

        def halved(*known: Any) -> list[Any]:
            return [side._replace(room=side.room / 2, cap=side.cap / 2) for side in sides(*known)]

        monkeypatch.setattr(divergences, "_sides", halved)
    assert _least_renyi_divergence(target, draft, 1.0) > truth + ATTAINED
