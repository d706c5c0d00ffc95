"""DFlash: a block of mask tokens, drafted in one pass over keys and values made of the target's hidden states.

A block has `block_size` slots: its anchor, which is the last token of the text, and mask tokens. All slots see each
other and the hidden states before the anchor, each projected once per layer. Slot i drafts the token at its own
position, i after the anchor; with `sample_from_anchor` it drafts the token after its position. The block is drafted
whole, so that the logits of a depth do not depend on how many drafts a call takes. They depend on the number of slots:
for k below the trained number vLLM drafts a block of as many slots as k drafts need, and so does SGLang unless its
block size is set apart. The `block` of :func:`~spectheory.measure.heads.load.load_head` measures such blocks.
"""

from __future__ import annotations

from copy import copy
from reprlib import repr as brief
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer, Qwen3RMSNorm, Qwen3RotaryEmbedding, rotate_half

from spectheory.cost.head_config import LAYER_FIELDS
from spectheory.errors import ModelError
from spectheory.measure.heads.base import HeadReading, ParallelReading
from spectheory.measure.heads.checkpoint import (
    FAMILIES,
    MOST_DRAFTS,
    CheckpointHead,
    HeadConfig,
    check_depth,
    mask_token_of,
)

Turn = tuple[Tensor, Tensor]
"""Cosines and sines ``[..., d]`` of rotary positions."""
Context = tuple[Tensor, Tensor]
"""Keys and values ``[g, P, d]`` of one layer, for g groups of heads."""


def _turned(x: Tensor, turn: Turn) -> Tensor:
    """Queries or keys ``[..., heads, d]`` at their rotary positions."""
    cos, sin = (part[..., None, :] for part in turn)
    return x * cos + rotate_half(x) * sin


