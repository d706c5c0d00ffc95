"""N-gram models of text: by their definition, as an automaton; calls against the path theorem; recipes, bad input."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proofs_check.library.strategies import Floats
from simulations.counts import Mean, Moments, Tally
from simulations.draws import Tokens, words
from simulations.experiments.collect import Failure, batch_stream, run_batch
from simulations.experiments.tasks import task
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.markov_decoding import ngram_tables, tabled_calls, token_calls
from simulations.models.ngram import (
    MOST_CONTEXTS,
    Automaton,
    Ngram,
    automaton,
    byte_tokens,
    contexts_of,
    file_parameters,
    ngram,
    ngram_pair,
    ngram_pair_of,
    text_of,
    text_parameters,
)
from simulations.models.pairs import CallCounts
from simulations.simulators import decoding
from simulations.verdicts.predictions import Agreement, agrees
from spectheory.errors import SettingError, SpectheoryError, TextError

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


ALARM = 1e-10


# Whole texts, against the path theorem

LENGTH, K, TEXTS = 40, 3, 200_000
"""Calls per text are known to 0.3%, of some twenty."""


def moves(weights: Floats, following: Tokens) -> Floats:
    """Mass ``[S, S]`` that goes from state to state."""
    states = len(weights)
    cells = np.arange(states)[:, None] * states + following
    return np.bincount(cells.ravel(), weights.ravel(), states**2).reshape(states, states)


def expected_calls(pair: Automaton, k: int, *, accepted: Floats | None = None) -> float:
    """The path theorem in matrices: c_n = 1 + sum over i < k of A^i B c_{n+i+1} + A^k P c_{n+k+1}, c = 0 at the end.

    A is the mass of accepted drafts, min(p, q) unless told, and B that of recovered tokens.
    """
    text = moves(pair.target, pair.following)
    a = moves(np.minimum(pair.target, pair.draft) if accepted is None else accepted, pair.following)
    calls = np.zeros((LENGTH + k + 2, len(text)))
    for n in range(LENGTH - 1, -1, -1):
        after = text @ calls[n + k + 1]
        for i in range(k - 1, -1, -1):
            after = (text - a) @ calls[n + i + 1] + a @ after
        calls[n] = 1 + after
    return float(pair.initial @ calls[0])


REAL: dict[str, dict[str, Any]] = {
    "trigrams by bigrams": {"order": 3, "draft_order": 2},
    "trigrams by trigrams of another text": {"order": 3, "draft_order": 3, "draft": text_parameters("textwrap")},
    "bigrams by flatter bigrams": {"order": 2, "draft_order": 2, "draft_weight": 0.6},
}


@cache
def counted(name: str) -> tuple[Automaton, CallCounts]:
    pair = ngram_pair_of(text_parameters("bisect") | REAL[name])
    return pair, tabled_calls(ngram_tables(*pair), length=LENGTH, k=K, texts=TEXTS, state=words(11))


def compared(counts: CallCounts, expected: float) -> Agreement:
    tally = Tally.of(int(counts.texts.sum()), samples={"calls": Moments.of_histogram(counts.texts)})
    return agrees(tally, Mean("calls", 1, LENGTH), expected, ALARM)


@pytest.mark.parametrize("name", REAL)
def test_calls_on_real_text_are_those_of_the_path_theorem(name: str) -> None:
    """The mean is known to 0.1; k + 1 drafts and a wrong acceptance are seen."""
    pair, counts = counted(name)
    agreement = compared(counts, expected_calls(pair, K))
    assert agreement.agrees, agreement
    assert max(agreement.below, agreement.above) < 0.1
    assert not compared(counts, expected_calls(pair, K + 1)), "negative control: k + 1"
    matched = pair.target * pair.draft
    assert not compared(counts, expected_calls(pair, K, accepted=matched)), "negative control: independent match"
    assert counts.accepted @ np.arange(1, K + 2) == TEXTS * LENGTH


@pytest.mark.parametrize("name", REAL)
def test_first_order_chains_are_not_enough(name: str) -> None:
    """Negative control: an automaton that keeps the last token alone has other calls, but for bigrams."""
    pair, counts = counted(name)
    forgetful = pair._replace(following=np.tile(pair.following[0], (len(pair.initial), 1)))
    assert compared(counts, expected_calls(forgetful, K)).agrees == (REAL[name]["order"] == 2)


# Recipes and simulators

BISECT = text_parameters("bisect") | {"order": 3, "draft_order": 2, "length": 12, "k": 3}


CHAINS = {"chains": "yin2024", "length": 12, "k": 3}


def test_simulators_are_their_kernels() -> None:
    """The batch's stream goes to the kernel; texts and calls are both counted."""
    pair, chains = ngram_pair_of(BISECT), decoding.chains_of(CHAINS)
    kernels = {
        "ngram": (BISECT, lambda state: tabled_calls(ngram_tables(*pair), length=12, k=3, texts=500, state=state)),
        "token": (CHAINS, lambda state: token_calls(*chains, length=12, k=3, texts=500, state=state)),
        "block": (CHAINS, lambda state: block_calls(*chains, length=12, k=3, texts=500, state=state)),
    }
    for kind, (parameters, kernel) in kernels.items():
        one = task(kind, parameters, seed=3, trials=500)
        tally, counts = run_batch(one, 2, decoding.__name__), kernel(batch_stream(one, 2))
        assert isinstance(tally, Tally)
        assert tally.counts["accepted"].tolist() == counts.accepted.tolist()
        assert tally.counts["texts"].tolist() == counts.texts.tolist()
        assert tally.moments["calls"] == Moments.of_histogram(counts.texts)
        assert tally.trials == 500 == counts.texts.sum()


