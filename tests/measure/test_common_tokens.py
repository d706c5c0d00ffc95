"""Drafts with another tokenizer (TLI): the map, what the draft reads, columns, calls, and transformers as judge."""

from __future__ import annotations

import copy
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from transformers import PreTrainedTokenizerFast
from transformers.generation.candidate_generator import AssistantToTargetTranslator

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry
from spectheory.errors import ModelError, SettingError, TextError
from spectheory.judging.comparison import CallLaw, compare_calls
from spectheory.measure import MeasureSettings, Method, decode, load_pair, measure
from spectheory.measure.assisted import count_assisted_calls
from spectheory.measure.common_tokens import OUTSIDE, CommonTokens, common_tokens
from spectheory.measure.forward import teacher_forced
from spectheory.measure.pair import ModelPair
from spectheory.prompts import Prompt
from spectheory.verification.registry import path_rule
from tests.measure.other_made import save_pair

PROMPTS = ("the draft reads zebra text", "a target of many layers", "zebra zebra checks few layers")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return save_pair(tmp_path_factory.mktemp("other"))


@pytest.fixture(scope="module", params=OUTSIDE)
def pair(folders: tuple[Path, Path], request: pytest.FixtureRequest) -> ModelPair:
    return load_pair(*folders, device="cpu", outside=request.param)


@pytest.fixture(scope="module")
def as_text(folders: tuple[Path, Path]) -> ModelPair:
    return load_pair(*folders, device="cpu")


def common_of(pair: ModelPair) -> CommonTokens:
    assert pair.draft.common is not None
    return pair.draft.common


def unigram(first: int) -> PreTrainedTokenizerFast:
    """A tokenizer of few words with and without a space, whose ids begin at one of them."""
    words = ["▁the", "▁text", "▁do", ",", "▁,", ".", "▁.", "n't", "▁n't", "▁"]
    scores = [("<unk>", 0.0), *((word, -1.0) for word in words[first:] + words[:first])]
    tokenizer = Tokenizer(Unigram(scores, 0))
    tokenizer.pre_tokenizer, tokenizer.decoder = Metaspace(), decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


def ids(pair: ModelPair, text: str) -> torch.Tensor:
    return torch.tensor(pair.tokenizer(text)["input_ids"])


def test_the_map_is_that_of_transformers(as_text: ModelPair) -> None:
    common = common_of(as_text)
    translator = AssistantToTargetTranslator(common.target, common.draft, as_text.vocabulary)
    ours = {target: draft for target, draft in enumerate(common.to_draft.tolist()) if draft >= 0}
    assert ours == translator.target_to_assistant_input_ids
    assert common.count == len(ours) < as_text.vocabulary


def test_signs_of_a_space_are_one(as_text: ModelPair) -> None:
    common = common_of(as_text)
    target, draft = (each.get_vocab() for each in (common.target, common.draft))
    assert int(common.to_draft[target["Ġthe"]]) == draft["▁the"]
    assert int(common.to_draft[target["zebra"]]) == -1


def test_what_the_draft_reads(pair: ModelPair) -> None:
    common, prompt = common_of(pair), ids(pair, PROMPTS[0]).tolist()
    tokens = common.draft.convert_ids_to_tokens(common.of_prompt(prompt))
    zebra = common.draft.convert_ids_to_tokens(common.of_token(pair.tokenizer.get_vocab()["Ġzebra"]))
    if common.outside == "unknown":  # token for token
        assert len(tokens) == len(prompt)
        assert zebra == ["<unk>"]
    else:  # the draft's own tokens of the same text
        assert tokens == common.draft.tokenize(PROMPTS[0])
        assert len(zebra) > 1
    assert common.of_prompt([pair.tokenizer.eos_token_id]), "something is read of a prompt without text"