def _context_of(attention: Any, x: Tensor, turn: Turn) -> Context:
    """Keys and values of context states ``[m, width]``."""
    shape = (len(x), attention.k_proj.out_features // attention.head_dim, attention.head_dim)
    keys = _turned(attention.k_norm(attention.k_proj(x).view(shape)), turn)
    return keys.transpose(0, 1), attention.v_proj(x).view(shape).transpose(0, 1)


def _attend(
    attention: Any, x: Tensor, turn: Turn, context: Context, unseen: Tensor, unseen_inside: Tensor | None
) -> Tensor:
    """Outputs ``[s, B, width]`` of attention of s blocks to a context and to their own block.

    `attention` has the projections and norms of a Qwen3 layer. `unseen` ``[s, B or 1, P]`` is true where slots do not
    see the context, `unseen_inside` ``[B, B]`` where a slot does not see another of its block. Scores take s B (P + B)
    numbers a head: blocks are not compared with each other.
    """
    s, size, _ = x.shape
    keys, values = context
    groups, seen, d = keys.shape
    q = _turned(attention.q_norm(attention.q_proj(x).view(s, size, -1, d)), turn) * attention.scaling
    k = _turned(attention.k_norm(attention.k_proj(x).view(s, size, groups, d)), turn)
    v = attention.v_proj(x).view(s, size, groups, d)
    q = q.view(s, size, groups, -1, d).permute(2, 0, 3, 1, 4).reshape(groups, s, -1, d)  # rows: heads of a group, slots
    far = (q.flatten(1, 2) @ keys.transpose(1, 2)).view(groups, s, -1, size, seen)
    near = (q @ k.permute(2, 0, 3, 1)).view(groups, s, -1, size, size)
    far = far.masked_fill(unseen[:, None], -torch.inf)
    near = near if unseen_inside is None else near.masked_fill(unseen_inside, -torch.inf)
    weights = torch.cat([far, near], dim=-1).softmax(dim=-1, dtype=torch.float32).to(x.dtype).flatten(2, 3)
    out = (weights[..., :seen].flatten(1, 2) @ values).view(groups, s, -1, d)
    out = out + weights[..., seen:] @ v.permute(2, 0, 1, 3)
    out = out.view(groups, s, -1, size, d).permute(1, 3, 0, 2, 4).reshape(s, size, -1)
    result: Tensor = attention.o_proj(out)
    return result


SCORES = 1 << 25
"""Attention scores of one pass, 128 MB in single precision: more starts are drafted in several passes."""


class DFlash(CheckpointHead):
    """A DFlash head. Gradients flow through its methods.

    All layers are Qwen3's, whichever family the configuration names. A layer of sliding attention sees the hidden
    states of the `sliding_window` positions before the anchor; with `sliding_window_by_slot` (not in speculators) those
    of a window that each slot ends itself. Within its block it sees only the slots before, unless
    `sliding_window_non_causal` is set. `anchored` is the field that says whether the anchor's slot drafts.
    """

    kind: ClassVar[str] = "dflash"
    parallel: ClassVar[bool] = True
    fields: ClassVar[dict[str, Any]] = {
        "block_size": 8,
        "mask_token_id": None,
        "sample_from_anchor": False,
        "sliding_window_non_causal": False,
        "sliding_window_by_slot": False,
        "target_hidden_size": None,
    }
    layer_field: ClassVar[str | None] = LAYER_FIELDS["dflash"]
    families: ClassVar[tuple[str, ...]] = tuple(FAMILIES)
    windows: ClassVar[bool] = True
    anchored: ClassVar[str] = "sample_from_anchor"
    deepest: int
    block_size: int

    def __init__(self, config: HeadConfig, layers: tuple[int, ...], **of_target: Any) -> None:
        super().__init__(config, layers, **of_target)
        self.block_size, self.mask_token = config.fields["block_size"], mask_token_of(config)
        self.first_slot = 0 if config.fields[self.anchored] else 1
        self.deepest = self.block_size - self.first_slot
        self.trained = min(self.trained, self.deepest)
        if not 1 <= self.deepest <= MOST_DRAFTS:
            raise ModelError(
                f"the {self.kind} head has block_size = {brief(self.block_size)}",
                limit=f"a block has an anchor and 1 to {MOST_DRAFTS} drafts",
                remedy="save or download the head again",
            )
        block, width = copy(config.block), config.width
        if getattr(block, "layer_types", None) is None:  # its family names none
            block.layer_types = ["full_attention"] * block.num_hidden_layers
        self.slides = tuple(kind == "sliding_attention" for kind in block.layer_types)
        self.fc = nn.Linear(len(layers) * width, width, bias=False)
        self.hidden_norm = Qwen3RMSNorm(width, eps=block.rms_norm_eps)
        self.blocks = nn.ModuleList(Qwen3DecoderLayer(block, i) for i in range(block.num_hidden_layers))
        self.norm = Qwen3RMSNorm(width, eps=block.rms_norm_eps)
        self.rotary = Qwen3RotaryEmbedding(block)

    @staticmethod
    def default_layers(count: int) -> tuple[int, ...]:
        """None: training records the layers."""
        raise ModelError(
            "the dflash head names no layers of its target",
            limit=f"{DFlash.layer_field} must list some of 0 to {count}",
            remedy="save or download the head again",
        )

    def reading(self) -> HeadReading:
        """Start reading a text."""
        return _DFlashReading(self)

    def contexts(self, hidden: Tensor, positions: Tensor) -> list[Context]:
        """Keys and values of each layer for hidden states ``[m, layers * width]`` at positions ``[m]``."""
        states = self.hidden_norm(self.fc(hidden))
        turn = self._turn(states, positions)
        return [_context_of(block.self_attn, states, turn) for block in self.blocks]

    def slots(self, tokens: Tensor) -> Tensor:
        """Embeddings ``[s, B, width]`` of the blocks that anchor tokens ``[s]`` begin."""
        ids = tokens.new_full((len(tokens), self.block_size), self.mask_token)
        ids[:, 0] = tokens
        return self.embed(ids)

    def states(self, slots: Tensor, anchors: Tensor, contexts: list[Context]) -> Tensor:
        """Normed outputs ``[s, B, width]`` of blocks of slots, anchored at positions ``[s]``; contexts begin at 0.

        :meth:`target_logits` turns those of the slots from `first_slot` on into logits of the drafts.
        """
        offsets = torch.arange(slots.shape[1], device=slots.device)
        turn = self._turn(slots, anchors[:, None] + offsets)
        places = torch.arange(contexts[0][0].shape[1], device=slots.device)
        later = places >= anchors[:, None, None]
        after = None if self.config.fields["sliding_window_non_causal"] else offsets > offsets[:, None]
        by_slot = self.config.fields["sliding_window_by_slot"]
        ends = anchors[:, None, None] + (offsets[:, None] + 1 if by_slot else 0)  # where the windows of slots end
        layers: Any = zip(self.blocks, contexts, self.slides, strict=True)
        for block, context, slides in layers:
            unseen = later | (places < ends - self.config.block.sliding_window) if slides else later
            x = block.input_layernorm(slots)
            slots = slots + _attend(block.self_attn, x, turn, context, unseen, after if slides else None)
            slots = slots + block.mlp(block.post_attention_layernorm(slots))
        normed: Tensor = self.norm(slots)
        return normed

    def _turn(self, like: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.rotary(like, positions.reshape(1, -1))
        shape = *positions.shape, cos.shape[-1]
        return cos.view(shape), sin.view(shape)


class BlockReading(HeadReading):
    """Keys and values of each layer for the pairs' hidden states; a block's pass adds nothing to them."""

    def __init__(self, head: DFlash) -> None:
        self._head = head
        self._following = torch.empty(0, dtype=torch.long, device=head.embed_tokens.weight.device)
        self._contexts: list[Context] = []

    @torch.no_grad()
    def read(self, hidden: Tensor, following: Tensor) -> None:
        """Read the next pairs; see :meth:`~spectheory.measure.heads.base.HeadReading.read`."""
        places = torch.arange(self.pairs, self.pairs + len(hidden), device=self._following.device)
        new = self._head.contexts(hidden.to(self._head.embed_tokens.weight), places)
        both = zip(self._contexts, new, strict=False) if self.pairs else ()
        self._contexts = [
            (torch.cat([old[0], more[0]], dim=1), torch.cat([old[1], more[1]], dim=1)) for old, more in both
        ] or new
        self._following = torch.cat([self._following, following.to(self._following)])
        self.pairs += len(hidden)

    def _outputs(self, pairs: Tensor) -> Tensor:
        """Normed outputs ``[s, deepest, width]`` of the slots that draft, of the blocks after the pairs ``[s]``."""
        head = self._head
        scores = head.config.block.num_attention_heads * head.block_size * (self.pairs + head.block_size)
        parts = pairs.to(self._following.device).split(max(1, SCORES // scores))
        return torch.cat([self._block_after(part) for part in parts])[:, head.first_slot :]

    def _block_after(self, pairs: Tensor) -> Tensor:
        head, read = self._head, int(pairs.max()) + 1
        contexts = [(keys[:, :read], values[:, :read]) for keys, values in self._contexts]
        return head.states(head.slots(self._following[pairs]), pairs + 1, contexts)


class _DFlashReading(BlockReading, ParallelReading):
    """All drafts of a block come from one pass."""

    @torch.no_grad()
    def block(self, pairs: Tensor, depth: int) -> Tensor:
        """Logits of drafts 1..depth; see :meth:`~spectheory.measure.heads.base.ParallelReading.block`."""
        check_depth(self._head, depth)
        return self._head.target_logits(self._outputs(pairs)[:, :depth])
