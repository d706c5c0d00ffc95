"""transformers' own filters judged: texts and calls of its generation against our pmfs, on models full of ties.

Without ties where top-p is asked for: which of the tied tokens at its cut stay is not determined there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SpectheoryError
from spectheory.judging.comparison import compare_calls
from spectheory.measure import MeasureSettings, ModelPair, teacher_forced
from spectheory.measure.assisted import Generated, generate
from spectheory.measure.validation import FILTERS_JUDGE, JUDGE, Setting, Validation, validate
from spectheory.measure.validation.runs import expected_calls
from spectheory.prompts import Prompt
from spectheory.verification import TokenVerification

BOUND = 5.2
"""|z| of a right prediction exceeds this in 2e-7 of all runs (normal limit); three predictions are held to it."""
IDS = [torch.tensor([i % 60 + 1, i % 7 + 1, 9]) for i in range(1, 13)]
TIED, TIE_FREE = Sampling(0.7, top_k=4, min_p=0.1), Sampling(1.3, top_k=12, top_p=0.8, min_p=0.05)


def coarse(_module: Any, _inputs: Any, output: Any) -> Any:
    """Logits in steps of a half: many tokens share one."""
    output.logits = (2 * output.logits).round() / 2
    return output


@pytest.fixture
def tied_pair(tiny_pair: ModelPair) -> Iterator[ModelPair]:
    hooks = [model.network.register_forward_hook(coarse) for model in (tiny_pair.target, tiny_pair.draft)]
    yield tiny_pair
    for hook in hooks:
        hook.remove()


def texts_of(pair: ModelPair, sampling: Sampling, k: int | None) -> list[Generated]:
    seeds = np.random.SeedSequence(5).spawn(len(IDS))
    return [generate(pair, ids, sampling, k, 40, seed, own_filters=True) for ids, seed in zip(IDS, seeds, strict=True)]


def impossible(pair: ModelPair, texts: list[Generated], sampling: Sampling) -> int:
    """Texts with a token that our pmfs exclude."""

    def excluded(ids: Tensor, text: Generated) -> bool:
        try:
            teacher_forced(pair, ids, text.output_ids, sampling, race=False)
        except SpectheoryError:
            return True
        return False

    return sum(excluded(ids, text) for ids, text in zip(IDS, texts, strict=True))


@pytest.mark.parametrize("sampling", [TIED, TIE_FREE], ids=str)
def test_its_texts_and_calls_are_ours(sampling: Sampling, request: pytest.FixtureRequest) -> None:
    """12 texts of 40 tokens: every token is one that we keep, and the calls are those of our pmfs.

    Controls: with fewer tokens kept most texts are impossible, and another number of drafts has other calls.
    """
    pair: ModelPair = request.getfixturevalue("tied_pair" if sampling is TIED else "tiny_pair")
    texts = texts_of(pair, sampling, 3)
    assert impossible(pair, texts, sampling) == 0
    assert impossible(pair, texts, dataclasses.replace(sampling, top_k=1)) > len(texts) / 2

    def z(drafts: int) -> float:
        read = [(ids, text.output_ids) for ids, text in zip(IDS, texts, strict=True)]
        laws = [expected_calls(pair, *each, sampling, TokenVerification(), Chain(drafts)) for each in read]
        return compare_calls(sum(text.calls for text in texts), laws).z

    assert abs(z(3)) < BOUND
    assert abs(z(1)) > BOUND


def test_the_filters_of_plain_generation(tied_pair: ModelPair) -> None:
    assert impossible(tied_pair, texts_of(tied_pair, TIED, None), TIED) == 0


def test_a_wrong_filter_of_transformers_would_be_seen(tied_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a top-k that keeps two tokens more gives impossible texts."""
    from spectheory.measure import assisted

    real = assisted.TopKLogitsWarper
    monkeypatch.setattr(assisted, "TopKLogitsWarper", lambda k: real(k + 2))
    texts = texts_of(tied_pair, Sampling(top_k=3), 3)
    assert impossible(tied_pair, texts, Sampling(top_k=3)) > len(texts) / 2


def test_validation_with_either_judge(tied_pair: ModelPair, tmp_path: Path, quick_latencies: None) -> None:
    """Each is timed against its own plain generation; both decide."""
    prompts = tuple(Prompt(str(i), "", f"t{i % 60 + 1} t{i % 7 + 1} t9") for i in range(1, 5))
    how = MeasureSettings(Sampling(top_k=3, min_p=0.1), tokens=20, count=1)
    question = Validation((JUDGE, FILTERS_JUDGE), (Chain(2),), (0.7,), how)
    validation = validate(tied_pair, prompts, question, tmp_path)
    assert [record["rule"] for record in validation["temperatures"][0]["settings"]] == [JUDGE, FILTERS_JUDGE]
    assert validation["comparisons"] == 2
    assert validation["disagreements"] == 0
    assert validation["provenance"]["settings"]["sampling"] == {"top_k": 3, "top_p": None, "min_p": 0.1}


def test_judges_and_their_baselines() -> None:
    ours, filters = (Setting(rule, Chain(2), judged=True) for rule in (JUDGE, FILTERS_JUDGE))
    assert [one.own_filters for one in (ours, filters, ours.baseline, filters.baseline)] == [False, True, False, True]
    assert [one.baseline.name for one in (ours, filters)] == ["assisted plain", "assisted-filters plain"]
    assert Setting("token", Chain(2)).baseline.name == "plain"
