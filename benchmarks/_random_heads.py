"""Draft heads with random weights for a target: times do not depend on what the weights are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from spectheory.measure import Model, ModelPair
from spectheory.measure.heads.config import parse_config
from spectheory.measure.heads.kinds import HEADS

OWN: dict[str, dict[str, Any]] = {"eagle3": {}, "peagle": {"mask_token_id": 1}, "dflash": {"mask_token_id": 1}}
"""Fields that only one kind has; a block of DFlash is one longer than its drafts."""


def configuration(kind: str, target: Any, drafts: int) -> dict[str, Any]:
    """The config.json of a head of one layer as wide as the target's, which drafts all of the target's tokens."""
    block = {**target.config.to_dict(), "num_hidden_layers": 1, "model_type": "llama" if kind == "eagle3" else "qwen3"}
    block["layer_types"] = None
    layers = target.config.num_hidden_layers
    return {
        "speculators_model_type": kind,
        "speculators_version": "0.9.0",
        "speculators_config": {"proposal_methods": [{"speculative_tokens": drafts}]},
        "transformer_layer_config": block,
        HEADS[kind].layer_field: [1, layers // 2, layers - 1],
        **OWN[kind],
        **({"block_size": drafts + 1} if kind == "dflash" else {}),
    }


def with_random_head(pair: ModelPair, kind: str, drafts: int) -> ModelPair:
    """The pair with a random head of that kind in place of its draft, in the target's precision and on its device."""
    target, made = pair.target.network, HEADS[kind]
    config = parse_config(configuration(kind, target, drafts), kind, made.fields, made.layer_field, made.families)
    assert config.layers is not None
    torch.manual_seed(1)
    with torch.device(pair.target.device):
        head = made(
            config,
            config.layers,
            embeddings=target.get_input_embeddings().weight,
            outputs=target.get_output_embeddings().weight,
            final_norm=target.get_decoder().norm,
        )
    for parameter in head.parameters():
        parameter.data = parameter.data.to(target.dtype)
    draft: Model = replace(pair.target, name=kind, network=head.eval().requires_grad_(False), fingerprint=kind)
    return replace(pair, draft=draft)
