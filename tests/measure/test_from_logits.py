"""``Trace.from_logits`` against what a measurement of the built-in pair makes of the same logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError, TextError, TraceError
from spectheory.measure.columns.statistics import position_statistics
from spectheory.measure.forward import paired_logits, teacher_forced
from spectheory.measure.pair import ModelPair
from spectheory.pairs import PairSource
from spectheory.trace import Trace
from tests.made_up import each

FLOAT32, FLOAT32_RATIO = 3e-6, 2e-5
"""A measurement sums in single precision; test_statistics.py says how far that is off."""
NOT_FROM_LOGITS = {"lookup_match", "lookup_drafted", "distinct_rank"}


@pytest.fixture(scope="module")
def pair() -> ModelPair:
    return PairSource("builtin:target", "builtin:draft").load()


@each("sampling", [Sampling(), Sampling(0.7, top_k=20), Sampling(0)])
def test_the_columns_of_a_measurement(sampling: Sampling, pair: ModelPair) -> None:
    prompt, text = (torch.tensor(pair.tokenizer(words).input_ids) for words in ("import argparse", "\n\ndef main():"))
    logits = list(paired_logits(pair, prompt, text, chunk=4, name="a"))
    target, draft, tokens = (torch.cat([part[i] for part in logits]) for i in range(3))
    if sampling.truncates:  # tokens that the cut target can output
        tokens = target.argmax(dim=-1)
        statistics = position_statistics(target, draft, tokens, sampling, better_drafts=True)
        measured = {name: values.numpy() for name, values in statistics.items()}
    else:
        measured = teacher_forced(pair, prompt, text, sampling, better_drafts=True)
    for convert in (torch.Tensor.clone, lambda values: values.numpy()):
        trace = Trace.from_logits(convert(target), convert(draft), convert(tokens), sampling=sampling)
        assert set(trace.columns) == set(measured) - NOT_FROM_LOGITS
        for name, values in trace.columns.items():
            bound = 0 if values.dtype.kind in "bi" else FLOAT32
            relative = FLOAT32_RATIO if name == "race_g" else bound
            np.testing.assert_allclose(values, measured[name], rtol=relative, atol=bound, err_msg=name)
        assert trace.sampling == sampling


def test_several_texts_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of texts, an array of them, and one text in blocks have the same columns."""
    rng = np.random.default_rng(0)
    target, draft, tokens = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 3)), rng.integers(3, size=(2, 5))
    together = Trace.from_logits(target, draft, tokens, ids=["a", "b"], sampled=True)
    listed = Trace.from_logits(list(target), list(draft), tokens.tolist())
    monkeypatch.setattr("spectheory.trace.logits.ENTRIES", 6)
    alone = [Trace.from_logits(*text) for text in zip(target, draft, tokens, strict=True)]
    assert [text.id for text in together.texts] == ["a", "b"]
    assert together.provenance["origin"] == "sampled from the target"
    for name, values in together.columns.items():
        np.testing.assert_array_equal(listed.columns[name], values)
        np.testing.assert_array_equal(np.concatenate([one.columns[name] for one in alone]), values)


ROW = np.log([[0.5, 0.5]])


@each(
    "given, error, fragment",
    [
        ((ROW, ROW, [2]), TextError, "a token of id 2"),
        ((ROW, ROW, [0, 1]), TextError, "logits (1, 2) and (1, 2) for tokens (2,)"),
        ((ROW, np.zeros((1, 3)), [0]), TextError, "logits (1, 2) and (1, 3)"),
        (([ROW], [ROW, ROW], [[0]]), TextError, "there are 1, 2, 1 texts"),
        ((np.exp(ROW), ROW, [0]), TextError, "these are probabilities"),
        ((ROW, np.exp(ROW), [0]), TextError, "these are probabilities"),
        ((np.array([[np.nan, 0.0]]), ROW, [0]), LogitsError, ""),
        ((np.array([[-np.inf, 0.0]]), ROW, [0]), TraceError, "log_target"),
    ],
)
def test_what_is_refused(given: tuple[Any, ...], error: type[Exception], fragment: str) -> None:
    with pytest.raises((error, TextError)) as refused:
        Trace.from_logits(*given)
    assert fragment in str(refused.value)


def test_texts_that_the_target_did_not_sample_are_refused() -> None:
    """Fifty right traces pass (rate 50 x 2e-6 = 1e-4 at most), each mistake with the same logits is refused; a text of
    three tokens is too short to say, and what nobody claims to be sampled is taken.
    """
    rng = np.random.default_rng(8)
    for _ in range(50):
        target = 1.5 * rng.normal(size=(200, 20))
        draft = target + 0.8 * rng.normal(size=target.shape)
        tokens = (target + rng.gumbel(size=target.shape)).argmax(axis=-1)
        Trace.from_logits(target, draft, tokens, sampled=True)
    shifted, first = (target[1:], draft[1:], tokens[:-1]), (target, draft, target.argmax(axis=-1))
    hotter = target, draft, (target / 3 + rng.gumbel(size=target.shape)).argmax(axis=-1)
    for mistake in ((draft, target, tokens), shifted, first, hotter):
        with pytest.raises(TextError, match="models exchanged"):
            Trace.from_logits(*mistake, sampled=True)
        Trace.from_logits(*mistake, sampled=False)
        Trace.from_logits(*(part[:3] for part in mistake), sampled=True)
    Trace.from_logits(*first, sampling=Sampling(0), sampled=True)
    assert Trace.from_logits(draft, target, tokens).provenance["draft_ahead"] > 0
