"""C3: parameters, operations and caches against real networks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from spectheory.cost import (
    ModelShape,
)
from tests.cost.roofline_cases import PUBLISHED, attention_of

# What is left out: the biases of queries, keys and values; the norms of queries and keys.
PUBLISHED_BUT_FOR: dict[str, tuple[dict[str, Any], int, int]] = {
    "Qwen/Qwen2.5-7B": (
        {"num_hidden_layers": 28, "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28}
        | {"num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False},
        7_615_616_512,
        28 * (28 + 2 * 4) * 128,
    ),
    "Qwen/Qwen3-0.6B": (
        {"num_hidden_layers": 28, "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16}
        | {"num_key_value_heads": 8, "vocab_size": 151936, "head_dim": 128, "tie_word_embeddings": True},
        596_049_920,
        28 * 2 * 128,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_of_published_models(name: str) -> None:
    config, parameters = PUBLISHED[name]
    model = ModelShape.from_config(config)
    assert model.parameters == parameters
    assert model.weight_bytes == 2 * parameters
    matrices = 2 * config["vocab_size"] * config["hidden_size"] / (2 if config["tie_word_embeddings"] else 1)
    quantised = ModelShape.from_config(config, weights="int4", kv_cache="fp8")
    assert quantised.weight_bytes == parameters / 2 + 1.5 * matrices, "embedding and output stay in 16 bits"
    assert quantised.kv_bytes_per_token == model.kv_bytes_per_token / 2


@pytest.mark.parametrize("name", PUBLISHED_BUT_FOR)
def test_parameters_but_for_small_vectors(name: str) -> None:
    config, parameters, left_out = PUBLISHED_BUT_FOR[name]
    assert ModelShape.from_config(config).parameters == parameters - left_out
    assert left_out < 1e-4 * parameters


TINY = {
    "num_hidden_layers": 3,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 101,
}

GROUPED = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "starcoder2", "nemotron", "phi", "arcee", "olmo2", "granite")

FAMILIES = (*GROUPED, "gpt_neox", "persimmon")


def tiny(kind: str, **options: Any) -> tuple[ModelShape, Any]:
    """A small network of a family, and what its config says of it."""
    sizes = TINY | ({} if kind in GROUPED else {"num_key_value_heads": 6}) | options
    config = AutoConfig.for_model(kind, **sizes, pad_token_id=0)
    config._attn_implementation = "eager"
    network = AutoModelForCausalLM.from_config(config).eval()
    return ModelShape.from_config(config.to_dict()), network


@pytest.mark.parametrize("kind", FAMILIES)
def test_matrices_of_real_networks(kind: str) -> None:
    """Every matrix of the network is counted, once: embedding, attention, MLP, output."""
    model, network = tiny(kind)
    matrices = sum(p.numel() for p in network.parameters() if p.ndim == 2)
    embedding = 0 if model.tied else model.vocabulary * model.hidden
    assert model.multiplied + embedding == matrices
    assert model.read_bytes == model.weight_bytes - 2 * embedding


def test_the_window_is_what_the_config_says() -> None:
    config = AutoConfig.for_model("llama", **TINY, max_position_embeddings=77, pad_token_id=0).to_dict()
    assert ModelShape.from_config(config).window == 77
    assert ModelShape.from_config(AutoConfig.for_model("gpt2", n_positions=33).to_dict()).window == 33
    assert ModelShape.from_config(config | {"max_position_embeddings": "long"}).window is None


def test_operations_of_a_prompt_are_those_of_its_tokens() -> None:
    """Token by token, each after those before it, halfway through its own; one token alone has an output."""
    model, _ = tiny("llama")
    each = [model.operations_per_token(position + 0.5) for position in range(50)]
    unread = 49 * 2 * model.vocabulary * model.hidden
    assert model.operations_of_prompt(50) == pytest.approx(sum(each) - unread, rel=1e-12)


def test_without_its_word_the_model_type_says_whether_embeddings_are_tied() -> None:
    for kind in FAMILIES:
        config = AutoConfig.for_model(kind, **TINY, pad_token_id=0).to_dict()
        tied = config.pop("tie_word_embeddings")
        assert ModelShape.from_config(config).tied == tied, kind


@pytest.mark.parametrize("kind", ["llama", "qwen3", "phi"])
@pytest.mark.parametrize(("before", "new"), [(0, 1), (12, 1), (12, 4)])
def test_operations_and_cache_of_real_networks(kind: str, before: int, new: int) -> None:
    """Counted by torch in a pass after `before` tokens: every new token attends to all, whatever the mask hides."""
    model, network = tiny(kind)
    with torch.no_grad():
        cache = network(torch.ones(1, before, dtype=torch.long), use_cache=True).past_key_values if before else None
        with FlopCounterMode(display=False) as counted:
            cache = network(torch.ones(1, new, dtype=torch.long), past_key_values=cache, use_cache=True).past_key_values
    operations = new * model.operations_per_token(before + new)
    rotary = new * attention_of(model)[1].head_dim  # at most: the angles of positions, an outer product of each pass
    assert operations <= counted.get_total_flops() <= operations + rotary
    stored = sum(t.numel() for layer in cache.layers for t in (layer.keys, layer.values))
    assert model.kv_bytes_per_token * (before + new) == 2 * stored
