"""EAGLE-3, a small transformer over a target's hidden states and the embeddings of the tokens that follow, and P-EAGLE,
its network with all depths drafted in one pass: mask tokens stand for the drafts not known yet.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import Cache

from spectheory.cost.head_config import LAYER_FIELDS
from spectheory.errors import ModelError
from spectheory.measure.heads.base import ParallelReading
from spectheory.measure.heads.checkpoint import (
    FAMILIES,
    AutoregressiveHead,
    CellsReading,
    Family,
    HeadConfig,
    check_depth,
    family_of,
    mask_of,
    mask_token_of,
)


class _FirstLayer(nn.Module):
    """A layer of transformers that attends by embeddings and states side by side, each normed by itself."""

    def __init__(self, family: Family, block: Any, *, norm_before_residual: bool) -> None:
        super().__init__()
        layer = family.layer(block, 0)
        self.self_attn, self.mlp = layer.self_attn, layer.mlp
        self.input_layernorm, self.post_attention_layernorm = layer.input_layernorm, layer.post_attention_layernorm
        self.hidden_norm = family.norm(block.hidden_size, eps=block.rms_norm_eps)
        self.norm_before_residual = norm_before_residual
        for name in ("q_proj", "k_proj", "v_proj"):
            narrow = getattr(self.self_attn, name)
            wide = nn.Linear(2 * block.hidden_size, narrow.out_features, bias=narrow.bias is not None)
            setattr(self.self_attn, name, wide)

    def forward(self, embedded: Tensor, states: Tensor, **rest: Any) -> Tensor:
        """Outputs ``[b, s, width]`` of embeddings and states ``[b, s, width]``."""
        normed = self.hidden_norm(states)
        both = torch.cat([self.input_layernorm(embedded), normed], dim=-1)
        attended, _ = self.self_attn(hidden_states=both, **rest)
        states = (normed if self.norm_before_residual else states) + attended
        return states + self.mlp(self.post_attention_layernorm(states))


class Eagle3(AutoregressiveHead):
    """An EAGLE-3 head (and its variants 3.1 with normed outputs and norms before the fusion)."""

    kind: ClassVar[str] = "eagle3"
    fields: ClassVar[dict[str, Any]] = {
        "norm_before_residual": False,
        "norm_before_fc": False,
        "fc_norm": False,
        "norm_output": False,
        "target_hidden_size": None,
        "embed_requires_grad": False,
    }
    layer_field: ClassVar[str | None] = LAYER_FIELDS["eagle3"]
    families: ClassVar[tuple[str, ...]] = tuple(FAMILIES)

    def __init__(self, config: HeadConfig, layers: tuple[int, ...], **of_target: Any) -> None:
        super().__init__(config, layers, **of_target)
        block, family, fields = config.block, family_of(config.block), config.fields
        if fields["norm_before_fc"] and fields["fc_norm"]:
            raise ModelError(
                f"the {self.kind} head has both norm_before_fc and fc_norm",
                limit="the hidden states are normed together or each by itself",
                remedy="save or download the head again",
            )
        read = len(layers) * config.target_width
        self.fc = nn.Linear(read, block.hidden_size, bias=False)
        first = _FirstLayer(family, block, norm_before_residual=fields["norm_before_residual"])
        self.blocks = nn.ModuleList([first, *(family.layer(block, i) for i in range(1, block.num_hidden_layers))])
        self.rotary = family.rotary(block)

        def norm(width: int) -> Any:
            return family.norm(width, eps=block.rms_norm_eps)

        self.norm = norm(block.hidden_size)
        self.input_norm = norm(read) if fields["norm_before_fc"] else None
        self.fc_norm = nn.ModuleList([norm(config.target_width) for _ in layers]) if fields["fc_norm"] else None

    def fuse(self, hidden: Tensor) -> Tensor:
        """States of the target's hidden states."""
        if self.input_norm is not None:
            hidden = self.input_norm(hidden)
        if self.fc_norm is not None:
            parts = hidden.chunk(len(self.fc_norm), dim=-1)
            hidden = torch.cat([norm(part) for norm, part in zip(self.fc_norm, parts, strict=True)], dim=-1)
        return self.fc(hidden)

    def step(self, states: Tensor, tokens: Tensor, positions: Tensor, seen: Tensor, keys: Cache) -> Tensor:
        """States of new cells."""
        rest = {
            "position_embeddings": self.rotary(states, positions),
            "attention_mask": mask_of(seen, states.dtype),
            "past_key_values": keys,
        }
        states = self.blocks[0](self.embed(tokens), states, **rest)
        for block in self.blocks[1:]:
            states = block(states, **rest)
        return self.norm(states) if self.config.fields["norm_output"] else states

    def logits(self, states: Tensor) -> Tensor:
        """Logits after cells with these states."""
        return self.target_logits(states if self.config.fields["norm_output"] else self.norm(states))


CELLS = 1024
"""Mask tokens of one pass: more are drafted in several passes, so that rollouts are hardly compared with each other."""


class PEagle(Eagle3):
    """A P-EAGLE head: the first draft comes from the pair, draft i from the (i - 1)-th mask token after it.

    A mask token has the embedding of `mask_token_id` and the hidden states `mask_hidden`. It sees the pairs up to its
    own and the mask tokens before it, so the logits of a depth do not depend on how many drafts a call takes.
    """

    kind: ClassVar[str] = "peagle"
    parallel: ClassVar[bool] = True
    fields: ClassVar[dict[str, Any]] = {**Eagle3.fields, "mask_token_id": None, "embed_requires_grad": True}
    first_position: ClassVar[int] = 0
    deepest: int

    def __init__(self, config: HeadConfig, layers: tuple[int, ...], **of_target: Any) -> None:
        super().__init__(config, layers, **of_target)
        self.deepest, self.mask_token = config.trained, mask_token_of(config)
        self.mask_hidden = nn.Parameter(torch.randn(1, 1, len(layers) * config.target_width))

    def reading(self) -> _PEagleReading:
        """Start reading a text."""
        return _PEagleReading(self)


class _PEagleReading(CellsReading, ParallelReading):
    """Cells are the pairs read and, during a pass, the mask tokens of its starts: start after start, by depth."""

    _head: PEagle

    @torch.no_grad()
    def block(self, pairs: Tensor, depth: int) -> Tensor:
        """Logits of drafts 1..depth; see :meth:`~spectheory.measure.heads.base.ParallelReading.block`."""
        check_depth(self._head, depth)
        pairs = pairs.to(self._device)
        drafts = self._head.logits(self._states[pairs])[:, None]
        if depth == 1:
            return drafts
        parts = pairs.split(max(1, CELLS // (depth - 1)))
        return torch.cat([drafts, torch.cat([self._masked(part, depth - 1) for part in parts])], dim=1)

    def _masked(self, pairs: Tensor, count: int) -> Tensor:
        """Logits ``[s, count, V]`` after each mask token of each start."""
        head, s = self._head, len(pairs)
        cells = torch.arange(s * count, device=self._device)
        start, after = cells // count, cells % count
        inside = (start == start[:, None]) & (after <= after[:, None])
        before = torch.arange(self.pairs, device=self._device) <= pairs[start][:, None]
        states = head.fuse(head.mask_hidden[0]).expand(len(cells), -1)
        tokens = torch.full_like(cells, head.mask_token)
        outputs = self._step(states, tokens, pairs[start] + 1 + after, torch.cat([before, inside], dim=1))
        self.forget()
        return head.logits(outputs).view(s, count, -1)
