"""C3: every causal language model that transformers knows has its parameters and caches counted, or is refused by name.

The networks are made on torch's meta device, from their default configurations.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from spectheory.cost import ModelShape
from spectheory.cost.layers import Recurrence
from spectheory.cost.unmodelled import TYPES
from spectheory.errors import SettingError

KINDS = tuple(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)

CHANGED: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [3, 9]},
    "deepseek_v2": {
        "num_experts_per_tok": 6,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "moe_intermediate_size": 1408,
    },
    "dots1": {"n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 1, "first_k_dense_replace": 1},
    "glm4_moe": {"head_dim": 128},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 16},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128, "num_experts": 16, "moe_topk": 2},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 16},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16, "num_hidden_layers": 32},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8, "head_dim": 128},
}
"""Where transformers' defaults make no model, or one without what names it."""

SLACK = 1e-3
"""Biases, norms of queries and keys, vectors of recurrences."""
LOOSER = {
    **dict.fromkeys(("gpt2", "gpt-sw3", "gpt_bigcode", "openai-gpt"), "learned positions, and a bias of every matrix"),
    "axk2": "a gate of queries",
    "beam": "a gate of each head, norms",
    "dots3_note_text": "layers with a window have no index",
    "modernbert-decoder": "a matrix before the output",
}
"""What of these is left out, or counted too often, below 1e-2."""

FAST = (
    "llama",
    "gemma2",
    "gemma4_text",
    "gpt_oss",
    "mixtral",
    "qwen2_moe",
    "qwen3_5_text",
    "mamba2",
    "falcon_h1",
    "lfm2",
)


def kinds_of_text() -> list[str]:
    """Types that are read; those with parts for images or sound are read by their text's configuration."""
    return [kind for kind in KINDS if kind not in TYPES and not hasattr(default(kind), "text_config")]


@cache
def default(kind: str) -> Any:
    return AutoConfig.for_model(kind, **CHANGED.get(kind, {}))


@cache
def network(kind: str) -> Any:
    """The model without memory."""
    transformers.logging.set_verbosity_error()
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        return AutoModelForCausalLM.from_config(default(kind), dtype=torch.bfloat16).eval()


def check_parameters(kind: str) -> None:
    found = ModelShape.from_config(default(kind).to_dict()).parameters
    real = sum(p.numel() for p in network(kind).parameters())
    assert found == pytest.approx(real, rel=1e-2 if kind in LOOSER else SLACK), f"{kind}: {found / real - 1:+.3%}"


def check_caches(kind: str) -> None:
    """Seven tokens: keys and values or latent vectors, states, and the tokens that convolutions read."""
    if kind == "openai-gpt":  # keeps no cache
        return
    model = ModelShape.from_config(default(kind).to_dict())
    with torch.device("meta"), torch.no_grad():
        answer = network(kind)(torch.ones(1, 7, dtype=torch.long), use_cache=True)
    stored, states, last = 0, 0, 0
    for layer in (getattr(answer, "past_key_values", None) or answer.cache_params).layers:
        for name, tensor in [(name, each) for name, value in vars(layer).items() for each in tensors(value)]:
            if name == "conv_states":
                last += tensor.numel() // tensor.shape[-1] * (tensor.shape[-1] - 1)  # its own token need not be kept
            elif name == "recurrent_states":
                states += tensor.numel()
            else:
                stored += tensor.numel()
    assert stored == 7 * model.kv_bytes_per_token / model.bytes_per_kv, kind
    recurrent = [(count, part) for count, part in model.parts if isinstance(part, Recurrence)]
    if kind != "minimax":  # keeps its states beside the cache
        assert states == sum(count * part.numbers for count, part in recurrent), kind
        assert last == sum(count * part.last for count, part in recurrent), kind
        assert model.state_bytes == 4 * states + 2 * last


def tensors(value: Any) -> list[torch.Tensor]:
    values = value.values() if isinstance(value, dict) else [value]
    return [each for each in values if isinstance(each, torch.Tensor) and each.numel() > 1]


