"""The joint law of acceptance and output, and accepted drafts of whole texts against their enumeration."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from proofs_check.algorithms import enumeration
from simulations.draws import words
from simulations.kernels.markov_decoding import acceptance_law, acceptance_rows
from simulations.models.pairs import CallCounts
from tests.simulations.decoding_cases import KERNELS, model, tenths_chain
from tests.simulations.laws import Floats, strays

OTHER = {"token": "block", "block": "token"}


# The joint row, against every coin of one draft


def always(pmf: tuple[Fraction, ...]) -> enumeration.Model:
    """A model without memory."""
    return lambda _: pmf


def test_the_joint_law_is_the_enumerated_one() -> None:
    """Acceptance and output together, in fractions; a wrong recovery law is seen."""
    tenths = [([2, 3, 5, 0], [3, 3, 4, 0]), ([7, 0, 3, 0], [1, 6, 0, 3]), ([1, 2, 3, 4], [1, 2, 3, 4])]
    for weights in tenths:
        p, q = (tuple(Fraction(w, 10) for w in side) for side in weights)
        law = np.zeros(8)
        for (tokens, accepted), share in enumeration.token_verification(always(p), always(q), (), 1).items():
            law[2 * tokens[0] + accepted] += float(share)
        np.testing.assert_allclose(acceptance_law(*(np.array(side) / 10 for side in weights)), law, atol=1e-15)
    from_target = np.stack([0.2 * np.array([0.5, 0.5]), np.array([0.5, 0.3])], axis=1).ravel()
    assert np.abs(acceptance_law(np.array([0.5, 0.5]), np.array([0.7, 0.3])) - from_target).max() > 0.05


@pytest.mark.parametrize("tokens", [1, 2, 7, 64, 300])
def test_the_columns_stand_for_the_law(tokens: int) -> None:
    """Added up, 2^-40 apart at most; what has no mass has no column."""
    rng = np.random.default_rng(tokens)
    target, draft = rng.dirichlet(np.full(tokens, 0.3), size=(2, 3))
    draft[0] = target[0]
    law = acceptance_law(target, draft)
    rows = acceptance_rows(law)
    outcomes = (1 << rows.bits) - 1
    for state, masses in enumerate(law):
        columns = rows.columns[rows.begin[state] : rows.begin[state + 1]]
        keep, token, alias = (columns >> 2 * rows.bits) * rows.unit, columns >> rows.bits & outcomes, columns & outcomes
        mass = np.bincount(token, keep, 2 * tokens) + np.bincount(alias, 1 - keep, 2 * tokens)
        np.testing.assert_allclose(mass / columns.size, masses, atol=2**-40)
        assert set(token) == set(np.flatnonzero(masses))
    assert np.abs(acceptance_law(draft, target)[1:] - law[1:]).max() > 1e-3 or tokens == 1, "negative control"


# Whole texts, against their enumeration

FEW, LENGTH, K = 3, 4, 2


TEXTS = 400_000
"""Calls of an accepted length are known to 1% of a call per text."""


@cache
def enumerated_calls(name: str) -> tuple[Floats, Floats]:
    """Mean and variance of the calls of a text with 0, 1, 2 accepted drafts."""
    rule = {"token": enumeration.token_verification, "block": enumeration.block_verification}[name]
    (p, _), (q, _) = tenths_chain(1, FEW, LENGTH), tenths_chain(2, FEW, LENGTH)
    law = enumeration.Decoding(rule, k=K, length=LENGTH, spare=1).law(model(p), model(q))
    shares = np.array([float(share) for share in law.values()])
    counts = np.array([[accepted.count(i) for i in range(K + 1)] for _, accepted in law])
    mean = shares @ counts
    return mean, shares @ (counts - mean) ** 2


@cache
def simulated_calls(name: str) -> CallCounts:
    target, draft = tenths_chain(1, FEW, LENGTH)[1], tenths_chain(2, FEW, LENGTH)[1]
    return KERNELS[name](target, draft, [1, 0, 0], length=LENGTH, k=K, texts=TEXTS, state=words(5))


def wrong_lengths(name: str, law: str) -> list[int]:
    mean, variance = enumerated_calls(law)
    counts = simulated_calls(name).accepted
    return [i for i in range(K + 1) if strays(counts[i], TEXTS * mean[i], TEXTS * variance[i], float(LENGTH))]


@pytest.mark.parametrize("name", KERNELS)
def test_accepted_lengths_are_the_enumerated_ones(name: str) -> None:
    """Several calls in a row, the shortened last one included."""
    assert wrong_lengths(name, name) == []
    assert wrong_lengths(name, OTHER[name]), "negative control: the other rule's enumeration"
