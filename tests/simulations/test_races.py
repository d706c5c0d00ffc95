"""The races of :mod:`simulations`: kernels against the closed forms R1 and R2, and each other.

Every cell of a count is tested by the exact binomial law, kernel against kernel by the exact hypergeometric one.
A check fails wrongly with probability 1e-11 at most and there are fewer than 1,200, so this file fails wrongly with
probability below 1.2e-8, of the 1e-6 that the whole suite may spend. With `TRIALS` races a cell of 0.1 is
known to 0.0046 and one of 1e-3 to 4.8e-4; an error of twice as much is all but sure to be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from simulations.draws import words
from simulations.kernels.races import dense_race, lazy_race, poisson_race
from spectheory.verification import PoissonRace, RaceVerification
from tests.made_up import each
from tests.simulations.laws import Counts, Floats, apart, straying

Kernel = Callable[..., Counts]

TRIALS = 200_000

KERNELS: dict[str, Kernel] = {"dense": dense_race, "lazy": lazy_race, "poisson": poisson_race}
RULES = {"dense": RaceVerification(), "lazy": RaceVerification(), "poisson": PoissonRace()}


def softmax(logits: Floats) -> Floats:
    grown = np.exp(logits - logits.max())
    return grown / grown.sum()


def noisy(tokens: int, noise: float, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal(tokens)
    return softmax(logits), softmax(logits + noise * rng.standard_normal(tokens))


def starved(tokens: int, ratio: float) -> tuple[Floats, Floats]:
    """Three likely tokens whose draft is smaller than the target by that ratio."""
    p, q = noisy(tokens, 0.7, seed=5)
    p[:3] = 0.1
    p[3:] *= 0.7 / p[3:].sum()
    q[:3] = p[:3] / ratio
    q[3:] *= (1 - q[:3].sum()) / q[3:].sum()
    return p, q


PAIRS: dict[str, tuple[Floats, Floats]] = {
    "crossed": (np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])),
    "equal": (np.array([0.7, 0.2, 0.1]), np.array([0.7, 0.2, 0.1])),
    "target lacks a token": (np.array([0.7, 0.3, 0.0]), np.array([0.1, 0.3, 0.6])),
    "draft lacks a token": (np.array([0.25, 0.25, 0.5]), np.array([0.4, 0.6, 0.0])),
    "each lacks a token": (np.array([0.6, 0.4, 0.0, 0.0]), np.array([0.0, 0.7, 0.3, 0.0])),
    "disjoint": (np.array([1.0, 0.0]), np.array([0.0, 1.0])),
    "one token": (np.ones(1), np.ones(1)),
    "one-hot target": (np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.2, 0.3])),
    "one-hot draft": (np.array([0.5, 0.2, 0.3]), np.array([0.0, 1.0, 0.0])),
    "noisy": noisy(40, 1.0, seed=1),
}
HEAVY: dict[str, tuple[Floats, Floats]] = {
    "ratio of 100": starved(40, 1e2),
    "ratio of 1e10": starved(40, 1e10),
    "ratio beyond 1e300": starved(40, 1e301),
}
"""Ratios that the Poisson race would wait for too long."""


def pairs_of(name: str) -> dict[str, tuple[Floats, Floats]]:
    return PAIRS if name == "poisson" else PAIRS | HEAVY


CASES = [(kernel, pair) for kernel in KERNELS for pair in pairs_of(kernel)]


# Closed forms


def joint_law(rule: Any, p: Floats, q: Floats, max_rank: int) -> Floats:
    """P(output = x, R = r) as the kernels count it, ``[V, max_rank + 2]``."""
    ranks = np.array([rule.rank_pmf_given(p, q, x, max_rank) for x in range(p.size)])
    ranks = np.where((q > 0)[:, None], ranks, 0.0)
    unseen = np.where(q > 0, 0.0, 1.0)
    return p[:, None] * np.column_stack([unseen, ranks, 1 - unseen - ranks.sum(axis=1)])


@cache
def counts_of(name: str, pair: str, max_rank: int) -> Counts:
    p, q = pairs_of(name)[pair]
    seed = sorted(KERNELS).index(name)
    return KERNELS[name](p, q, trials=TRIALS, state=words(11, seed), max_rank=max_rank, by_output=True)


@cache
def law_of(rule: str, pair: str, max_rank: int) -> Floats:
    return joint_law(RULES[rule], *(PAIRS | HEAVY)[pair], max_rank)


@each("name, pair", CASES)
def test_rank_law(name: str, pair: str) -> None:
    """R1 and R2: no rank, ranks 1..4, and higher ones; the outputs are the target's."""
    p, q = pairs_of(name)[pair]
    counts = counts_of(name, pair, 4)
    law = RULES[name].rank_pmf(p, q, 4)
    unseen = p[q == 0].sum()
    assert straying(counts.sum(axis=0), np.array([unseen, *law, 1 - unseen - law.sum()])) == []
    assert straying(counts.sum(axis=1), p) == []


@pytest.mark.parametrize("pair", HEAVY)
def test_lazy_race_without_a_cap(pair: str) -> None:
    """All ranks up to V: winners that come late are decided by coins from the start."""
    p, q = HEAVY[pair]
    counts = lazy_race(p, q, trials=TRIALS, state=words(12), max_rank=p.size)
    law = RULES["lazy"].rank_pmf(p, q, p.size)
    assert straying(counts, np.array([0.0, *law, 0.0])) == []
    assert straying(counts, np.array([0.0, *np.roll(law, 1), 0.0])) != [], "negative control: ranks off by one"


# The lazy race against the dense one


def test_lazy_and_dense_races_agree() -> None:
    """Two samples at V = 4,000, every rank up to 20; a cell of 0.1 differs by less than 0.02, or it is seen."""
    p, q = noisy(4000, 1.0, seed=4)
    dense = dense_race(p, q, trials=20_000, state=words(14), max_rank=20)
    lazy = lazy_race(p, q, trials=TRIALS, state=words(15), max_rank=20)
    assert apart(dense, lazy) == []
    wrong = lazy_race(p, noisy(4000, 1.2, seed=4)[1], trials=TRIALS, state=words(15), max_rank=20)
    assert apart(dense, wrong) != [], "negative control: a draft with a little more noise"


# What kernels share


@pytest.mark.parametrize("name", KERNELS)
def test_counts(name: str) -> None:
    """Outputs only sort the counts; a second call goes on with the stream; one rank is the winners alone."""
    p, q = PAIRS["noisy"]
    kernel, state = KERNELS[name], words(1)
    by_output = kernel(p, q, trials=500, state=words(1), max_rank=3, by_output=True)
    counts = kernel(p, q, trials=500, state=state, max_rank=3)
    np.testing.assert_array_equal(by_output.sum(axis=0), counts)
    assert counts.dtype == np.int64
    assert counts.shape == (5,)
    assert by_output.shape == (40, 5)
    assert not np.array_equal(kernel(p, q, trials=500, state=state, max_rank=3), counts)
    if name != "lazy":  # its races end at the rank asked for
        assert kernel(p, q, trials=500, state=words(1), max_rank=1).tolist() == [0, counts[1], counts[2:].sum()]