def test_columns_are_those_of_whole_passes(pair: ModelPair) -> None:
    common, prompt, sampling = common_of(pair), ids(pair, PROMPTS[0]), Sampling(0.8)
    text = ids(pair, " the zebra layers read few tokens")
    columns = teacher_forced(pair, prompt, text, sampling, chunk=3)
    read = common.of_prompt(prompt.tolist())
    for i, token in enumerate(text.tolist()):
        with torch.no_grad():
            logits = pair.draft.network(torch.tensor([read])).logits[0, -1].double()
            target = pair.target.network(torch.cat([prompt, text[:i]])[None]).logits[0, -1].double()
        q = torch.zeros(pair.vocabulary, dtype=torch.float64)
        known = common.to_draft >= 0
        q[known] = torch.softmax(logits[common.to_draft[known]] / 0.8, dim=0)
        p = torch.softmax(target[: pair.vocabulary] / 0.8, dim=0)
        np.testing.assert_allclose(np.exp(columns["log_draft"][i]), float(q[token]), atol=2e-6)
        np.testing.assert_allclose(columns["total_variation"][i], float((p - q).abs().sum() / 2), atol=2e-6)
        assert columns["total_variation"][i] >= float(p[~known].sum()) - 2e-6, "what is not common is never drafted"
        read += common.of_token(token)


@pytest.mark.parametrize("rule", ["token", "argmax"])
def test_calls_are_those_expected(rule: str, pair: ModelPair) -> None:
    """At temperature 0, and of first choices given the text, nothing is random: another reading of the text shows."""
    sampling = Sampling(1.0 if rule == "argmax" else 0.0)
    prompts = [ids(pair, text) for text in PROMPTS]
    decoded = decode(pair, prompts, Method(rule, Chain(3)), tokens=24, sampling=sampling, batch=3)
    alone = decode(pair, prompts[:1], Method(rule, Chain(3)), tokens=24, sampling=sampling)
    assert alone[0].output_ids.tolist() == decoded[0].output_ids.tolist()
    for prompt, text in zip(prompts, decoded, strict=True):
        assert len(text.calls) == law_of(pair, rule, prompt, text.output_ids, sampling).calls


