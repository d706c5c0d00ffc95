"""Decoders with models of other kinds, and rows of logits as pmfs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry
from spectheory.errors import LogitsError, ModelError
from spectheory.measure import Model, ModelPair, load_pair
from spectheory.measure.decoders import Method, decode, readers
from spectheory.measure.decoders.readers import PmfRows, why_uncached
from spectheory.measure.forward import teacher_forced
from spectheory.measure.model_files import quiet
from spectheory.measure.reading import Reading

SIZES = {"vocab_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32}
WIDE = {"intermediate_size": 64, "max_position_embeddings": 128, "initializer_range": 0.5, "eos_token_id": 0}
CONFIGS = {
    "positions added": transformers.GPT2Config(
        vocab_size=64, n_layer=2, n_head=2, n_embd=32, n_positions=128, initializer_range=0.3, eos_token_id=0
    ),
    "shared heads": transformers.Qwen2Config(**SIZES, **WIDE, num_key_value_heads=1),
    "eager attention": transformers.LlamaConfig(**SIZES, **WIDE, attn_implementation="eager"),
    "bfloat16": transformers.LlamaConfig(**SIZES, **WIDE, dtype=torch.bfloat16),
    "sliding window": transformers.MistralConfig(**SIZES, **WIDE, num_key_value_heads=2, sliding_window=8),
    "no attention": transformers.MambaConfig(vocab_size=64, num_hidden_layers=2, hidden_size=32, eos_token_id=0),
}
PROMPTS = [torch.tensor(ids) for ids in ([5, 9, 11], [7], [3, 4, 3, 4, 3, 8, 2, 60, 33])]


def model_of(config: Any, seed: int) -> Model:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = transformers.AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    return Model(f"model {seed}", None, network, 64, 128, "")


@pytest.fixture(scope="module")
def tokenizer(tiny_pair: ModelPair) -> Any:
    return tiny_pair.tokenizer


@pytest.mark.parametrize("kind", CONFIGS)
def test_models_of_every_kind(kind: str, tokenizer: Any) -> None:
    """Trees, chains and batches give the text of plain race sampling, greedy ones the greedy text.

    In bfloat16 rounding decides now and then, so that there only the calls are looked at.
    """
    pair = ModelPair(model_of(CONFIGS[kind], 1), model_of(CONFIGS[kind], 1), tokenizer, 64)
    cached = kind not in ("sliding window", "no attention")
    assert (why_uncached(pair.target) is None) == cached
    for sampling in (Sampling(), Sampling(0)):
        plain = decode(pair, PROMPTS, Method("race"), tokens=20, sampling=sampling)
        for shape, batch in ((KAry((2, 2)), 1), (Chain(3), 3)):
            drafted = decode(pair, PROMPTS, Method("race", shape), tokens=20, sampling=sampling, batch=batch)
            for one, other in zip(drafted, plain, strict=True):
                assert kind == "bfloat16" or torch.equal(one.output_ids, other.output_ids)
                assert len(one.remarks) == (0 if cached else 2)
                assert len(one.calls) < 0.8 * len(one.output_ids)  # the draft is the target


def test_models_that_look_ahead_are_refused_when_loaded(
    tiny_folders: tuple[Path, Path], tokenizer: Any, tmp_path: Path
) -> None:
    """However little: an untrained one moves its logits by a thousandth of their spread."""
    sizes = {**SIZES, "intermediate_size": 64, "pad_token_id": 0}
    with torch.random.fork_rng(), quiet():
        torch.manual_seed(1)
        transformers.BertLMHeadModel(transformers.BertConfig(**sizes)).save_pretrained(tmp_path / "bert")
        transformers.BertLMHeadModel(transformers.BertConfig(**sizes, is_decoder=True)).save_pretrained(tmp_path / "ok")
        config = transformers.T5Config(vocab_size=64, d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2)
        transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
        for name in ("bert", "ok", "t5"):
            tokenizer.save_pretrained(tmp_path / name)
    load_pair(tiny_folders[0], tmp_path / "ok", device="cpu")
    with pytest.raises(ModelError, match="'bert' is not causal"):
        load_pair(tiny_folders[0], tmp_path / "bert", device="cpu")
    with pytest.raises(ModelError, match="needs a causal language model; choose"):
        load_pair(tiny_folders[0], tmp_path / "t5", device="cpu")


@pytest.mark.parametrize(("shape", "remedy"), [((1, 9), "use --chunk 4 or"), ((6, 1), "use 3 texts per prompt")])
def test_out_of_memory_names_what_to_try(shape: tuple[int, int], remedy: str, tiny_pair: ModelPair) -> None:
    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError

    hook = tiny_pair.target.network.register_forward_pre_hook(full)
    try:
        with pytest.raises(ModelError, match=remedy):
            Reading(tiny_pair.target, 64).read(torch.ones(shape, dtype=torch.int64))
    finally:
        hook.remove()


def test_no_temperature_is_too_small(tiny_pair: ModelPair) -> None:
    """Below the smallest float of a trace's pmfs the target is as greedy as at 0, and no number is lost."""
    (text,) = decode(tiny_pair, PROMPTS[:1], Method("plain"), tokens=12, sampling=Sampling(0))
    greedy, small = (teacher_forced(tiny_pair, PROMPTS[0], text.output_ids, Sampling(t)) for t in (0, 1e-320))
    for column in ("log_target", "total_variation", "target_entropy", "race_acceptance"):
        np.testing.assert_array_equal(small[column], greedy[column], err_msg=column)
    np.testing.assert_array_equal(np.exp(small["log_draft"]), np.exp(greedy["log_draft"]))


def test_pmfs_are_worked_out_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row or all at once, and where a temperature leads beyond the floats."""
    logits = torch.randn(5, 40, generator=torch.Generator().manual_seed(1))
    logits[2, 7] = -math.inf
    settings = (Sampling(), Sampling(0.5), Sampling(0), Sampling(1.3, top_k=7), Sampling(top_p=0.8), Sampling(1e-320))
    for sampling in settings:
        expected = np.exp(sampling.log_pmf(logits.double().numpy()))
        at_once = PmfRows(logits, sampling)
        with monkeypatch.context() as patch:
            patch.setattr(readers, "_AT_ONCE", 0)
            one_by_one = PmfRows(logits, sampling)
            assert len(one_by_one) == len(at_once) == 5
            for row in (3, 0, 2, 3):
                np.testing.assert_allclose(one_by_one[row], expected[row], rtol=1e-12, atol=1e-300)
                np.testing.assert_array_equal(one_by_one[row], at_once[row])
    for bad in (math.nan, math.inf):
        logits[1, 3] = bad
        with pytest.raises(LogitsError, match=r"contain (nan|inf)"):
            PmfRows(logits, Sampling())
