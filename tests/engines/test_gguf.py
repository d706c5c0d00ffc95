"""GGUF export: the tensors read back, and a second implementation of the model that gives torch's logits from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGUFReader
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from spectheory.engines.llamacpp.running import _export_gguf, _gguf_of
from spectheory.errors import ModelError
from spectheory.pairs import resolve
from tests.made_up import each, one_line

Floats = NDArray[np.float64]

IDS = [277, 354, 362, 264, 268, 291, 305, 8, 404, 12, 307, 392, 3]
ROUNDING = 2e-4
"""Of logits up to 30 in single precision: 12 layers of sums of 192 to 512 products, each right to 6e-8."""


def tensors_of(file: Path) -> dict[str, Any]:
    """The tensors of a GGUF file by name, in the shapes of torch."""
    return {each.name: np.asarray(each.data) for each in GGUFReader(file).tensors}


def normed(x: Floats, weights: Floats, eps: float) -> Floats:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weights


def turned(x: Floats, base: float) -> Floats:
    """llama.cpp's rotary positions: adjacent pairs of `x` ``[heads, n, d]`` turn."""
    n, d = x.shape[1:]
    angle = np.arange(n)[:, None] * base ** (-np.arange(0, d, 2) / d)
    pairs = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape)


def logits(tensors: dict[str, Any], config: dict[str, Any], ids: list[int]) -> Floats:
    """A Llama model in numpy, from what a GGUF file holds."""
    w = {name.removesuffix(".weight"): values.astype(np.float64) for name, values in tensors.items()}
    heads, eps, base = config["num_attention_heads"], config["rms_norm_eps"], config["rope_parameters"]["rope_theta"]
    x = w["token_embd"][ids]
    causal = np.where(np.tri(len(ids), dtype=bool), 0.0, -np.inf)
    for layer in range(config["num_hidden_layers"]):
        at = f"blk.{layer}."
        h = normed(x, w[at + "attn_norm"], eps)
        q, k, v = ((h @ w[at + f"attn_{each}"].T).reshape(len(ids), heads, -1).swapaxes(0, 1) for each in "qkv")
        scores = turned(q, base) @ turned(k, base).swapaxes(1, 2) / np.sqrt(q.shape[-1]) + causal
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = shares / shares.sum(-1, keepdims=True) @ v
        x = x + mixed.swapaxes(0, 1).reshape(len(ids), -1) @ w[at + "attn_output"].T
        h = normed(x, w[at + "ffn_norm"], eps)
        gate = h @ w[at + "ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w[at + "ffn_up"].T)) @ w[at + "ffn_down"].T
    out: Floats = normed(x, w["output_norm"], eps) @ w.get("output", w["token_embd"]).T
    return out


def of_torch(folder: Path) -> tuple[dict[str, Any], Floats]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        return json.loads((folder / "config.json").read_text()), model(torch.tensor([IDS])).logits[0].double().numpy()


def test_the_file_gives_torchs_logits(tmp_path: Path) -> None:
    """On both sizes of the built-in models; a file whose heads are not rearranged would be seen."""
    for name in ("target", "distilled"):
        folder = Path(resolve(f"builtin:{name}"))
        config, expected = of_torch(folder)
        tensors = tensors_of(_export_gguf(folder, tmp_path / f"{name}.gguf"))
        assert np.abs(logits(tensors, config, IDS) - expected).max() < ROUNDING
        wrong = dict(tensors)
        query = wrong["blk.0.attn_q.weight"]
        parts = query.reshape(config["num_attention_heads"], -1, 2, query.shape[1])
        wrong["blk.0.attn_q.weight"] = parts.swapaxes(1, 2).reshape(query.shape)  # transformers' order
        assert np.abs(logits(wrong, config, IDS) - expected).max() > 100 * ROUNDING


def test_tokens_and_shapes_are_read_back(tmp_path: Path) -> None:
    folder = Path(resolve("builtin:distilled"))
    file = _export_gguf(folder, tmp_path / "draft.gguf")
    written = file.stat().st_mtime_ns
    assert _export_gguf(folder, file).stat().st_mtime_ns == written, "it is there already"
    fields = GGUFReader(file).fields
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = fields["tokenizer.ggml.tokens"].contents()
    assert tokens[0] == "<|endoftext|>"
    assert {token: tokens.index(token) for token in tokenizer["model"]["vocab"]} == tokenizer["model"]["vocab"]
    assert fields["tokenizer.ggml.merges"].contents() == [" ".join(merge) for merge in tokenizer["model"]["merges"]]
    config = json.loads((folder / "config.json").read_text())
    for name, ours in (
        ("llama.block_count", "num_hidden_layers"),
        ("llama.context_length", "max_position_embeddings"),
        ("llama.attention.head_count", "num_attention_heads"),
        ("llama.vocab_size", "vocab_size"),
        ("tokenizer.ggml.eos_token_id", "eos_token_id"),
    ):
        assert fields[name].contents() == config[ours], name


@each(
    "changes, fragment",
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "is a GPT2LMHeadModel: this writer knows LlamaForCausalLM"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rotary positions of type 'yarn'"),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear"}}, "rotary positions of type 'linear'"),
        ({"hidden_act": "gelu"}, "has the activation 'gelu': llama.cpp computes silu"),
        ({}, "lacks tokenizer.json or *.safetensors"),
    ],
)
def test_what_the_writer_does_not_know_is_refused(changes: dict[str, Any], fragment: str, tmp_path: Path) -> None:
    folder = Path(resolve("builtin:draft"))
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(ModelError) as caught:
        _export_gguf(tmp_path, tmp_path / "model.gguf")
    assert fragment in one_line(caught)


def test_another_kind_of_tokenizer_is_refused(save_model: Callable[..., Path], tmp_path: Path) -> None:
    folder = save_model(tmp_path / "words")
    with pytest.raises(ModelError) as caught:
        _export_gguf(folder, tmp_path / "model.gguf")
    assert "has a tokenizer of type WordLevel" in one_line(caught)
    assert not list(tmp_path.glob("*.gguf"))


def test_models_of_one_name_have_files_of_their_own(tmp_path: Path) -> None:
    """Folders as `large/final` and `small/final`, and one whose weights were replaced by older ones."""
    for name in ("draft", "distilled"):
        shutil.copytree(resolve(f"builtin:{name}"), tmp_path / name / "final")
    files = [_gguf_of(tmp_path / name / "final", tmp_path / "work") for name in ("draft", "distilled", "draft")]
    assert files[0] == files[2] != files[1]
    shutil.copytree(tmp_path / "distilled", tmp_path / "draft", dirs_exist_ok=True)
    assert _gguf_of(tmp_path / "draft" / "final", tmp_path / "work") == files[1]