@pytest.mark.parametrize("rule", ["race", "recursive-distinct"])
def test_trees_wider_than_what_is_common(rule: str, as_text: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft with few common tokens is exhausted, and its tree has tokens that it lacks: the reader keeps its place,
    and a reader without cache decodes the same.
    """
    common = common_of(as_text)
    few = torch.full_like(common.to_draft, -1)
    two = (common.to_draft >= 0).nonzero()[:2, 0]
    few[two] = common.to_draft[two]
    pair = replace(as_text, draft=replace(as_text.draft, common=replace(common, to_draft=few, _read={})))
    how = Method(rule, KAry((4, 2, 1)))

    def texts() -> list[list[int]]:
        made = decode(pair, [ids(pair, text) for text in PROMPTS], how, tokens=12, seed=4, batch=3)
        return [[len(each.calls), *each.output_ids.tolist()] for each in made]

    cached = texts()
    monkeypatch.setattr(import_module(decode.__module__), "why_uncached", lambda model: "rereads")
    assert texts() == cached


def law_of(pair: ModelPair, rule: str, prompt: torch.Tensor, text: torch.Tensor, sampling: Sampling) -> CallLaw:
    columns = teacher_forced(pair, prompt, text, sampling, race=False, sampled=True)
    return CallLaw.of([path_rule(rule).path_survival(columns, 3)])


def test_a_trace_says_what_is_common(as_text: ModelPair, tmp_path: Path) -> None:
    prompts = [Prompt(str(number), "", text) for number, text in enumerate(PROMPTS)]
    trace = measure(as_text, prompts, MeasureSettings(tokens=6, race=False), tmp_path / "trace.parquet")
    common = common_of(as_text)
    assert trace.provenance["draft"]["common"] == common.count
    assert trace.provenance["draft"]["outside"] == "text"
    assert np.isinf(trace.columns["log_draft"]).tolist() == [common.to_draft[i] < 0 for i in trace.columns["token"]]


def test_what_cannot_be_drafted_is_refused(folders: tuple[Path, Path], as_text: ModelPair) -> None:
    with pytest.raises(SettingError, match="--outside is 'words'"):
        load_pair(*folders, device="cpu", outside="words")
    with pytest.raises(ModelError, match="have the same token ids"):
        load_pair(folders[0], folders[0], device="cpu", outside="text")
    narrow = replace(as_text.draft, common=replace(common_of(as_text), window=8))
    with pytest.raises(TextError, match="the draft takes 8"):
        teacher_forced(replace(as_text, draft=narrow), ids(as_text, PROMPTS[0]), ids(as_text, PROMPTS[1]), Sampling())
    with pytest.raises(SettingError, match="trees grow"):
        measure(as_text, [Prompt("a", "", "the text")], MeasureSettings(grown="4x2x2"), Path("nowhere"))


# transformers


def test_an_output_matrix_that_transformers_prunes_gives_pmfs_under_the_wrong_tokens(as_text: ModelPair) -> None:
    """The rows are in the order of ``get_vocab``, and are read as if they were in that of the ids.

    The order is random: by chance it is right once in count! times.
    """
    common, network = common_of(as_text), copy.deepcopy(as_text.draft.network)
    read = torch.tensor([common.of_prompt(ids(as_text, PROMPTS[0]).tolist())])
    with torch.no_grad():
        whole = as_text.draft.network(read).logits[0, -1:]
        translator = AssistantToTargetTranslator(
            common.target, common.draft, as_text.vocabulary, network, assistant_prune_lm_head=True
        )
        pruned = translator.get_target_logits(network(read).logits[0, -1:])
    right = common.over_target(whole)
    assert torch.isinf(pruned).tolist() == torch.isinf(right).tolist()
    assert torch.allclose(pruned[pruned.isfinite()].sort().values, right[right.isfinite()].sort().values, atol=1e-5)
    assert not torch.allclose(pruned, right, atol=1e-2)


def test_what_a_target_that_is_no_bpe_writes() -> None:
    """Transformers removes the spaces before punctuation there, so that the draft reads other tokens."""
    target, draft = unigram(3), unigram(5)
    text = target("the text , do n't .")["input_ids"]
    assert len(target.convert_ids_to_tokens(text)) == 6
    read = common_tokens(target, draft).of_prompt(text)
    assert draft.convert_ids_to_tokens(read) == ["▁the", "▁text", ",", "▁do", "n't", "."]


@pytest.mark.evidence
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_transformers_makes_the_calls_expected(temperature: float, as_text: ModelPair) -> None:
    """Exact at temperature 0; else two-sided at a false-alarm rate of 1e-6 each, where the plain map of ids is the
    control: a draft that is taken for one of the target's own tokenizer is refuted.
    """
    sampling, prompts = Sampling(temperature), [ids(as_text, text) for text in PROMPTS] * 8
    made = count_assisted_calls(as_text, prompts, sampling, k=3, tokens=40, seed=5)
    rows = list(zip(prompts, made, strict=True))
    laws = [law_of(as_text, "token", prompt, text.output_ids, sampling) for prompt, text in rows]
    counted = sum(text.calls for text in made)
    comparison = compare_calls(counted, laws)
    if temperature == 0:
        assert counted == sum(law.calls for law in laws)
    else:
        assert comparison.p > 1e-6
        unmapped = replace(as_text, draft=replace(as_text.draft, common=None))
        wrong = [law_of(unmapped, "token", prompt, text.output_ids, sampling) for prompt, text in rows]
        assert compare_calls(counted, wrong).p < 1e-6


def test_transformers_reads_the_text(folders: tuple[Path, Path]) -> None:
    pair = load_pair(*folders, device="cpu", outside="unknown")
    with pytest.raises(SettingError, match="use --outside text"):
        count_assisted_calls(pair, [ids(pair, PROMPTS[0])], Sampling(), k=1, tokens=4, seed=0)