@pytest.mark.parametrize("kind", FAST)
def test_parameters_and_caches(kind: str) -> None:
    check_parameters(kind)
    check_caches(kind)


def test_every_architecture_is_read_or_refused_by_name() -> None:
    read = kinds_of_text()
    assert set(FAST) <= set(read)
    for kind in KINDS:
        config = default(kind) if kind not in TYPES else None
        text = getattr(config, "text_config", config)
        config = {"model_type": kind} if text is None else text.to_dict()
        if kind in TYPES or config["model_type"] in TYPES:
            with pytest.raises(SettingError, match="not modelled"):
                ModelShape.from_config(config)
        elif kind not in CHANGED:
            assert ModelShape.from_config(config).parameters > 0


def test_what_is_refused_is_known_to_transformers() -> None:
    """No stale name; the parts for text of composed models are not in the list of causal models."""
    assert set(TYPES) - set(KINDS) <= {"dbrx", "mllama_text_model", "gemma3n"}


def windows(kind: str) -> set[str]:
    """How a ``config.json`` of an older release is read: a window, and no ``layer_types``, which transformers makes."""
    found = set()
    for asked in ({}, {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 3}):
        if kind == "iquestcoder":  # refuses a window
            continue
        config = AutoConfig.for_model(kind, **CHANGED.get(kind, {}), **asked).to_dict()
        if "sliding_attention" not in (config.get("layer_types") or ()):
            continue
        listed = ModelShape.from_config(config)
        without = {name: value for name, value in config.items() if name != "layer_types"}
        try:
            found.add("same" if ModelShape.from_config(without) == listed else "another")
        except SettingError as error:
            found.add("refused" if "no layer_types" in str(error) else str(error))
    return found


@pytest.mark.parametrize("kind", ["gemma2", "qwen2", "cwm", "dots1", "qwen2_moe"])
def test_windows_are_those_of_transformers_where_a_config_lists_no_layers(kind: str) -> None:
    assert windows(kind) == {"refused" if kind == "qwen2_moe" else "same"}


@pytest.mark.evidence
def test_windows_of_every_architecture() -> None:
    found = {kind: windows(kind) for kind in kinds_of_text()}
    same, refused = ({kind for kind, how in found.items() if how == {each}} for each in ("same", "refused"))
    assert same | refused == {kind for kind, how in found.items() if how}, "a type is read in one way"
    assert len(same) >= 15
    assert len(refused) < 12


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "qwen3_moe", "smollm3"])
def test_a_window_that_is_not_asked_for_is_none(kind: str) -> None:
    """Qwen's and SmolLM's configs name a window that only ``use_sliding_window`` turns on."""
    config = default(kind).to_dict() | {"sliding_window": 64}
    config = {name: value for name, value in config.items() if name not in ("use_sliding_window", "layer_types")}
    model = ModelShape.from_config(config)
    assert model.cache_bytes(1000) == 1000 * model.kv_bytes_per_token
    assert ModelShape.from_config({**config, "model_type": "mistral"}).cache_bytes(1000) < model.cache_bytes(1000)


@pytest.mark.evidence
def test_parameters_and_caches_of_every_architecture() -> None:
    failed: dict[str, Exception] = {}
    kinds = kinds_of_text()
    for kind in kinds:
        try:
            check_parameters(kind)
            check_caches(kind)
        except (AssertionError, RuntimeError, AttributeError, ValueError) as error:
            failed[kind] = error
        network.cache_clear()
    assert not failed, "; ".join(f"{kind}: {str(error)[:200]}" for kind, error in failed.items())
    assert len(kinds) >= 100


def test_a_wrong_count_is_seen() -> None:
    """Negative control: a head more of keys and values is outside the slack."""
    config = default("llama").to_dict()
    wrong = ModelShape.from_config(config | {"num_key_value_heads": config["num_key_value_heads"] // 2}).parameters
    real = sum(p.numel() for p in network("llama").parameters())
    assert wrong != pytest.approx(real, rel=1e-2)
