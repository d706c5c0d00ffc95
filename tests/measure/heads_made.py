"""Heads with random weights, as objects and as folders, for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from spectheory.measure.heads.checkpoint import CheckpointHead
from spectheory.measure.heads.load import HEADS

V, WIDTH, LAYERS = 64, 32, 2
"""Of the tiny target of conftest."""
DRAFTED = 24


def config_of(kind: str, block: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """config.json of a head for a target of the sizes above."""
    layers = {
        "model_type": "qwen3",
        "vocab_size": V,
        "hidden_size": WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 8,
        "intermediate_size": 48,
        "max_position_embeddings": 128,
        **(block or {}),
    }
    method = {"proposal_type": "greedy", "speculative_tokens": 4}
    named = HEADS[kind].layer_field
    return {
        "speculators_model_type": kind,
        "speculators_version": "0.9.0",
        **({"draft_vocab_size": V} if kind != "mtp" else {}),
        "transformer_layer_config": layers,
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [method],
            "verifier": {"name_or_path": "somewhere/target", "architectures": ["LlamaForCausalLM"]},
        },
        **({named: [2, 0, 1]} if named else {}),
        **({"norm_before_residual": False} if "norm_before_residual" in HEADS[kind].fields else {}),
        **({"mask_token_id": 3} if "mask_token_id" in HEADS[kind].fields else {}),
        **fields,
    }


def made_head(raw: dict[str, Any], seed: int = 0) -> CheckpointHead:
    """A head of that configuration, every weight random: norms that are all ones would hide a missing norm."""
    kind = HEADS[raw["speculators_model_type"]]
    config = kind.configured(raw, "made")
    head = kind(config, config.layers or kind.default_layers(LAYERS), final_norm=None)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in head.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            spread = 0.3 if parameter.dim() == 1 else 1.0 / parameter.shape[-1] ** 0.5
            parameter.copy_((1.0 if parameter.dim() == 1 else 0.0) + spread * noise)
    if config.drafted != V:
        head.draft_only(torch.randperm(V, generator=generator)[: config.drafted].sort().values)
    return head.eval()


def save_head(folder: Path, head: CheckpointHead, raw: dict[str, Any], *, without: tuple[str, ...] = ()) -> Path:
    """Save a head as speculators does, some of its tensors left out."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(raw))
    tensors = {name: value.contiguous() for name, value in head.weights().items() if name not in without}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def made_text(head: CheckpointHead, pairs: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states of some pairs, and the ids of the text, one more."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(pairs, len(head.layers) * WIDTH, generator=generator)
    return hidden, torch.randint(0, V, (pairs + 1,), generator=generator)
