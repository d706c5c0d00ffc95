"""Whole texts against their enumeration and the path theorem."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from proofs_check.algorithms import enumeration
from simulations.draws import words
from simulations.kernels.markov_decoding import acceptance_law, acceptance_rows
from simulations.models.pairs import CallCounts
from simulations.reference.decoding import Pair
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import BlockVerification, TokenVerification
from tests.simulations.decoding_cases import KERNELS, made_up, model, tenths_chain, uniform_start
from tests.simulations.laws import Floats, straying, strays

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
        keep, own, other = (columns >> 2 * rows.bits) * rows.unit, columns >> rows.bits & outcomes, columns & outcomes
        found = np.bincount(own, keep, 2 * tokens) + np.bincount(other, 1 - keep, 2 * tokens)
        np.testing.assert_allclose(found / columns.size, masses, atol=2**-40)
        assert set(own) == set(np.flatnonzero(masses))
    assert np.abs(acceptance_law(draft, target)[1:] - law[1:]).max() > 1e-3 or tokens == 1, "negative control"


# Whole texts, against their enumeration

FEW, LENGTH, K = 3, 4, 2


TEXTS = 400_000
"""Calls of an accepted length are known to 1% of a call per text."""


@cache
def enumerated_calls(name: str) -> tuple[Floats, Floats, Floats]:
    """Mean and variance of the calls of a text with 0, 1, 2 accepted drafts; the law of its number of calls."""
    rule = {"token": enumeration.token_verification, "block": enumeration.block_verification}[name]
    (p, _), (q, _) = tenths_chain(1, FEW, LENGTH), tenths_chain(2, FEW, LENGTH)
    law = enumeration.Decoding(rule, k=K, length=LENGTH, spare=1).law(model(p), model(q))
    shares = np.array([float(share) for share in law.values()])
    counts = np.array([[accepted.count(i) for i in range(K + 1)] for _, accepted in law])
    mean = shares @ counts
    return mean, shares @ (counts - mean) ** 2, np.bincount(counts.sum(axis=1), shares, LENGTH + 1)


@cache
def simulated_calls(name: str) -> CallCounts:
    target, draft = tenths_chain(1, FEW, LENGTH)[1], tenths_chain(2, FEW, LENGTH)[1]
    return KERNELS[name](target, draft, [1, 0, 0], length=LENGTH, k=K, texts=TEXTS, state=words(5))


def wrong_lengths(name: str, law: str) -> list[int]:
    mean, variance, _ = enumerated_calls(law)
    counts = simulated_calls(name).accepted
    return [i for i in range(K + 1) if strays(counts[i], TEXTS * mean[i], TEXTS * variance[i], float(LENGTH))]


@pytest.mark.parametrize("name", KERNELS)
def test_accepted_lengths_are_the_enumerated_ones(name: str) -> None:
    """Several calls in a row, the shortened last one included."""
    assert wrong_lengths(name, name) == []
    assert wrong_lengths(name, OTHER[name]), "negative control: the other rule's enumeration"


@pytest.mark.parametrize("name", KERNELS)
def test_calls_of_a_text_have_the_enumerated_law(name: str) -> None:
    """Not their mean alone: calls of a text are dependent."""
    texts = simulated_calls(name).texts
    assert straying(texts, enumerated_calls(name)[2]) == []
    assert straying(texts, enumerated_calls(OTHER[name])[2]), "negative control: the other rule's"


# Whole texts, against the path theorem in expectation

PATH_TOKENS, PATH_LENGTH, PATH_K, PATH_TEXTS = 3, 6, 3, 200_000
"""The mean of calls per text is known to 0.02, of some three."""


PATH_RULES = {"token": TokenVerification(), "block": BlockVerification()}


def path_case(stationary: bool) -> tuple[Pair, Floats]:
    """A pair and the law of its first token, a stationary one where the chain is."""
    pair = made_up(PATH_TOKENS, 0 if stationary else PATH_LENGTH, seed=6)
    start = uniform_start(pair)
    for _ in range(500 if stationary else 0):
        start = start @ pair.target
    return pair, start / start.sum()


def path_calls(name: str, pair: Pair, start: Floats) -> tuple[float, float]:
    """Mean and variance of the calls of a text: the path theorem for every text, weighted by the target."""
    mean = square = 0.0
    for text in product(range(PATH_TOKENS), repeat=PATH_LENGTH + 1):
        steps = list(pairwise(text))
        p = np.array([pair.p(n, x)[y] for n, (x, y) in enumerate(steps)])
        share = start[text[0]] * p.prod()
        if share > 0:
            with np.errstate(divide="ignore"):
                q = np.log([pair.q(n, x)[y] for n, (x, y) in enumerate(steps)])
            survival = PATH_RULES[name].path_survival({"log_target": np.log(p), "log_draft": q}, PATH_K)
            calls = calls_of_texts(survival, np.array([PATH_LENGTH]))
            mean += share * calls.expected[0]
            square += share * (calls.variance[0] + calls.expected[0] ** 2)
    return mean, square - mean**2


@pytest.mark.parametrize("stationary", [True, False])
def test_calls_are_those_of_the_path_theorem(stationary: bool) -> None:
    pair, start = path_case(stationary)
    predicted = {name: path_calls(name, pair, start) for name in KERNELS}
    for name, kernel in KERNELS.items():
        counts = kernel(pair.target, pair.draft, start, length=PATH_LENGTH, k=PATH_K, texts=PATH_TEXTS, state=words(6))
        seen = {
            law: strays(counts.accepted.sum(), PATH_TEXTS * mean, PATH_TEXTS * variance, float(PATH_LENGTH))
            for law, (mean, variance) in predicted.items()
        }
        assert seen == {name: False, OTHER[name]: True}, "the other rule is the negative control"
