"""Decoding on Markov chains: the readable algorithms by enumeration, the kernels by the law of the algorithms.

A cell is refuted wrongly with probability 1e-11 at most and there are fewer than 1,000, so this file fails wrongly with
probability below 1e-8, of the suite's 1e-6. With `TEXTS` texts a cell of 0.1 is known to 0.0065.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import product
from typing import Any

import numpy as np
import pytest

from proofs_check.algorithms import enumeration
from proofs_check.algorithms.batch_algorithm import batch_decoding
from simulations.draws import words
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.markov_decoding import LANES, horizon_rejections
from simulations.reference.decoding import ALGORITHMS, Pair, batch_text, decoded
from simulations.reference.drawing import Draws, exact_law
from tests.made_up import each
from tests.simulations.decoding_cases import KERNELS, chain_of, everywhere, made_up, model, tenths_chain, uniform_start
from tests.simulations.laws import ROUNDED, Floats, straying

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
