"""C3 for configurations with GPT-2's names: sizes against real networks of these families, and bad values by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from spectheory.cost import ModelShape

TINY = {"n_layer": 3, "n_embd": 48, "n_head": 6, "vocab_size": 101, "n_positions": 32}
FAMILIES = ("gpt2", "gpt_bigcode", "gptj", "codegen")


def tiny(kind: str, **options: Any) -> tuple[dict[str, Any], Any]:
    """The configuration of a small network of a family, and the network."""
    rotary = {"rotary_dim": 8} if kind in ("gptj", "codegen") else {}
    # The queries of codegen are computed in four groups of heads.
    heads = {"n_head": 8} if kind == "codegen" else {}
    config = AutoConfig.for_model(kind, **TINY | rotary | heads | options)
    config._attn_implementation = "eager"
    return config.to_dict(), AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("inner", [None, 80])
@pytest.mark.parametrize("kind", FAMILIES)
def test_matrices_of_real_networks(kind: str, inner: int | None) -> None:
    """Every matrix but the table of positions, of which a pass looks up a few rows."""
    config, network = tiny(kind, n_inner=inner)
    model = ModelShape.from_config(config)
    named = [(name, p) for name, p in network.named_parameters() if p.ndim == 2 and "wpe" not in name]
    embedding = 0 if model.tied else model.vocabulary * model.hidden
    assert model.multiplied + embedding == sum(p.numel() for _, p in named)


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_config_file_without_the_defaults(kind: str) -> None:
    """What the hub's files leave out is the same as what the library fills in."""
    full, _ = tiny(kind)
    names = ("model_type", "n_layer", "n_embd", "n_head", "n_positions", "vocab_size", "multi_query")
    short = {name: full[name] for name in names if name in full}
    shape = ModelShape.from_config(full)
    assert ModelShape.from_config(short) == shape
    assert shape.window == TINY["n_positions"]


@pytest.mark.parametrize("kind", ["gpt2", "gpt_bigcode"])
def test_operations_and_cache_of_real_networks(kind: str) -> None:
    """Counted by torch in a pass on 4 tokens after 12; scores against all, whatever the mask hides."""
    config, network = tiny(kind)
    model = ModelShape.from_config(config)
    with torch.no_grad():
        cache = network(torch.ones(1, 12, dtype=torch.long), use_cache=True).past_key_values
        with FlopCounterMode(display=False) as counted:
            cache = network(torch.ones(1, 4, dtype=torch.long), past_key_values=cache, use_cache=True).past_key_values
    assert counted.get_total_flops() == 4 * model.operations_per_token(16)
    assert model.kv_bytes_per_token * 16 == 2 * sum(
        t.numel() for layer in cache.layers for t in (layer.keys, layer.values)
    )


def test_published_gpt2() -> None:
    """124,439,808 weights as published; without positions and biases within one per cent."""
    published = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
    left_out = 1024 * 768 + 12 * (3 + 1 + 4 + 1) * 768 + (2 * 12 + 1) * 768  # positions; biases of matrices, of norms
    assert ModelShape.from_config(published).parameters == 124_439_808 - left_out
    assert left_out < 0.01 * 124_439_808
