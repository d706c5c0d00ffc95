"""Y1-Y4: expected rejections against the cost to go, at extreme chains and large batches, in every array library."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.algorithms import rejection_algorithms
from proofs_check.algorithms.batch_algorithm import batch_decoding
from proofs_check.library.strategies import Floats, pmfs, theorem
from proofs_check.statement.arithmetic import floats
from spectheory.limits import (
    batch_expected_rejections,
    batch_limit,
    expected_rejections,
    rejection_profile,
)

ROUNDING = 1e-12
"""Sums of a few hundred products of order one."""

SINGLE = 1e-6
"""Sums of a few dozen products in single precision, each rounded by 6e-8 of its size."""

# Algorithms


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_as_printed_more_drafts_change_nothing(seed: int) -> None:
    """Algorithm 4 as printed: texts, rejections and calls have one law, that of one draft; as intended another."""
    (case,) = rejection_algorithms.tables(seed, ((2, 3),), 1)
    target, draft = (rejection_algorithms.model_of(case[name]) for name in ("target", "draft"))
    printed = batch_decoding(target, draft, 3, 3, printed=True)
    assert printed == batch_decoding(target, draft, 3, 1)
    assert printed != batch_decoding(target, draft, 3, 3), "negative control"


def test_batches_are_outside_the_class_of_y2() -> None:
    """They reject less than Y1, which is the least in it."""
    target, draft = np.tile([1 / 3, 2 / 3], (2, 1)), np.tile([2 / 3, 1 / 3], (2, 1))
    least = float(expected_rejections(target, draft, [1, 0], horizon=2))
    assert least == pytest.approx(2 / 3, abs=ROUNDING)
    assert batch_expected_rejections(target, draft, [1, 0], drafts=2, horizon=2) < least - 0.05


# Y3 and Y4: two recursions, bounds, limit


Chains = tuple[Floats, Floats, Floats]


def chain_arrays(most_steps: int = 4, most_tokens: int = 4) -> st.SearchStrategy[Chains]:
    """Target, draft and initial pmf of a non-stationary chain, zeros and tiny entries among them."""

    def of_size(size: tuple[int, int]) -> st.SearchStrategy[Chains]:
        steps, tokens = size
        rows = st.lists(pmfs(tokens), min_size=steps * tokens, max_size=steps * tokens)
        chain = rows.map(lambda each: np.array(each).reshape(steps, tokens, tokens))
        return st.tuples(chain, chain, pmfs(tokens))

    return st.tuples(st.integers(1, most_steps), st.integers(1, most_tokens)).flatmap(of_size)


def slow_batch(chains: Chains, drafts: int) -> float:
    """Expected rejections by the cost to go, from the last step back: another recursion, with p^m normalised."""
    target, draft, initial = chains
    size = len(initial)
    fresh, running = np.zeros(size), np.zeros(size)
    for p_of, q_of in zip(target[::-1], draft[::-1], strict=True):
        before = np.zeros((2, size))
        for x, (p, q) in enumerate(zip(p_of, q_of, strict=True)):
            for state, tries in ((0, drafts), (1, 1)):
                missed, law = 1.0, p
                for _ in range(tries):
                    excess = np.maximum(law - q, 0)
                    missed *= excess.sum()
                    if missed < 1e-300:
                        missed, law = 0.0, p
                        break
                    law = excess / excess.sum()
                recovered = missed * law
                before[state, x] = recovered @ (1 + fresh) + (p - recovered) @ running
        fresh, running = before
    return float(initial @ fresh)


@theorem
@given(chain_arrays(), st.integers(1, 6))
def test_y3_is_the_cost_to_go(chains: Chains, drafts: int) -> None:
    """Forward over f, backward over the cost: two recursions, one number; random chains with zeros."""
    assert batch_expected_rejections(*chains, drafts=drafts) == pytest.approx(slow_batch(chains, drafts), abs=1e-9)


@pytest.mark.evidence
@theorem
@given(chain_arrays())
def test_more_drafts_never_reject_more(chains: Chains) -> None:
    """Y4 <= Y3 at M + 1 <= Y3 at M <= Y1; at T = 1 the limit leaves o alone.

    Proof: u^M(x) = prod_m TV(p^m, q) p^{M+1}(x) falls in M at each x, and with C and C' the cost to go at a round's
    start and inside one, C' - C = sum_x (h - u)(x) (1 - (C' - C)(x)) lies in [0, 1] from the last step back; so what a
    larger M moves from u to p - u costs 1 + C before and C' <= 1 + C after.
    """
    values = [float(batch_expected_rejections(*chains, drafts=m)) for m in (1, 2, 3, 5, 50, math.inf)]
    assert all(more <= fewer + ROUNDING for fewer, more in pairwise(values))
    assert values[0] == expected_rejections(*chains)
    assert values[-1] == batch_limit(*chains)
    assert values[-1] >= -ROUNDING
    target, draft, initial = chains
    outside = initial @ np.where(draft[0] > 0, 0, target[0]).sum(axis=-1)
    assert batch_limit(target[:1], draft[:1], initial) == pytest.approx(outside, abs=ROUNDING)


@pytest.mark.parametrize("size", [(2, 3), (3, 3), (4, 4)])
def test_the_limit_is_reached(size: tuple[int, int]) -> None:
    """Y4 is Y3 at M = 2000; in some rows the draft lacks tokens of the target."""
    for case in rejection_algorithms.chains(1, (size,), 3):
        chains = *(rejection_algorithms.array_of(case[name]) for name in ("target", "draft")), floats(case["initial"])
        limit = float(batch_limit(*chains))
        assert batch_expected_rejections(*chains, drafts=2000) == pytest.approx(limit, abs=ROUNDING)


def test_a_horizon_repeats_one_matrix() -> None:
    rng = np.random.default_rng(8)
    target, draft, many = rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(4), (5, 4))
    initial = rng.dirichlet(np.ones(4))
    long = np.stack([target] * 5), np.stack([draft] * 5)
    for options in ({}, {"drafts": 3}, {"drafts": math.inf}):
        exact = rejection_profile(*long, initial, **options)
        np.testing.assert_array_equal(rejection_profile(target, draft, initial, horizon=5, **options), exact)
        np.testing.assert_array_equal(rejection_profile(long[0], draft, initial, **options), exact)
        assert rejection_profile(many, draft, initial, **options).shape == (5,)


# From text


def test_mixed_precisions_take_the_wider() -> None:
    rng = np.random.default_rng(4)
    chains = (*(rng.dirichlet(np.full(6, 0.3), (4, 6)) for _ in range(2)), rng.dirichlet(np.ones(6)))
    exact, (target, draft, initial) = rejection_profile(*chains), map(torch.from_numpy, chains)
    single = rejection_profile(target.float(), draft.float(), list(chains[2]))
    mixed = rejection_profile(target.float(), draft, initial.float())
    assert (single.dtype, mixed.dtype) == (torch.float32, torch.float64)
    for values in (single, mixed):
        np.testing.assert_allclose(values.numpy(), exact, rtol=0, atol=SINGLE)
