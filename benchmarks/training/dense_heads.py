"""Draft heads as dense batched networks, for training: every start and depth of many windows in one pass.

A readable twin of :mod:`spectheory.measure.heads`, with the same weights under the same names, for heads with one
key/value head and without options. Embeddings and output matrix are the target's, frozen and not stored.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class HeadShape(NamedTuple):
    """Sizes of a head over a target of the same width: drafts per call, and the target's layers that it reads.

    A block has slots of the token `mask`; `rank` is that of DSpark's Markov bias.
    """

    drafts: int
    layers: int
    feed_forward: int
    reads: tuple[int, ...]
    width: int = 192
    heads: int = 3
    per_head: int = 64
    theta: float = 10_000.0
    eps: float = 1e-6
    mask: int | None = None
    rank: int | None = None


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
    """A head with the target's matrices: embeddings, output matrix and last norm."""

    def __init__(self, shape: HeadShape, target: Any) -> None:
        super().__init__()
        self.shape = shape
        self._target = (target.get_input_embeddings(), target.get_output_embeddings(), target.get_decoder().norm)

    def embed(self, ids: Tensor) -> Tensor:
        """The target's embeddings."""
        out: Tensor = self._target[0](ids)
        return out

    def outputs(self, normed: Tensor) -> Tensor:
        """The target's output matrix."""
        out: Tensor = self._target[1](normed)
        return out


