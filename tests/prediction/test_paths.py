"""The path theorem (§7) beyond what the ledger enumerates: no rule is another's, and the library's solver.

The ledger runs the papers' algorithms (:mod:`proofs_check.algorithms.enumeration`) against the theorem's exact twin
(:mod:`proofs_check.twins.path_theorem`); here any survival goes through the library's recursion and through the twin's.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.agreement.path_cases import CHAINS
from proofs_check.algorithms.enumeration import Decoding, Table, given_text, output_law, text_law
from proofs_check.library.cases import random_model
from proofs_check.library.strategies import Floats, theorem
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import Survival
from spectheory.prediction.paths import calls_of_chains, calls_of_texts
from spectheory.prediction.text_limit import call_terms
from spectheory.verification import BlockVerification, TokenVerification

ROUNDING = 1e-12
"""The library against fractions: some twenty operations on numbers near one, each within 1e-16, with logarithms."""

SQUARES = 1e-11
"""Variances: a difference of two squares of up to a few hundred."""


# Whole algorithms

KINDS = ("token", "block", "race", "independent", "argmax")
LENGTH, DRAFTS = 4, 3
SEEDS = (6, 33)
"""Of target and draft: with few zeros, and none at the first tokens."""


def table(seed: int, tokens: int, spread: int = 8) -> Table:
    """A pmf of its own after every prefix a call may reach: nothing is stationary or Markov, and some entries are 0."""
    return random_model(random.Random(seed), tokens, LENGTH + DRAFTS, spread)


every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("spare", [0, 1])
@every_kind
def test_drafts_cut_at_the_end_leave_the_text_the_targets(kind: str, spare: int) -> None:
    """An engine that drafts only what fits (or one less, for the last token) says what the target says."""
    for tokens, spread in ((2, 8), (3, 3)):
        target, draft = (table(seed, tokens, spread).__getitem__ for seed in SEEDS)
        law = Decoding(CHAINS[kind].algorithm, DRAFTS, LENGTH, spare=spare).law(target, draft)
        assert output_law(law) == text_law(target, LENGTH)


@every_kind
def test_a_rule_s_survival_is_its_own_alone(kind: str) -> None:
    """No rule's law on a generic chain is predicted by another rule's survival, but by its own."""
    target, draft = (table(seed, 3).__getitem__ for seed in SEEDS)
    law = Decoding(CHAINS[kind].algorithm, DRAFTS, LENGTH).law(target, draft)
    for other in KINDS:
        agree = [
            path_theorem.all_calls_law(CHAINS[other].survival(target, draft, text), DRAFTS, LENGTH)
            == given_text(law, text)
            for text in text_law(target, LENGTH)
        ]
        assert all(agree) == (other == kind), other


@every_kind
def test_full_acceptances(kind: str) -> None:
    """Calls, the last one left out, in which both drafts were accepted: the ledger's texts have no room for them."""
    target, draft = (table(seed, 2).__getitem__ for seed in SEEDS)
    law = Decoding(CHAINS[kind].algorithm, 2, LENGTH).law(target, draft)
    for text in text_law(target, LENGTH):
        full = sum((share * calls[:-1].count(2) for calls, share in given_text(law, text).items()), Fraction(0))
        assert path_theorem.full_acceptances(CHAINS[kind].survival(target, draft, text), 2, LENGTH) == full


# The solver


def random_survival(tokens: int, k: int, seed: int) -> Floats:
    """Survival of a made-up rule: products of numbers in [0, 1], one set per start."""
    return np.cumprod(np.random.default_rng(seed).random((tokens, k)), axis=1)


def exactly(survival: Floats) -> Survival:
    """The very floats the library gets."""
    exact = [[Fraction(1), *map(Fraction, row)] for row in survival.tolist()]
    return lambda n, i: exact[n][i]


def twin(survival: Floats, *, prefill: bool = False) -> tuple[float, float]:
    """The recursion in fractions."""
    mean, variance = path_theorem.calls(exactly(survival), survival.shape[1], len(survival), prefill=prefill)
    return float(mean), float(variance)


@theorem
@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 10**6), st.booleans())
def test_the_solver_is_the_recursion(tokens: int, k: int, seed: int, prefill: bool) -> None:
    """The banded system gives C(n) = 1 + sum_i P(tau=i|n) C(n+i+1) and its second moment for any survival."""
    survival = random_survival(tokens, k, seed)
    calls = calls_of_texts(survival, np.array([tokens]), prefill_emits_token=prefill)
    mean, variance = twin(survival, prefill=prefill)
    assert calls.expected[0] == pytest.approx(mean, abs=ROUNDING)
    assert calls.variance[0] == pytest.approx(variance, abs=SQUARES)
    if not prefill:
        full = path_theorem.full_acceptances(exactly(survival), k, tokens)
        assert calls.full[0] == pytest.approx(float(full), abs=ROUNDING)