def test_another_text_is_refused(tmp_path: Path) -> None:
    """By the simulator too, in one line."""
    path = tmp_path / "text"
    path.write_text("to be or not to be", encoding="utf-8")
    recipe = file_parameters(path)
    assert recipe["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert text_of(recipe) == "to be or not to be"
    path.write_text("not to be", encoding="utf-8")
    wrong = {**BISECT, "sha256": "0" * 64}
    for parameters in (recipe | {"order": 2, "draft_order": 1}, wrong):
        with pytest.raises(TextError, match="sha256") as caught:
            ngram_pair_of(parameters)
        assert "\n" not in str(caught.value)
    failure = run_batch(task("ngram", wrong, seed=1, trials=10), 0, decoding.__name__)
    assert isinstance(failure, Failure)
    assert "sha256" in failure.error


def test_weights_and_texts_of_a_recipe_are_read() -> None:
    text, other = (text_of(text_parameters(name)) for name in ("bisect", "textwrap"))
    recipe = {**BISECT, "weight": 0.8, "draft_weight": 0.5, "draft": text_parameters("textwrap")}
    made = ngram_pair(text, other, order=3, draft_order=2, weight=0.8, draft_weight=0.5)
    for loaded, expected in zip(ngram_pair_of(recipe), made, strict=True):
        np.testing.assert_array_equal(loaded, expected)


# The doors

NOISE = "".join(map(chr, np.random.default_rng(1).integers(32, 120, 20_000)))
"""Too many contexts."""


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"target_text": ""}, TextError),
        ({"draft_text": ""}, TextError),
        ({"target_text": "ab"}, TextError),
        ({"order": 0}, SettingError),
        ({"order": 2.5}, SettingError),
        ({"draft_order": 0}, SettingError),
        ({"draft_order": 4}, SettingError),
        ({"weight": 1.5}, SettingError),
        ({"draft_weight": float("nan")}, SettingError),
        ({"target_text": NOISE, "order": 5}, SettingError),
    ],
)
def test_bad_pairs_are_refused(settings: dict[str, Any], error: type[SpectheoryError]) -> None:
    good: dict[str, Any] = {"target_text": "to be or not", "order": 3, "draft_order": 2}
    assert ngram_pair(**good)
    with pytest.raises(error) as caught:
        ngram_pair(**good | settings)
    assert "\n" not in str(caught.value)