class DenseAutoregressive(DenseHead):
    """A head of one layer that reads its own drafts; pair 0 stands at position `first`."""

    first: int
    layers_named = "layers"

    @property
    def layer(self) -> Any:
        """The layer."""
        return getattr(self, self.layers_named)[0]

    @abstractmethod
    def fuse(self, hidden: Tensor) -> Tensor:
        """States ``[batch, m, width]`` of the target's hidden states."""

    @abstractmethod
    def enter(self, states: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """The residual, and what the attention reads."""

    @abstractmethod
    def leave(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """The state that the next draft reads, and what the output matrix reads."""

    def forward(self, hidden: Tensor, following: Tensor) -> list[Tensor]:
        """Logits ``[batch, m, V]`` of drafts 1, 2, ... after each of m pairs, the drafts before being the text's.

        `hidden` ``[batch, m, layers * width]`` are the target's after tokens 0..m - 1, `following`
        ``[batch, m + drafts - 1]`` the ids of tokens 1, 2, ....
        """
        x, count = self.fuse(hidden), hidden.shape[1]
        pairs = torch.arange(count)[None]
        future = pairs[0, None, :] > pairs[0, :, None]
        cells, logits = list[tuple[Tensor, Tensor]](), list[Tensor]()
        for i in range(self.shape.drafts):
            residual, reads = self.enter(x, self.embed(following[:, i : i + count]))
            positions = pairs + self.first + i
            cells.append(self.layer.self_attn.keys_values(reads, positions))
            q = self.layer.self_attn.queries(reads, positions)
            x, normed = self.leave(self.layer.after_attention(residual, _along(q, cells, future)))
            logits.append(self.outputs(normed))
        return logits


class DenseEagle3(DenseAutoregressive):
    """EAGLE-3 with one layer, the residual after its norm."""

    first = 1

    def __init__(self, shape: HeadShape, target: Any) -> None:
        super().__init__(shape, target)
        self.fc = nn.Linear(len(shape.reads) * shape.width, shape.width, bias=False)
        self.layers = nn.ModuleList([Layer(shape, paired=True)])
        self.norm = nn.RMSNorm(shape.width, eps=shape.eps)

    def fuse(self, hidden: Tensor) -> Tensor:
        """One projection of all layers read."""
        out: Tensor = self.fc(hidden)
        return out

    def enter(self, states: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """Normed states; embeddings beside them."""
        residual = self.layer.hidden_norm(states)
        return residual, torch.cat((self.layer.input_layernorm(embedded), residual), dim=-1)

    def leave(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """The norm is behind the state."""
        return output, self.norm(output)


class _MtpModule(Layer):
    """A layer between the projection of MTP and its last norm."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__(shape, paired=False)
        for name in ("hidden_layernorm", "token_layernorm", "final_layernorm"):
            setattr(self, name, nn.RMSNorm(shape.width, eps=shape.eps))
        self.input_proj = nn.Linear(2 * shape.width, shape.width, bias=False)


class DenseMtp(DenseAutoregressive):
    """MTP of one module, applied again to its own state after the last norm."""

    first = 0
    layers_named = "mtp_layers"

    def __init__(self, shape: HeadShape, target: Any) -> None:
        super().__init__(shape, target)
        self.mtp_layers = nn.ModuleList([_MtpModule(shape)])

    def fuse(self, hidden: Tensor) -> Tensor:
        """The target's last norm."""
        out: Tensor = self._target[2](hidden)
        return out

    def enter(self, states: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """The projection, and its norm."""
        both = torch.cat((self.layer.token_layernorm(embedded), self.layer.hidden_layernorm(states)), dim=-1)
        residual = self.layer.input_proj(both)
        return residual, self.layer.input_layernorm(residual)

    def leave(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """The state is normed."""
        normed = self.layer.final_layernorm(output)
        return normed, normed


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
    """DFlash: a block of an anchor, the last token of the text, and mask tokens, which see each other.

    Slot `drafting` is the first that drafts.
    """

    drafting = 1

    def __init__(self, shape: HeadShape, target: Any) -> None:
        super().__init__(shape, target)
        self.fc = nn.Linear(len(shape.reads) * shape.width, shape.width, bias=False)
        self.layers = nn.ModuleList([Layer(shape, paired=False) for _ in range(shape.layers)])
        self.norm = nn.RMSNorm(shape.width, eps=shape.eps)
        self.hidden_norm = nn.RMSNorm(shape.width, eps=shape.eps)

    def forward(self, hidden: Tensor, tokens: Tensor, anchors: Tensor) -> list[Tensor]:
        """Logits ``[batch, a, V]`` of drafts 1, 2, ... after each of the anchors ``[batch, a]``, all in one pass.

        `hidden` ``[batch, m, layers * width]`` are the target's after tokens 0..m - 1; a block sees those before its
        anchor. `tokens` ``[batch, m]`` are the ids of the text.
        """
        return list(self.outputs(self.slots(hidden, tokens, anchors)).unbind(2))

    def slots(self, hidden: Tensor, tokens: Tensor, anchors: Tensor) -> Tensor:
        """Normed outputs ``[batch, a, drafts, width]`` of the slots that draft."""
        context, slots = self.hidden_norm(self.fc(hidden)), self.drafting + self.shape.drafts
        pairs = torch.arange(hidden.shape[1])[None]
        positions = (anchors[..., None] + torch.arange(slots)).flatten(1)
        unseen = pairs[:, None] >= anchors.repeat_interleave(slots, dim=1)[..., None]
        ids = torch.full((*anchors.shape, slots), self.shape.mask or 0)
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
        out: Tensor = self.norm(x).unflatten(1, (-1, slots))[:, :, self.drafting :]
        return out


class DenseDSpark(DenseDFlash):
    """DSpark: the anchor's slot drafts too; a Markov bias (vanilla) by the token before, and a confidence.

    `confidence` ``[batch, a, drafts]`` are the logits of the drafts' acceptance in the last pass. Their gradients stay
    in the confidence head.
    """

    drafting = 0
    confidence: Tensor

    def __init__(self, shape: HeadShape, target: Any) -> None:
        super().__init__(shape, target)
        vocabulary, rank = self._target[0].weight.shape[0], shape.rank or 0
        markov = {"markov_w1": nn.Embedding(vocabulary, rank), "markov_w2": nn.Linear(rank, vocabulary, bias=False)}
        self.markov_head = nn.ModuleDict(markov)
        self.confidence_head = nn.ModuleDict({"proj": nn.Linear(shape.width + rank, 1)})

    def forward(self, hidden: Tensor, tokens: Tensor, anchors: Tensor) -> list[Tensor]:
        """Logits as DFlash gives them, the drafts before being the text's."""
        slots = self.slots(hidden, tokens, anchors)
        following = anchors[..., None] + torch.arange(self.shape.drafts)
        before = self.markov_head["markov_w1"](tokens.gather(1, following.flatten(1)).view_as(following))
        self.confidence = self.confidence_head["proj"](torch.cat((slots, before), dim=-1).detach())[..., 0]
        return list((self.outputs(slots) + self.markov_head["markov_w2"](before)).unbind(2))


NETWORKS: dict[str, type[DenseAutoregressive | DenseDFlash]] = {
    "eagle3": DenseEagle3,
    "dflash": DenseDFlash,
    "mtp": DenseMtp,
    "dspark": DenseDSpark,
}


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
