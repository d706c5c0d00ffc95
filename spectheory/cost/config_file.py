"""C3: reading the sizes of a model from its ``config.json``, under the names of Llama or of GPT-2."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as brief
from typing import Any

from spectheory.errors import SettingError

LARGEST = 10**9
"""Far above every size of a model."""
_SIZES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "intermediate": "intermediate_size",
    "heads": "num_attention_heads",
    "vocabulary": "vocab_size",
}
_AS_GPT2 = {
    "num_hidden_layers": "n_layer",
    "hidden_size": "n_embd",
    "intermediate_size": "n_inner",
    "num_attention_heads": "n_head",
}
"""GPT-2's names of the same sizes, also used by gpt_bigcode, gptj and codegen."""
_NOT_DENSE = ("num_local_experts", "num_experts", "n_routed_experts", "kv_lora_rank", "state_size")
_ATTENTION = ("full_attention", "sliding_attention", "chunked_attention")
_TIED = frozenset({"cohere", "cohere2", "gemma", "gemma2", "gemma3_text", "smollm3", "starcoder2"})
_UNTIED_AS_GPT2 = frozenset({"gptj", "codegen"})
_NOT_GATED = frozenset({"arcee", "gpt_neox", "nemotron", "persimmon", "phi", "starcoder2"})


def shape_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of :class:`~spectheory.cost.ModelShape` except the bytes."""
    as_gpt2 = "n_embd" in config and "hidden_size" not in config
    if as_gpt2 and config["n_embd"] is not None and config.get("n_inner") is None:
        config = {**config, "n_inner": 4 * size_in(config, "hidden_size")}
    _check_complete(config)
    _check_dense(config)
    sizes = {name: size_in(config, key) for name, key in _SIZES.items()}
    kind, tied = str(config.get("model_type")), config.get("tie_word_embeddings")
    if tied is None:
        tied = kind not in _UNTIED_AS_GPT2 if as_gpt2 else kind in _TIED
    return {
        **sizes,
        "kv_heads": 1 if as_gpt2 and config.get("multi_query") else _kv_heads(config, sizes["heads"]),
        "head_dim": size_in(config, "head_dim") if config.get("head_dim") else _head_dim(config, sizes),
        "tied": bool(tied),
        "gated": not as_gpt2 and kind not in _NOT_GATED,
    }


def _check_complete(config: Mapping[str, Any]) -> None:
    missing = [key for key in _SIZES.values() if config.get(_name(config, key)) is None]
    if missing:
        names = [f"{key} ({_AS_GPT2[key]})" if key in _AS_GPT2 else key for key in missing]
        raise SettingError(
            f"the config has no {', '.join(names)}",
            limit="needs the sizes of a decoder under the names of Llama or GPT-2",
            remedy="give the sizes to ModelShape",
        )


def _check_dense(config: Mapping[str, Any]) -> None:
    other = [name for name in _NOT_DENSE if config.get(name)]
    layers = config.get("layer_types") or []
    if not isinstance(layers, list) or not all(kind in _ATTENTION for kind in layers):
        other.append("layer_types")
    if other:
        raise SettingError(
            f"the config has {other[0]}={brief(config[other[0]])}",
            limit="only dense transformers are modelled",
            remedy="measure latencies, or fit AffineTime to timings",
        )


def _name(config: Mapping[str, Any], key: str) -> str:
    """The configuration's own name of a size."""
    other = _AS_GPT2.get(key, key)
    return other if key not in config and other in config else key


def size_in(config: Mapping[str, Any], key: str) -> int:
    """A size of the configuration: a whole number in range."""
    name = _name(config, key)
    value = config[name]
    if type(value) is not int:
        raise SettingError(
            f"{name} is {brief(value)}", limit="needs one whole number", remedy="check the config, or measure latencies"
        )
    if not 1 <= value <= LARGEST:
        raise SettingError(f"{name} is {brief(value)}", limit=f"must be in 1..{LARGEST:g}", remedy="check the config")
    return value


def _kv_heads(config: Mapping[str, Any], heads: int) -> int:
    """Heads of keys and values; by default as many as attention heads."""
    return size_in(config, "num_key_value_heads") if config.get("num_key_value_heads") else heads


def _head_dim(config: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    """The width of a head where heads share the hidden size evenly."""
    hidden, heads = sizes["hidden"], sizes["heads"]
    if hidden % heads:
        names = [_name(config, key) for key in ("hidden_size", "num_attention_heads")]
        raise SettingError(
            f"{names[0]} is {hidden} with {names[1]} {heads} and no head_dim",
            limit="the hidden size must be a multiple of the heads",
            remedy="check the config, or give head_dim",
        )
    return hidden // heads
