"""DFlash: a block of mask tokens, drafted in one pass over keys and values made of the target's hidden states.

A block has `block_size` slots: its anchor, which is the last token of the text, and mask tokens. All slots see each
other and the hidden states before the anchor, each projected once per layer. Slot i drafts the token at its own
position, i after the anchor; with `sample_from_anchor` it drafts the token after its position. The block is drafted
whole, as it was trained, so that the logits of a depth do not depend on how many drafts a call takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer, Qwen3RMSNorm, Qwen3RotaryEmbedding

from spectheory.errors import SettingError
from spectheory.measure.heads.base import Head, ParallelReading
from spectheory.measure.heads.block_attention import Context, attend, context_of

SCORES = 1 << 25
"""Attention scores of one pass, 128 MB in single precision: more starts are drafted in several passes."""


class DFlashNetwork(nn.Module):
    """The tensors of a speculators checkpoint under their names, and what is computed with them.

    All layers are Qwen3's, whichever family the configuration names. A layer of sliding attention sees the hidden
    states of the `sliding_window` positions before the anchor, and within a block only the slots before it, unless
    `sliding_window_non_causal` is set.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        inner = _layer_config(config["transformer_layer_config"])
        self.config, width = inner, inner.hidden_size
        read = len(config["aux_hidden_state_layer_ids"])
        self.fc = nn.Linear(read * width, width, bias=False)
        self.hidden_norm = Qwen3RMSNorm(width, eps=inner.rms_norm_eps)
        self.layers: Any = nn.ModuleList(Qwen3DecoderLayer(inner, i) for i in range(inner.num_hidden_layers))
        self.norm = Qwen3RMSNorm(width, eps=inner.rms_norm_eps)
        self.rotary_emb = Qwen3RotaryEmbedding(inner)
        self.slides = tuple(kind == "sliding_attention" for kind in inner.layer_types)
        self.causal = not config.get("sliding_window_non_causal", False)
        self.pruned = config["draft_vocab_size"] != inner.vocab_size
        if self.pruned:
            self.lm_head = nn.Linear(width, config["draft_vocab_size"], bias=False)
            self.d2t = nn.Buffer(torch.zeros(config["draft_vocab_size"], dtype=torch.long))
            self.t2d = nn.Buffer(torch.zeros(inner.vocab_size, dtype=torch.bool))

    def contexts(self, hidden: Tensor, positions: Tensor) -> list[Context]:
        """Keys and values of each layer for hidden states ``[m, layers * width]`` at positions ``[m]``."""
        states = self.hidden_norm(self.fc(hidden))
        turn = self._turn(states, positions)
        return [context_of(layer.self_attn, states, turn) for layer in self.layers]

    def forward(self, slots: Tensor, anchors: Tensor, contexts: list[Context]) -> Tensor:
        """States ``[s, B, width]`` after the blocks' slots, given their embeddings and the anchors' positions ``[s]``.

        The contexts begin at position 0.
        """
        offsets = torch.arange(slots.shape[1], device=slots.device)
        turn = self._turn(slots, anchors[:, None] + offsets)
        places = torch.arange(contexts[0][0].shape[1], device=slots.device)
        later = places >= anchors[:, None]
        after = offsets > offsets[:, None] if self.causal else None
        for layer, context, slides in zip(self.layers, contexts, self.slides, strict=True):
            unseen = later | (places < anchors[:, None] - self.config.sliding_window) if slides else later
            x = layer.input_layernorm(slots)
            slots = slots + attend(layer.self_attn, x, turn, context, unseen, after if slides else None)
            slots = slots + layer.mlp(layer.post_attention_layernorm(slots))
        states: Tensor = self.norm(slots)
        return states

    def _turn(self, like: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.rotary_emb(like, positions.reshape(1, -1))
        return cos.view(*positions.shape, -1), sin.view(*positions.shape, -1)


class DFlash(Head):
    """A DFlash head: the network of its checkpoint, between the target's embeddings and output matrix.

    `config` is the checkpoint's. With a pruned vocabulary the output matrix is the checkpoint's, and draft id i stands
    for id ``i + d2t[i]``.
    """

    kind = "dflash"
    parallel = True
    deepest: int

    def __init__(self, config: Mapping[str, Any], target: Any) -> None:
        super().__init__()
        self.network = DFlashNetwork(config)
        self.layers = tuple(config["aux_hidden_state_layer_ids"])
        self.block_size, self.mask_token = config["block_size"], config["mask_token_id"]
        self.first_slot = 0 if config.get("sample_from_anchor") else 1
        self.deepest = self.trained = self.block_size - self.first_slot
        self._shared = target.get_input_embeddings(), target.get_output_embeddings()
        self.vocabulary = self._shared[1].weight.shape[0]

    def get_input_embeddings(self) -> nn.Module:
        """The target's."""
        embeddings: nn.Module = self._shared[0]
        return embeddings

    def reading(self) -> DFlashReading:
        """Start reading a text."""
        return DFlashReading(self)

    def slots(self, tokens: Tensor) -> Tensor:
        """Embeddings ``[s, B, width]`` of the blocks that anchor tokens ``[s]`` begin."""
        ids = tokens.new_full((len(tokens), self.block_size), self.mask_token)
        ids[:, 0] = tokens
        embedded: Tensor = self._shared[0](ids).to(self.network.fc.weight.dtype)
        return embedded

    def logits(self, states: Tensor) -> Tensor:
        """Logits ``[..., V]`` of the network's states, -inf for ids that the head cannot draft."""
        if not self.network.pruned:
            return nn.functional.linear(states, self._shared[1].weight)
        drafted = self.network.lm_head(states)
        ids = torch.arange(drafted.shape[-1], device=drafted.device) + self.network.d2t
        logits = drafted.new_full((*drafted.shape[:-1], self.vocabulary), -torch.inf)
        logits[..., ids] = drafted
        return logits


class DFlashReading(ParallelReading):
    """Keys and values of each layer for the pairs' hidden states; a block's pass adds nothing to them."""

    def __init__(self, head: DFlash) -> None:
        self._head = head
        self._following = torch.empty(0, dtype=torch.long)
        self._contexts: list[Context] = []

    @torch.inference_mode()
    def read(self, hidden: Tensor, following: Tensor) -> None:
        """Read the next pairs; see :meth:`HeadReading.read`."""
        places = torch.arange(self.pairs, self.pairs + len(hidden), device=hidden.device)
        new = self._head.network.contexts(hidden.to(self._head.network.fc.weight.dtype), places)
        old = zip(self._contexts, new, strict=True)
        self._contexts = [_joined(*both) for both in old] if self.pairs else new
        self._following = torch.cat([self._following.to(following.device), following])
        self.pairs += len(hidden)

    @torch.inference_mode()
    def block(self, pairs: Tensor, depth: int) -> Tensor:
        """Logits ``[s, depth, V]`` of drafts 1..depth; see :meth:`ParallelReading.block`."""
        head = self._head
        if depth > head.deepest:
            raise SettingError(
                f"{depth} drafts in a call are asked for",
                limit=f"this {head.kind} head drafts {head.deepest} in its block",
                remedy=f"use at most {head.deepest}",
            )
        size = head.block_size
        per_start = head.network.config.num_attention_heads * size * (self.pairs + size)
        return torch.cat([self._drafts(part, depth) for part in pairs.split(max(1, SCORES // per_start))])

    def _drafts(self, pairs: Tensor, depth: int) -> Tensor:
        head, seen = self._head, int(pairs.max()) + 1
        contexts = [(keys[:, :seen], values[:, :seen]) for keys, values in self._contexts]
        states = head.network(head.slots(self._following[pairs]), pairs + 1, contexts)
        return head.logits(states[:, head.first_slot : head.first_slot + depth])


def _joined(old: Context, new: Context) -> Context:
    return torch.cat([old[0], new[0]], dim=1), torch.cat([old[1], new[1]], dim=1)


def _layer_config(fields: Mapping[str, Any]) -> Any:
    """The configuration of the layers; a family that names no layer types has full attention everywhere."""
    named = dict(fields)
    config = AutoConfig.for_model(named.pop("model_type", "qwen3"), **named)
    if getattr(config, "layer_types", None) is None:
        config.layer_types = ["full_attention"] * config.num_hidden_layers
    return config
