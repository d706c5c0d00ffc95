"""N-gram models of text: by their definition, as an automaton, and the tables of its kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from proofs_check.library.strategies import Floats
from simulations.draws import words
from simulations.kernels.markov_decoding import ngram_tables, tabled_calls, token_calls
from simulations.models.ngram import (
    MOST_CONTEXTS,
    Automaton,
    Ngram,
    automaton,
    byte_tokens,
    contexts_of,
    ngram,
    ngram_pair,
    text_of,
    text_parameters,
)

Model = Callable[[tuple[int, ...]], Floats]
"""Pmf after all tokens so far."""

# The models


def by_definition(text: list[int], vocabulary: int, order: int, weight: float) -> Model:
    """The interpolated pmf after all tokens so far, counted anew in the text; rounded as the model's."""

    def pmf(prefix: tuple[int, ...]) -> Floats:
        row = np.full(vocabulary, 1 / vocabulary)
        for size in range(min(order - 1, len(prefix)) + 1):
            context = list(prefix[len(prefix) - size :])
            after = [text[i + size] for i in range(len(text) - size) if text[i : i + size] == context]
            if after:
                row = weight * (np.bincount(after, minlength=vocabulary) / len(after)) + (1 - weight) * row
        return row

    return pmf


def random_text(seed: int, tokens: int, size: int) -> list[int]:
    """A text with some order in it; the last token of the vocabulary may be missing."""
    rng = np.random.default_rng(seed)
    return ((np.cumsum(rng.integers(0, 2, size)) + rng.integers(0, 2, size)) % max(tokens - seed % 2, 1)).tolist()


@pytest.mark.parametrize(("order", "weight"), [(1, 0.9), (2, 0.5), (3, 0.9), (4, 1.0), (2, 0.0)])
def test_models_are_their_definition(order: int, weight: float) -> None:
    """Contexts longer than the model's, unseen ones and none."""
    for seed, tokens in product(range(4), (1, 2, 4)):
        text = random_text(seed, tokens, 30)
        model, defined = ngram(text, tokens, order=order, weight=weight), by_definition(text, tokens, order, weight)
        for size in range(order + 1):
            for prefix in product(range(tokens), repeat=size):
                np.testing.assert_allclose(model.pmf(prefix), defined(prefix), atol=1e-15)


def test_bytes_are_counted() -> None:
    """A trigram of real source by hand."""
    text = text_of(text_parameters("json.decoder"))
    row = ngram(byte_tokens(text), 256, order=3, weight=0.9).pmf(tuple(b"a 'xel"))
    ends = Counter(text[i + 2] for i in range(len(text) - 2) if text[i : i + 2] == "el")
    bigrams = Counter(text[i + 1] for i in range(len(text) - 1) if text[i] == "l")
    uniform = 0.9 * text.count("f") / len(text) + 0.1 / 256
    lower = 0.9 * bigrams["f"] / bigrams.total() + 0.1 * uniform
    assert row[ord("f")] == pytest.approx(0.9 * ends["f"] / ends.total() + 0.1 * lower, rel=1e-12)
    assert row.sum() == pytest.approx(1, abs=1e-12)


# The automaton

PAIRS = [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (4, 2)]
"""Orders of target and draft."""


def small_pair(seed: int, order: int, draft_order: int, tokens: int = 4) -> tuple[Ngram, Ngram, Model, Model]:
    """Models of two texts with other weights, and their definitions."""
    texts = [random_text(seed, tokens, 25), random_text(seed + 100, tokens, 15 + seed)]
    settings = [(order, 0.9), (draft_order, 0.7)]
    models = [ngram(t, tokens, order=n, weight=w) for t, (n, w) in zip(texts, settings, strict=True)]
    defined = [by_definition(t, tokens, n, w) for t, (n, w) in zip(texts, settings, strict=True)]
    return models[0], models[1], defined[0], defined[1]


def walks(pair: Automaton, tokens: list[int]) -> Iterator[int]:
    """The states before and after each token."""
    state = 0
    yield state
    for token in tokens:
        state = int(pair.following[state, token])
        yield state


