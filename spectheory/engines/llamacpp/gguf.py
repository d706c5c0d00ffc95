"""A Llama model with a byte-level BPE tokenizer as GGUF, in single precision."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file

from spectheory.errors import ModelError, load_extra
from spectheory.files import read_text, write_whole

Floats = NDArray[np.float32]

ARCHITECTURE = "LlamaForCausalLM"


def export_gguf(folder: Path, file: Path) -> Path:
    """Write the model of `folder` as `file`, and return it; a file that is there already stays.

    Weights are in float32, whatever they were saved in: with float16 weights llama.cpp rounds activations too. Raises
    ``ModelError`` for another architecture or activation, scaled rotary positions, weights that are no safetensors, or
    a tokenizer that is not byte-level BPE.
    """
    if file.exists():
        return file
    config = json.loads(read_text(folder / "config.json"))
    _check(folder, config)
    tokenizer = json.loads(read_text(folder / "tokenizer.json"))
    write_whole(file, lambda partial: _write(partial, folder, config, tokenizer))
    return file


def _tensors(folder: Path, config: dict[str, Any]) -> Iterator[tuple[str, Floats]]:
    """Names and weights as llama.cpp reads them: rows of query and key are in pairs of adjacent rotary halves."""
    gguf = load_extra("gguf", extra="engines")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    heads = config["num_attention_heads"]
    rotary = {"q_proj": heads, "k_proj": config.get("num_key_value_heads") or heads}
    for path in sorted(folder.glob("*.safetensors")):
        for name, weights in load_file(path).items():
            if name == "lm_head.weight" and config.get("tie_word_embeddings"):
                continue
            theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
            if theirs is None:
                raise _refused(folder, f"has the weights {name!r}", "GGUF has no name for them")
            values: Floats = weights.float().numpy()
            turned = next((count for part, count in rotary.items() if part in name), None)
            yield theirs, values if turned is None else _adjacent(values, turned)


def _adjacent(weights: Floats, heads: int) -> Floats:
    """Rows i and i + d/2 of each head (transformers' rotary halves) put side by side, as llama.cpp rotates them."""
    rest = weights.shape[1:]
    halves = weights.reshape(heads, 2, weights.shape[0] // heads // 2, *rest)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(weights.shape))


def _check(folder: Path, config: dict[str, Any]) -> None:
    kinds = config.get("architectures") or ["no architecture"]
    rotary = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if kinds != [ARCHITECTURE]:
        raise _refused(folder, f"is a {kinds[0]}", f"this writer knows {ARCHITECTURE}")
    kind = rotary.get("rope_type") or rotary.get("type") or "default"  # older configurations say `type`
    if kind != "default":
        raise _refused(folder, f"has rotary positions of type {kind!r}", "this writer knows the default")
    if config.get("hidden_act", "silu") != "silu":
        raise _refused(folder, f"has the activation {config['hidden_act']!r}", "llama.cpp computes silu")
    if not (folder / "tokenizer.json").is_file() or not any(folder.glob("*.safetensors")):
        raise _refused(folder, "lacks tokenizer.json or *.safetensors", "this writer reads these")


def _write(file: Path, folder: Path, config: dict[str, Any], tokenizer: dict[str, Any]) -> None:
    gguf = load_extra("gguf", extra="engines")
    writer = gguf.GGUFWriter(file, "llama")
    _add_shapes(writer, gguf, config)
    _add_tokens(writer, gguf, config, tokenizer, folder)
    for name, values in _tensors(folder, config):
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shapes(writer: Any, gguf: Any, config: dict[str, Any]) -> None:
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // heads
    rotary = config.get("rope_parameters") or config
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(rotary.get("rope_theta", 10000.0))
    writer.add_vocab_size(config["vocab_size"])


def _add_tokens(writer: Any, gguf: Any, config: dict[str, Any], tokenizer: dict[str, Any], folder: Path) -> None:
    """Tokens and merges; ids beyond the tokenizer's are unused."""
    model = tokenizer["model"]
    if model.get("type") != "BPE" or '"ByteLevel"' not in json.dumps(tokenizer.get("pre_tokenizer")):
        raise _refused(folder, f"has a tokenizer of type {model.get('type')}", "this writer knows byte-level BPE")
    kinds = dict.fromkeys(model["vocab"], gguf.TokenType.NORMAL)
    ids = dict(model["vocab"])
    for each in tokenizer.get("added_tokens", ()):
        ids[each["content"]] = each["id"]
        kinds[each["content"]] = gguf.TokenType.CONTROL if each["special"] else gguf.TokenType.USER_DEFINED
    by_id = {number: token for token, number in ids.items()}
    tokens = [by_id.get(number, f"[PAD{number}]") for number in range(config["vocab_size"])]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.get(token, gguf.TokenType.UNUSED) for token in tokens])
    writer.add_token_merges([each if isinstance(each, str) else " ".join(each) for each in model["merges"]])
    ends = config.get("eos_token_id")
    for add, value in ((writer.add_eos_token_id, ends), (writer.add_bos_token_id, config.get("bos_token_id"))):
        first = value[0] if isinstance(value, list) else value
        if first is not None:
            add(first)
    writer.add_add_bos_token(False)


def _refused(folder: Path, what: str, limit: str) -> ModelError:
    return ModelError(
        f"{folder.name} {what}", limit=limit, remedy="convert it with llama.cpp's own script, or use another engine"
    )
