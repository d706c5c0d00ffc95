"""Readable twins of the parallel heads: one start at a time, one head of attention at a time, in double precision."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spectheory.measure.heads.checkpoint import CheckpointHead

Weights = dict[str, Tensor]


def dflash_drafts(head: CheckpointHead, hidden: Tensor, tokens: Tensor, pair: int) -> Tensor:
    """Logits ``[deepest, V]`` of the block after a pair: anchor and masks, all layers of attention written out."""
    weights, fields, block = _weights(head), head.config.fields, head.config.block
    size, anchor = fields["block_size"], pair + 1
    ids = [int(tokens[pair]), *[fields["mask_token_id"]] * (size - 1)]
    slots = weights["embed_tokens.weight"][ids]
    context = _normed(hidden[: pair + 1].double() @ weights["fc.weight"].T, weights["hidden_norm.weight"], block)
    for i in range(block.num_hidden_layers):
        slides = getattr(block, "layer_types", None) and block.layer_types[i] == "sliding_attention"
        first = max(0, anchor - block.sliding_window) if slides else 0
        causal = slides and not fields["sliding_window_non_causal"]
        layer = _under(weights, f"layers.{i}.")
        x = _normed(slots, layer["input_layernorm.weight"], block)
        rows = [
            _attended(
                layer,
                block,
                x[j],
                anchor + j,
                torch.cat([context[first:], x[: j + 1] if causal else x]),
                [*range(first, anchor), *range(anchor, anchor + (j + 1 if causal else size))],
            )
            for j in range(size)
        ]
        slots = _fed_forward(layer, block, slots + torch.stack(rows))
    states = _normed(slots, weights["norm.weight"], block)
    return _logits(head, weights, states if fields["sample_from_anchor"] else states[1:])


def peagle_drafts(head: CheckpointHead, hidden: Tensor, tokens: Tensor, pair: int) -> Tensor:
    """Logits ``[trained, V]`` after a pair: a causal pass over the pairs and then mask tokens."""
    weights, fields, block = _weights(head), head.config.fields, head.config.block
    masks = head.config.trained - 1
    read = torch.cat([hidden[: pair + 1].double(), weights["mask_hidden"][0].expand(masks, -1)])
    ids = [*tokens[: pair + 1].tolist(), *[fields["mask_token_id"]] * masks]
    if fields["norm_before_fc"]:
        read = _normed(read, weights["input_norm.weight"], block)
    if fields["fc_norm"]:
        parts = read.chunk(len(head.layers), dim=-1)
        read = torch.cat([_normed(part, weights[f"fc_norm.{i}.weight"], block) for i, part in enumerate(parts)], dim=-1)
    states = read @ weights["fc.weight"].T
    embedded = weights["embed_tokens.weight"][ids]
    for i in range(block.num_hidden_layers):
        layer = _under(weights, f"layers.{i}.")
        x = _normed(embedded if i == 0 else states, layer["input_layernorm.weight"], block)
        if i == 0:
            normed = _normed(states, layer["hidden_norm.weight"], block)
            x, states = torch.cat([x, normed], dim=-1), normed if fields["norm_before_residual"] else states
        rows = [_attended(layer, block, x[j], j, x[: j + 1], list(range(j + 1))) for j in range(len(x))]
        states = _fed_forward(layer, block, states + torch.stack(rows))
    return _logits(head, weights, _normed(states[pair:], weights["norm.weight"], block))


def _weights(head: CheckpointHead) -> Weights:
    tensors = head.weights() | {f"{name}.weight": getattr(head, name).weight for name in ("embed_tokens", "lm_head")}
    return {name: tensor.detach().double() for name, tensor in tensors.items()}


def _under(weights: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}


def _normed(x: Tensor, weight: Tensor, block: Any) -> Tensor:
    return weight * x / (x.square().mean(dim=-1, keepdim=True) + block.rms_norm_eps).sqrt()


def _turned(x: Tensor, position: int, block: Any) -> Tensor:
    """Coordinates i and i + d/2 as a complex number, turned by position / theta^(2 i / d)."""
    half = len(x) // 2
    theta = block.rope_parameters["rope_theta"]
    angles = position * theta ** (-torch.arange(half, dtype=torch.float64) / half)
    z = torch.complex(x[:half], x[half:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([z.real, z.imag])


def _attended(layer: Weights, block: Any, query: Tensor, position: int, cells: Tensor, places: list[int]) -> Tensor:
    """What one query gathers from cells at their places, head by head."""
    d, heads, groups = block.head_dim, block.num_attention_heads, block.num_key_value_heads
    q = (layer["self_attn.q_proj.weight"] @ query).view(heads, d)
    k = (cells @ layer["self_attn.k_proj.weight"].T).view(-1, groups, d)
    v = (cells @ layer["self_attn.v_proj.weight"].T).view(-1, groups, d)
    if "self_attn.q_norm.weight" in layer:
        q, k = (_normed(x, layer[f"self_attn.{name}_norm.weight"], block) for x, name in ((q, "q"), (k, "k")))
    out = []
    for h in range(heads):
        g = h * groups // heads
        turned = _turned(q[h], position, block)
        scores = torch.stack([turned @ _turned(k[c, g], at, block) for c, at in enumerate(places)])
        out.append((scores / d**0.5).softmax(dim=0) @ v[:, g])
    return layer["self_attn.o_proj.weight"] @ torch.cat(out)


def _fed_forward(layer: Weights, block: Any, states: Tensor) -> Tensor:
    x = _normed(states, layer["post_attention_layernorm.weight"], block)
    gate, up = (x @ layer[f"mlp.{name}_proj.weight"].T for name in ("gate", "up"))
    return states + (torch.nn.functional.silu(gate) * up) @ layer["mlp.down_proj.weight"].T


def _logits(head: CheckpointHead, weights: Weights, states: Tensor) -> Tensor:
    """Drafted logits at the target's ids, -inf elsewhere."""
    drafted = states @ weights["lm_head.weight"].T
    if head.config.drafted == head.vocabulary:
        return drafted
    full = torch.full((len(drafted), head.vocabulary), -torch.inf, dtype=torch.float64)
    for i, offset in enumerate(head.weights()["d2t"].tolist()):
        full[:, i + offset] = drafted[:, i]
    return full
