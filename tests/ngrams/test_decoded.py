"""N-gram drafts decoded: a call for each that is expected, one for one, whatever the draft remembers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.judging.comparison import Comparison, compare_calls
from spectheory.measure import ModelPair
from spectheory.measure.copied import ngram_columns, removed_from_equal
from spectheory.measure.decoders import Decoded, Method, decode
from spectheory.measure.validation.runs import expected_calls
from spectheory.ngrams import read_ngrams
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import CopiedFirst, NgramMatch, PathRule
from spectheory.verification.registry import path_rule
from tests.made_up import each

PROMPTS = [torch.tensor([i % 5, 1, i % 4 + 1, 1, 3, 1, i % 5]) for i in range(6)]
DRAFTS = ("ngram-vllm:min=1,max=2", "ngram-vllm-gpu:min=1,max=2", "ngram-transformers", "suffix:max=3")
OTHERS = (
    *("ngram-simple:n=1,m=3", "ngram-map-k:n=1,m=3", "ngram-map-k4v:n=1,m=3", "ngram-mod:n=1,min=1,max=3"),
    "ngram-sglang:tokens=4,depth=4",
)
TOKENS = 30


def decoded_by(pair: ModelPair, name: str, k: int, sampling: Sampling) -> list[Decoded]:
    return decode(pair, PROMPTS, Method(name, Chain(k)), tokens=TOKENS, sampling=sampling, seed=3, batch=6)


def expected(pair: ModelPair, name: str, k: int, sampling: Sampling, decoded: list[Decoded]) -> list[float]:
    """Calls of each text by the path theorem."""
    (draft,) = read_ngrams([name])
    removed, calls = removed_from_equal(pair.target.network, sampling), []
    for prompt, one in zip(PROMPTS, decoded, strict=True):
        columns = ngram_columns(draft, prompt, one.output_ids, pair.end_of_text, removed)
        survival = NgramMatch(draft).path_survival(columns, k)
        calls += calls_of_texts(survival, np.array([len(one.output_ids)])).expected.tolist()
    return calls


@each("temperature", [0.0, 1.0])
@each("name", [*DRAFTS, *OTHERS, "ngram-cache"])
def test_decoded_calls_are_the_expected_ones(name: str, temperature: float, tiny_pair: ModelPair) -> None:
    """Text by text, no tolerance: given the text nothing is random. Another n-gram draft is seen."""
    few, k = dataclasses.replace(tiny_pair, vocabulary=6), 8 if name == "ngram-cache" else 3
    sampling = Sampling(temperature, top_p=0.9 if temperature else None)
    decoded = decoded_by(few, name, k, sampling)
    assert expected(few, name, k, sampling, decoded) == [len(one.calls) for one in decoded]
    assert any(call.accepted for one in decoded for call in one.calls)
    other = "ngram-vllm:min=2,max=2" if name != DRAFTS[0] else DRAFTS[1]
    assert expected(few, other, k, sampling, decoded) != [len(one.calls) for one in decoded]


@each("rule", ["lookup>token", "ngram-vllm:min=1,max=2>block", "suffix:max=3>race", "ngram-simple:n=2,m=3>argmax"])
def test_hybrids_copy_first_and_draft_elsewhere(rule: str, tiny_pair: ModelPair) -> None:
    """Calls of both kinds, against the law of each at its starts; the control is the model's rule alone.

    24 texts; false alarm 1e-6 each.
    """
    few, sampling, prompts = dataclasses.replace(tiny_pair, vocabulary=6), Sampling(0.9), PROMPTS * 4
    decoded = decode(few, prompts, Method(rule, Chain(3)), tokens=TOKENS, sampling=sampling, seed=7, batch=24)
    hybrid = path_rule(rule)
    assert isinstance(hybrid, CopiedFirst)

    def compared(law: PathRule) -> Comparison:
        laws = [
            expected_calls(few, prompt, one.output_ids, sampling, law, Chain(3), tokens=TOKENS)
            for prompt, one in zip(prompts, decoded, strict=True)
        ]
        return compare_calls(sum(len(one.calls) for one in decoded), laws)

    assert compared(hybrid).p > 1e-6
    assert compared(hybrid.other).p < 1e-6


def test_a_draft_with_a_length_is_decoded_with_it() -> None:
    with pytest.raises(SettingError, match="suffix:max=3 is asked for chain k=5: it drafts 3; use chain k=3"):
        Method("suffix:max=3", Chain(5))
    with pytest.raises(SettingError, match="is 2 drafts: one at a time"):
        Method("ngram-vllm:max=5|6", Chain(5))
