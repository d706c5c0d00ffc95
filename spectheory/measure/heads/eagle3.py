"""EAGLE-3: a small transformer over a target's hidden states and the embeddings of the tokens that follow."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from spectheory.cost.architecture import LAYER_FIELDS
from spectheory.errors import ModelError
from spectheory.measure.heads.blocks import FAMILIES, Family, Keys, family_of, mask_of
from spectheory.measure.heads.config import HeadConfig
from spectheory.measure.heads.pairs import AutoregressiveHead


class FirstLayer(nn.Module):
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
        first = FirstLayer(family, block, norm_before_residual=fields["norm_before_residual"])
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

    def step(self, states: Tensor, tokens: Tensor, positions: Tensor, seen: Tensor, keys: Keys) -> Tensor:
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
