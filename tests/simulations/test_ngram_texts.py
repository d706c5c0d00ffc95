"""N-gram models of text: calls against the path theorem, recipes, bad input."""

from __future__ import annotations

import hashlib
from functools import cache
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
    Automaton,
    file_parameters,
    ngram_pair,
    ngram_pair_of,
    text_of,
    text_parameters,
)
from simulations.models.pairs import CallCounts
from simulations.simulators import decoding
from simulations.verdicts.predictions import Agreement, agrees
from spectheory.errors import SettingError, SpectheoryError, TextError

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


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"text": "no_such_module"}, TextError),
        ({"text": "numpy"}, TextError),
        ({"text": "sys"}, TextError),
        ({"text": "json..decoder"}, TextError),
        ({"text": None}, TextError),
        ({"file": "/no/such/file"}, TextError),
        ({"text": "bisect", "file": "too"}, SettingError),
        ({}, SettingError),
    ],
)
def test_bad_recipes_are_refused(parameters: dict[str, Any], error: type[SpectheoryError]) -> None:
    with pytest.raises(error) as caught:
        ngram_pair_of({**parameters, "sha256": "0", "order": 2, "draft_order": 1})
    assert "\n" not in str(caught.value)
