"""Draft heads as dense batched networks, for training: every start and depth of many windows in one pass.

A readable twin of :mod:`spectheory.measure.heads`, with the same weights under the same names, for heads with one
key/value head and without options. Embeddings and output matrix are the target's, frozen and not stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class HeadShape(NamedTuple):
    """Sizes of a head over a target of the same width: drafts per call, and the target's layers that it reads."""

    drafts: int
    layers: int
    feed_forward: int
    reads: tuple[int, ...]
    width: int = 192
    heads: int = 3
    per_head: int = 64
    theta: float = 10_000.0
    eps: float = 1e-6


def rotate(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Rotary embedding of ``[..., m, d]`` at positions ``[..., m]``."""
    half = x.shape[-1] // 2
    frequencies = theta ** (-torch.arange(half) / half)
    angles = positions[..., None] * frequencies
    cosine, sine = angles.cos(), angles.sin()
    left, right = x[..., :half], x[..., half:]
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine), dim=-1)


class Attention(nn.Module):
    """Queries, keys and values of one key/value head, with rotary positions; the scores are the caller's."""

    def __init__(self, shape: HeadShape, reads: int, normed: bool) -> None:
        super().__init__()
        self.shape = shape
        self.q_proj = nn.Linear(reads, shape.heads * shape.per_head, bias=False)
        self.k_proj = nn.Linear(reads, shape.per_head, bias=False)
        self.v_proj = nn.Linear(reads, shape.per_head, bias=False)
        self.o_proj = nn.Linear(shape.heads * shape.per_head, shape.width, bias=False)
        self.q_norm: nn.Module = nn.RMSNorm(shape.per_head, eps=shape.eps) if normed else nn.Identity()
        self.k_norm: nn.Module = nn.RMSNorm(shape.per_head, eps=shape.eps) if normed else nn.Identity()

    def queries(self, x: Tensor, positions: Tensor) -> Tensor:
        """Scaled queries ``[batch, heads, m, d]``."""
        shape = self.shape
        split = self.q_norm(self.q_proj(x).unflatten(-1, (shape.heads, shape.per_head))).transpose(1, 2)
        return rotate(split, positions[:, None], shape.theta) * shape.per_head**-0.5

    def keys_values(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values ``[batch, m, d]``."""
        return rotate(self.k_norm(self.k_proj(x)), positions, self.shape.theta), self.v_proj(x)

    def join(self, seen: Tensor) -> Tensor:
        """What the heads saw ``[batch, heads, m, d]``, as an output ``[batch, m, width]``."""
        output: Tensor = self.o_proj(seen.transpose(1, 2).flatten(2))
        return output


class FeedForward(nn.Module):
    """The gated feed-forward part of a Llama or Qwen3 layer."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """One output per input, ``[..., width]``."""
        out: Tensor = self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Layer(nn.Module):
    """The parts of one layer; `paired` for EAGLE-3's first, which reads embeddings beside hidden states."""

    def __init__(self, shape: HeadShape, *, paired: bool) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.width, eps=shape.eps)
        if paired:
            self.hidden_norm = nn.RMSNorm(shape.width, eps=shape.eps)
        self.self_attn = Attention(shape, shape.width * (1 + paired), normed=not paired)
        self.post_attention_layernorm = nn.RMSNorm(shape.width, eps=shape.eps)
        self.mlp = FeedForward(shape.width, shape.feed_forward)

    def after_attention(self, residual: Tensor, seen: Tensor) -> Tensor:
        """The layer's output."""
        x = residual + self.self_attn.join(seen)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class DenseHead(nn.Module):
    """What both kinds have: `fc` over the target's hidden states, layers, a norm, and the target's matrices."""

    def __init__(self, shape: HeadShape, target: Any, *, paired: bool) -> None:
        super().__init__()
        self.shape = shape
        self.fc = nn.Linear(len(shape.reads) * shape.width, shape.width, bias=False)
        self.layers = nn.ModuleList([Layer(shape, paired=paired) for _ in range(shape.layers)])
        self.norm = nn.RMSNorm(shape.width, eps=shape.eps)
        self._target = (target.get_input_embeddings(), target.get_output_embeddings())

    def embed(self, ids: Tensor) -> Tensor:
        """The target's embeddings."""
        out: Tensor = self._target[0](ids)
        return out

    def logits(self, x: Tensor) -> Tensor:
        """The target's output matrix on the normed output of the last layer."""
        out: Tensor = self._target[1](self.norm(x))
        return out


class DenseEagle3(DenseHead):
    """EAGLE-3 with one layer, the residual after its norm."""

    def __init__(self, shape: HeadShape, target: Any) -> None:
        super().__init__(shape, target, paired=True)

    def forward(self, hidden: Tensor, following: Tensor) -> list[Tensor]:
        """Logits ``[batch, m, V]`` of drafts 1, 2, ... after each of m pairs, the drafts before being the text's.

        `hidden` ``[batch, m, layers * width]`` are the target's after tokens 0..m - 1, `following`
        ``[batch, m + drafts - 1]`` the ids of tokens 1, 2, ....
        """
        x, count = self.fc(hidden), hidden.shape[1]
        pairs = torch.arange(count)[None]
        future = pairs[0, None, :] > pairs[0, :, None]
        cells, logits = list[tuple[Tensor, Tensor]](), list[Tensor]()
        layer: Any = self.layers[0]
        for i in range(self.shape.drafts):
            residual = layer.hidden_norm(x)
            both = torch.cat((layer.input_layernorm(self.embed(following[:, i : i + count])), residual), dim=-1)
            positions = pairs + 1 + i
            cells.append(layer.self_attn.keys_values(both, positions))
            q = layer.self_attn.queries(both, positions)
            x = layer.after_attention(residual, _along(q, cells, future))
            logits.append(self.logits(x))
        return logits


def _along(q: Tensor, cells: list[tuple[Tensor, Tensor]], future: Tensor) -> Tensor:
    """Attention of each pair's draft to the pairs up to it, which come first, and to its own drafts."""
    (keys, values), drafted = cells[0], cells[1:]
    scores = [(q @ keys[:, None].transpose(-1, -2)).masked_fill(future, -torch.inf)]
    scores += [(q * k[:, None]).sum(-1, keepdim=True) for k, _ in drafted]
    shares = torch.cat(scores, dim=-1).softmax(-1)
    seen = shares[..., : keys.shape[1]] @ values[:, None]
    for i, (_, v) in enumerate(drafted):
        seen = seen + shares[..., keys.shape[1] + i, None] * v[:, None]
    return seen


class DenseDFlash(DenseHead):
    """DFlash: a block of an anchor, the last token of the text, and mask tokens, which see each other."""

    def __init__(self, shape: HeadShape, target: Any, mask: int) -> None:
        super().__init__(shape, target, paired=False)
        self.hidden_norm = nn.RMSNorm(shape.width, eps=shape.eps)
        self.mask = mask

    def forward(self, hidden: Tensor, tokens: Tensor, anchors: Tensor) -> Tensor:
        """Logits ``[batch, a, drafts, V]`` of the drafts after each of the anchors ``[batch, a]``, all in one pass.

        `hidden` ``[batch, m, layers * width]`` are the target's after tokens 0..m - 1; a block sees those before its
        anchor. `tokens` ``[batch, m]`` are the ids of the text.
        """
        context, slots = self.hidden_norm(self.fc(hidden)), 1 + self.shape.drafts
        pairs = torch.arange(hidden.shape[1])[None]
        positions = (anchors[..., None] + torch.arange(slots)).flatten(1)
        unseen = pairs[:, None] >= anchors.repeat_interleave(slots, dim=1)[..., None]
        ids = torch.full((*anchors.shape, slots), self.mask)
        ids[..., 0] = tokens.gather(1, anchors)
        x = self.embed(ids.flatten(1))
        for layer in self.layers:
            attention: Any = layer.self_attn
            normed = layer.input_layernorm(x)  # type: ignore[operator]
            seen = _blockwise(
                attention.queries(normed, positions),
                attention.keys_values(context, pairs),
                attention.keys_values(normed, positions),
                unseen,
                slots,
            )
            x = layer.after_attention(x, seen)  # type: ignore[operator]
        return self.logits(x).unflatten(1, (-1, slots))[:, :, 1:]


def _blockwise(
    q: Tensor, context: tuple[Tensor, Tensor], block: tuple[Tensor, Tensor], unseen: Tensor, slots: int
) -> Tensor:
    """Attention of each slot to the context before its anchor, and to its own block."""
    before = (q @ context[0][:, None].transpose(-1, -2)).masked_fill(unseen[:, None], -torch.inf)
    blocks = [x[:, None].unflatten(2, (-1, slots)) for x in block]
    within = (q.unflatten(2, (-1, slots)) @ blocks[0].transpose(-1, -2)).flatten(2, 3)
    shares = torch.cat((before, within), dim=-1).softmax(-1)
    pairs = before.shape[-1]
    inside = shares[..., pairs:].unflatten(2, (-1, slots)) @ blocks[1]
    return shares[..., :pairs] @ context[1][:, None] + inside.flatten(2, 3)
