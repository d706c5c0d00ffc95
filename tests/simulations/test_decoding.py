"""Decoding on Markov chains: algorithms by enumeration, kernels by the law of the algorithms, and whole texts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from proofs_check.algorithms import enumeration
from proofs_check.algorithms.batch_algorithm import batch_decoding
from simulations.draws import words
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.markov_decoding import LANES, acceptance_law, acceptance_rows, horizon_rejections, token_calls
from simulations.models.pairs import CallCounts
from simulations.reference.decoding import ALGORITHMS, DraftTree, Pair, batch_text, decoded
from simulations.reference.drawing import Draws, exact_law
from tests.made_up import each
from tests.simulations.laws import ROUNDED, Floats, straying, strays

KERNELS: dict[str, Callable[..., CallCounts]] = {"token": token_calls, "block": block_calls}


def made_up(tokens: int, steps: int, seed: int) -> Pair:
    """A pair whose draft is off by a factor here and there; either lacks a token now and then."""
    rng = np.random.default_rng(seed)
    shape = (steps, tokens, tokens) if steps else (tokens, tokens)
    target = rng.dirichlet(np.full(tokens, 0.7), size=shape[:-1])
    draft = target * np.exp(1.5 * rng.standard_normal(shape))
    for chain in (target, draft):
        chain[rng.random(shape) < 0.1] = 0
        chain[..., -1] += 1e-3
    return Pair(*(chain / chain.sum(axis=-1, keepdims=True) for chain in (target, draft)))


def everywhere(p: Sequence[float], q: Sequence[float]) -> Pair:
    """A pair whose pmfs are the same everywhere."""
    return Pair(np.tile(p, (len(p), 1)), np.tile(q, (len(q), 1)))


def uniform_start(pair: Pair) -> Floats:
    return np.full(pair.target.shape[-1], 1 / pair.target.shape[-1])


def chain_of(k: int) -> DraftTree:
    return DraftTree((1,) * depth for depth in range(1, k + 1))


def tenths_chain(seed: int, tokens: int, steps: int) -> tuple[list[list[list[Fraction]]], Floats]:
    """Non-stationary rows of tenths, zeros among them, in fractions and in floats."""
    weights = np.random.default_rng(seed).multinomial(10, np.full(tokens, 1 / tokens), size=(steps, tokens))
    return [[[Fraction(int(w), 10) for w in row] for row in step] for step in weights], weights / 10


def model(chain: list[list[list[Fraction]]]) -> enumeration.Model:
    """The chain as a function of the prefix, after token 0."""
    return lambda prefix: tuple(chain[len(prefix)][prefix[-1] if prefix else 0])


TEXTS, LENGTH, K = 100_000, 3, 2

ENUMERATED = {
    "token": enumeration.token_verification,
    "block": enumeration.block_verification,
    "independent": enumeration.independent_match,
    "argmax": enumeration.argmax_draft,
}

PAIRS = {
    "equal": everywhere([0.3, 0.7], [0.3, 0.7]),
    "disjoint": everywhere([0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]),
    "one-hot": everywhere([0, 1, 0], [0, 1, 0]),
    "one-hot apart": everywhere([0, 1, 0], [1, 0, 0]),
    "the draft lacks tokens": everywhere([0.2, 0.3, 0.5], [0.2, 0.8, 0.0]),
    "the target lacks tokens": everywhere([0.2, 0.8, 0.0], [0.2, 0.3, 0.5]),
    "one token": everywhere([1.0], [1.0]),
    "p/q of 1e305": everywhere([0.5, 0.5], [1.0, 1e-306]),
    "q/p of 1e305": everywhere([1.0, 1e-306], [0.5, 0.5]),
    "equal ratios": everywhere([0.2, 0.2, 0.3, 0.3], [0.1, 0.1, 0.4, 0.4]),
    "stationary": made_up(3, 0, seed=1),
    "another matrix at each position": made_up(3, LENGTH, seed=2),
}


def apart(law: dict[Hashable, float], other: dict[Any, Any]) -> float:
    """The largest difference of two laws."""
    return max(abs(law.get(one, 0.0) - float(other.get(one, 0))) for one in law.keys() | other.keys())


# The readable algorithms


@each("rule", ENUMERATED)
def test_texts_and_calls_have_the_enumerated_law(rule: str) -> None:
    """Text and accepted drafts of every call, in fractions; the algorithm of another rule is seen."""
    (p, target), (q, draft) = tenths_chain(1, 3, LENGTH), tenths_chain(2, 3, LENGTH)
    law = enumeration.Decoding(ENUMERATED[rule], k=K, length=LENGTH, spare=1).law(model(p), model(q))

    def text(draws: Draws, name: str = rule) -> Hashable:
        calls = [*decoded(ALGORITHMS[name].call, chain_of(K), Pair(target, draft), 0, LENGTH, draws)]
        return tuple(x for call in calls for x in call.tokens), tuple(call.accepted for call in calls)

    assert apart(exact_law(text), law) < ROUNDED
    other = "block" if rule == "token" else "token"
    assert apart(exact_law(lambda draws: text(draws, other)), law) > 0.001, "negative control"


@each("drafts, printed", product((1, 2), (False, True)))
def test_batches_have_the_enumerated_law(drafts: int, printed: bool) -> None:
    """Both forms of Algorithm 4: the positions that are recovered; the other form is seen."""
    (p, target), (q, draft) = tenths_chain(3, 2, LENGTH), tenths_chain(4, 2, LENGTH)
    law: dict[Hashable, float] = {}
    for outcome, share in batch_decoding(model(p), model(q), LENGTH, drafts, printed=printed).items():
        rejected = tuple(n - 1 for n in outcome.rejected)
        law[rejected] = law.get(rejected, 0.0) + float(share)

    def rejected_positions(draws: Draws, form: bool = printed) -> Hashable:
        return tuple(batch_text(Pair(target, draft), 0, LENGTH, drafts, draws, printed=form))

    assert apart(exact_law(rejected_positions), law) < ROUNDED
    if drafts > 1:
        assert apart(exact_law(lambda draws: rejected_positions(draws, not printed)), law) > 0.001


# The kernels


def calls_law(rule: str, pair: Pair, k: int) -> Floats:
    """P(a text takes n calls), n = 0..LENGTH."""

    def calls(draws: Draws) -> int:
        start = draws.token(uniform_start(pair))
        return sum(1 for _ in decoded(ALGORITHMS[rule].call, chain_of(k), pair, start, LENGTH, draws))

    law = exact_law(calls)
    return np.array([law.get(n, 0.0) for n in range(LENGTH + 1)])


@each("pair", PAIRS)
@each("rule", KERNELS)
def test_calls_of_kernels_have_the_law_of_the_algorithm(rule: str, pair: str) -> None:
    chains = PAIRS[pair].target, PAIRS[pair].draft, uniform_start(PAIRS[pair])
    counts = KERNELS[rule](*chains, length=LENGTH, k=K, texts=TEXTS, state=words(5))
    assert straying(counts.texts, calls_law(rule, PAIRS[pair], K)) == []
    if pair in ("stationary", "another matrix at each position"):
        assert straying(counts.texts, calls_law(rule, PAIRS[pair], 1)) != [], "negative control: one draft"


REJECTING: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "horizon": (horizon_rejections, {}),
    "batch": (batch_rejections, {"drafts": 2}),
    "batch as printed": (batch_rejections, {"drafts": 2, "printed": True}),
}


@pytest.mark.evidence
@each("pair", PAIRS)
@each("kernel", REJECTING)
def test_rejections_of_kernels_have_the_law_of_the_algorithm(kernel: str, pair: str) -> None:
    """Rejections of a text, and texts by position; with drafts that run to the horizon one draft is a batch of one."""
    run, settings = REJECTING[kernel]
    chains = PAIRS[pair].target, PAIRS[pair].draft, uniform_start(PAIRS[pair])
    counts = run(*chains, length=LENGTH, texts=TEXTS, state=words(6), **settings)

    def laws(drafts: int, printed: bool) -> tuple[Floats, Floats]:
        def rejected(draws: Draws) -> tuple[int, ...]:
            start = draws.token(uniform_start(PAIRS[pair]))
            return tuple(batch_text(PAIRS[pair], start, LENGTH, drafts, draws, printed=printed))

        positions, texts = np.zeros(LENGTH), np.zeros(LENGTH + 1)
        for where, share in exact_law(rejected).items():
            positions[list(where)] += share
            texts[len(where)] += share
        return positions, texts

    positions, texts = laws(settings.get("drafts", 1), settings.get("printed", False))
    assert straying(counts.positions, positions, TEXTS) == straying(counts.texts, texts) == []
    if pair == "stationary":
        wrong = laws(1 if kernel == "batch" else 2, False)
        assert straying(counts.positions, wrong[0], TEXTS) != [], "negative control: another number of drafts"


# What kernels count


@pytest.mark.parametrize("texts", [1, LANES - 1, 2 * LANES + 5])
def test_tokens_and_calls_add_up(texts: int) -> None:
    """For few texts and for more than are decoded in turn."""
    pair = made_up(5, 0, seed=2)
    for (name, kernel), k, length in product(KERNELS.items(), (1, 3, 12), (1, 2, 5, 12)):
        counts = kernel(pair.target, pair.draft, uniform_start(pair), length=length, k=k, texts=texts, state=words(1))
        assert counts.accepted @ np.arange(1, k + 2) == texts * length, name
        assert counts.texts.sum() == texts, name
        assert counts.texts @ np.arange(length + 1) == counts.accepted.sum(), name


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

FEW, TEXT_LENGTH, TEXT_DRAFTS = 3, 4, 2


MANY_TEXTS = 400_000
"""Calls of an accepted length are known to 1% of a call per text."""


@cache
def enumerated_calls(name: str) -> tuple[Floats, Floats]:
    """Mean and variance of the calls of a text with 0, 1, 2 accepted drafts."""
    rule = {"token": enumeration.token_verification, "block": enumeration.block_verification}[name]
    (p, _), (q, _) = tenths_chain(1, FEW, TEXT_LENGTH), tenths_chain(2, FEW, TEXT_LENGTH)
    law = enumeration.Decoding(rule, k=TEXT_DRAFTS, length=TEXT_LENGTH, spare=1).law(model(p), model(q))
    shares = np.array([float(share) for share in law.values()])
    counts = np.array([[accepted.count(i) for i in range(TEXT_DRAFTS + 1)] for _, accepted in law])
    mean = shares @ counts
    return mean, shares @ (counts - mean) ** 2


@cache
def simulated_calls(name: str) -> CallCounts:
    target, draft = tenths_chain(1, FEW, TEXT_LENGTH)[1], tenths_chain(2, FEW, TEXT_LENGTH)[1]
    return KERNELS[name](target, draft, [1, 0, 0], length=TEXT_LENGTH, k=TEXT_DRAFTS, texts=MANY_TEXTS, state=words(5))


def wrong_lengths(name: str, law: str) -> list[int]:
    mean, variance = enumerated_calls(law)
    counts = simulated_calls(name).accepted
    return [
        i
        for i in range(TEXT_DRAFTS + 1)
        if strays(counts[i], MANY_TEXTS * mean[i], MANY_TEXTS * variance[i], float(TEXT_LENGTH))
    ]


@pytest.mark.parametrize("name", KERNELS)
def test_accepted_lengths_are_the_enumerated_ones(name: str) -> None:
    """Several calls in a row, the shortened last one included."""
    assert wrong_lengths(name, name) == []
    assert wrong_lengths(name, OTHER[name]), "negative control: the other rule's enumeration"