@pytest.mark.parametrize("prefill", [False, True])
def test_texts_together_are_texts_alone(prefill: bool) -> None:
    """Concatenated texts, some of one token, give each text's own result: nothing leaks over a boundary."""
    lengths = np.array([1, 5, 1, 2, 9, 3, 1])
    survival = random_survival(int(lengths.sum()), 4, 7)
    together = calls_of_texts(survival, lengths, prefill_emits_token=prefill)
    for index, rows in enumerate(np.split(survival, np.cumsum(lengths)[:-1])):
        alone = calls_of_texts(rows, lengths[index : index + 1], prefill_emits_token=prefill)
        assert together.expected[index] == pytest.approx(alone.expected[0], abs=ROUNDING)
        assert together.variance[index] == pytest.approx(alone.variance[0], abs=SQUARES)
        assert together.full[index] == pytest.approx(alone.full[0], abs=ROUNDING)
        assert (alone.expected[0], alone.variance[0]) == pytest.approx(twin(rows, prefill=prefill), abs=SQUARES)


def test_drafts_past_the_end_of_a_text_do_not_matter() -> None:
    """Entries of the survival that reach past the end may hold anything, NaN included, and k may exceed the text."""
    survival = random_survival(6, 5, 3)
    exact = calls_of_texts(survival, np.array([4, 2]))
    for n, left in enumerate([4, 3, 2, 1, 2, 1]):
        survival[n, left:] = math.nan
    again = calls_of_texts(survival, np.array([4, 2]))
    np.testing.assert_array_equal(exact.expected, again.expected)
    np.testing.assert_array_equal(exact.full, again.full)
    np.testing.assert_allclose(calls_of_texts(random_survival(3, 40, 1), np.array([3])).full, 0.0)


def test_several_chain_lengths_at_once_are_each_alone() -> None:
    lengths = np.array([7, 1, 12])
    survival = random_survival(20, 6, 11)
    together = calls_of_chains(survival, lengths, [6, 1, 3, 1], variance=True)
    assert sorted(together) == [1, 3, 6]
    for k, calls in together.items():
        alone = calls_of_texts(survival[:, :k], lengths)
        np.testing.assert_allclose(calls.expected, alone.expected, rtol=ROUNDING)
        np.testing.assert_allclose(calls.full, alone.full, atol=ROUNDING)
        np.testing.assert_allclose(calls.variance, alone.variance, atol=SQUARES)
        assert alone.expected[0] == pytest.approx(twin(survival[:7, :k])[0], abs=ROUNDING)
    assert np.all(np.isnan(calls_of_chains(survival, lengths, [3])[3].variance)), "not asked for"


def test_certain_outcomes() -> None:
    """Nothing accepted: a call per token, no spread. All accepted: ceil(N / (k + 1)) calls, all but one full."""
    for tokens, k in product((1, 5, 12), (1, 2, 5)):
        none = calls_of_texts(np.zeros((tokens, k)), np.array([tokens]))
        every = calls_of_texts(np.ones((tokens, k)), np.array([tokens]))
        assert (none.expected[0], none.full[0]) == (tokens, 0)
        assert every.expected[0] == math.ceil(tokens / (k + 1))
        assert every.full[0] == every.expected[0] - 1
        for calls in (none, every):
            assert calls.variance[0] == 0


@theorem
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.integers(1, 5))
def test_block_accepts_at_least_as_much_as_token(log_ratio: list[float], k: int) -> None:
    """At every start and depth: prod min(1, rho) <= min(1, min prod rho) <= min(1, prod rho)."""
    columns = {"log_draft": np.minimum(log_ratio, 0.0), "log_target": np.minimum(log_ratio, 0.0) - np.array(log_ratio)}
    token = TokenVerification().path_survival(columns, k)
    block = BlockVerification().path_survival(columns, k)
    terms = call_terms(columns, k)
    inside = np.add.outer(np.arange(len(log_ratio)), np.arange(1, k + 1)) <= len(log_ratio)
    assert np.all((token <= block + ROUNDING)[inside])
    assert np.all((block <= terms + ROUNDING)[inside])
    assert np.all(np.diff(block, axis=1)[inside[:, 1:]] <= 0)