def missed(pair: Automaton, target: Model, draft: Model, tokens: list[int]) -> int:
    """Prefixes of a text at which the automaton has other pmfs than the models."""
    return sum(
        not (np.allclose(pair.target[s], target(prefix)) and np.allclose(pair.draft[s], draft(prefix)))
        for n, s in enumerate(walks(pair, tokens))
        for prefix in [tuple(tokens[:n])]
    )


@pytest.mark.parametrize(("order", "draft_order"), PAIRS)
def test_the_automaton_remembers_all_that_the_models_look_at(order: int, draft_order: int) -> None:
    """Along texts of uniform tokens, most of them never seen."""
    forgetful = 0
    for seed in range(6):
        target, draft, p, q = small_pair(seed, order, draft_order)
        pair, tokens = automaton(target, draft), np.random.default_rng(seed).integers(0, 4, 60).tolist()
        assert missed(pair, p, q, tokens) == 0
        assert pair.following.dtype == np.int32
        assert pair.initial.sum() == pytest.approx(1, abs=1e-12)
        whole = [len(context) == order - 1 for context in contexts_of(target, draft)]
        assert pair.initial[~np.array(whole)].sum() == 0
        forgetful += missed(pair._replace(following=np.tile(pair.following[0], (len(whole), 1))), p, q, tokens)
    assert (forgetful > 100) == (order > 2), "negative control: the last token alone"


def test_contexts_of_real_text_are_few() -> None:
    target, draft, following, initial = ngram_pair("to be or not to be, that is the question", order=3, draft_order=2)
    pairs = {"to be or not to be, that is the question"[i : i + 2].encode() for i in range(38)}
    assert len(target) == 1 + len(set("to be or not to be, that is the questio")) + len(pairs)
    assert draft.shape == following.shape == (len(initial), 256)


# The kernel


@pytest.mark.parametrize("tokens", [2, 7, 40])
def test_a_markov_chain_is_a_special_case(tokens: int) -> None:
    """Draw for draw; a chain that goes elsewhere is seen."""
    rng = np.random.default_rng(tokens)
    target, draft = rng.dirichlet(np.full(tokens, 0.3), size=(2, tokens))
    start, itself = np.full(tokens, 1 / tokens), np.tile(np.arange(tokens), (tokens, 1))
    chain = token_calls(target, draft, start, length=50, k=3, texts=500, state=words(1))
    same, other = (
        tabled_calls(ngram_tables(target, draft, after, start), length=50, k=3, texts=500, state=words(1))
        for after in (itself, (itself + 1) % tokens)
    )
    assert same.texts.tolist() == chain.texts.tolist() != other.texts.tolist()
    assert same.accepted.tolist() == chain.accepted.tolist()


@pytest.mark.parametrize("states", [1, 2, 1000, MOST_CONTEXTS])
def test_relabelled_tables_stand_for_the_law(states: int) -> None:
    """Added up by state and mark, 2^-32 apart at most."""
    rng = np.random.default_rng(states)
    target, draft = rng.dirichlet([0.5] * 3, size=(2, states))
    following = rng.integers(0, states, (states, 3))
    rows = ngram_tables(target, draft, following, np.full(states, 1 / states)).rows
    outcomes = (1 << rows.bits) - 1
    for s in {0, states // 2, states - 1}:
        columns = rows.columns[rows.begin[s] : rows.begin[s + 1]]
        keep, one, alias = (columns >> 2 * rows.bits) * rows.unit, columns >> rows.bits & outcomes, columns & outcomes
        mass = (np.bincount(one, keep, 2 * states) + np.bincount(alias, 1 - keep, 2 * states)) / columns.size
        law = np.zeros(2 * states)
        np.add.at(law, 2 * following[s], np.maximum(target[s] - draft[s], 0))
        np.add.at(law, 2 * following[s] + 1, np.minimum(target[s], draft[s]))
        np.testing.assert_allclose(mass, law, atol=2**-32)
