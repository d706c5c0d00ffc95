"""Attention of many small blocks, each to itself and to its share of one common context."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.models.qwen3.modeling_qwen3 import rotate_half

Turn = tuple[Tensor, Tensor]
"""Cosines and sines ``[..., d]`` of rotary positions."""
Context = tuple[Tensor, Tensor]
"""Keys and values ``[g, P, d]`` of one layer, for g groups of heads."""


def turned(x: Tensor, turn: Turn) -> Tensor:
    """Queries or keys ``[..., heads, d]`` at their rotary positions."""
    cos, sin = (part[..., None, :] for part in turn)
    return x * cos + rotate_half(x) * sin


def context_of(attention: Any, x: Tensor, turn: Turn) -> Context:
    """Keys and values of context states ``[m, width]``."""
    shape = (len(x), attention.k_proj.out_features // attention.head_dim, attention.head_dim)
    keys = turned(attention.k_norm(attention.k_proj(x).view(shape)), turn)
    return keys.transpose(0, 1), attention.v_proj(x).view(shape).transpose(0, 1)


def attend(
    attention: Any, x: Tensor, turn: Turn, context: Context, unseen: Tensor, unseen_inside: Tensor | None
) -> Tensor:
    """Outputs ``[s, B, width]`` of attention of s blocks to a context and to their own block.

    `attention` has the projections and norms of a Qwen3 layer. `unseen` ``[s, P]`` is true where a block does not see
    the context, `unseen_inside` ``[B, B]`` where a slot does not see another of its block. Scores take s B (P + B)
    numbers a head: blocks are not compared with each other.
    """
    s, size, _ = x.shape
    keys, values = context
    groups, seen, d = keys.shape
    q = turned(attention.q_norm(attention.q_proj(x).view(s, size, -1, d)), turn) * attention.scaling
    k = turned(attention.k_norm(attention.k_proj(x).view(s, size, groups, d)), turn)
    v = attention.v_proj(x).view(s, size, groups, d)
    q = q.view(s, size, groups, -1, d).permute(2, 0, 3, 1, 4).reshape(groups, s, -1, d)  # rows: heads of a group, slots
    far = (q.flatten(1, 2) @ keys.transpose(1, 2)).view(groups, s, -1, size, seen)
    near = (q @ k.permute(2, 0, 3, 1)).view(groups, s, -1, size, size)
    far = far.masked_fill(unseen[:, None, None], -torch.inf)
    near = near if unseen_inside is None else near.masked_fill(unseen_inside, -torch.inf)
    weights = torch.cat([far, near], dim=-1).softmax(dim=-1, dtype=torch.float32).to(x.dtype).flatten(2, 3)
    out = (weights[..., :seen].flatten(1, 2) @ values).view(groups, s, -1, d)
    out = out + weights[..., seen:] @ v.permute(2, 0, 1, 3)
    out = out.view(groups, s, -1, size, d).permute(1, 3, 0, 2, 4).reshape(s, size, -1)
    result: Tensor = attention.o_proj(out)
    return result
