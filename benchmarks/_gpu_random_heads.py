"""Draft heads with random weights for a large target: times do not depend on what the weights are."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import torch
from _gpu_random_pairs import PROMPT, random_pair
from _gpu_sizes import Sizes

from spectheory.distributions import Sampling
from spectheory.measure import Model, ModelPair, measure_latency, teacher_forced
from spectheory.measure.devices import wait_for
from spectheory.measure.heads.kinds import HEADS

DRAFTS = 4
"""Drafts per call."""
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
    config = made.configured(configuration(kind, target, drafts), kind)
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


def heads(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Seconds of a head's passes and of measuring it by start, beside those of the target and of its hidden states."""
    base, found = random_pair(device, dtype, sizes), {}
    for kind in ("eagle3", "dflash"):
        pair = with_random_head(base, kind, DRAFTS)
        table = measure_latency(
            pair, context=sizes.contexts[0], tokens=sizes.widths, repeats=sizes.repeats, warm_up=sizes.warm_up
        )
        found[kind] = {
            "parameters": int(pair.draft.network.num_parameters()),
            **{who: {m: one.as_dict() for m, one in getattr(table, who).items()} for who in ("target", "draft")},
            "hidden_states": table.provenance["hidden_states"],
            "measuring": {depth: _measuring(pair, depth, sizes.decoded) for depth in (1, DRAFTS)},
        }
    return {"heads": found}


def _measuring(pair: ModelPair, depth: int, tokens: int) -> float:
    """Seconds of measuring a text of so many tokens to a depth, the second time."""
    ids = torch.randint(pair.vocabulary, (PROMPT + tokens,), generator=torch.Generator().manual_seed(0))
    for _ in range(2):
        wait_for(pair.target.device)
        began = time.perf_counter()
        teacher_forced(pair, ids[:PROMPT], ids[PROMPT:], Sampling(), depth=depth, race=False)
        wait_for(pair.target.device)
    return time.perf_counter() - began
