"""EAGLE-1, whose network EAGLE-2 has too: a transformer layer that continues the target's last hidden state."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import Cache

from spectheory.measure.heads.checkpoint import FAMILIES, AutoregressiveHead, HeadConfig, family_of, mask_of


class Eagle(AutoregressiveHead):
    """An EAGLE-1 head: its states stand for the target's last hidden states after the final norm.

    A state is made from the embedding of a token and the state before, side by side, by `fc` and the layers, the first
    of which has no norm of its input. The output matrix, the target's, gives logits of a state without another norm.
    """

    kind: ClassVar[str] = "eagle"
    fields: ClassVar[dict[str, Any]] = {"fusion_bias": False}
    families: ClassVar[tuple[str, ...]] = tuple(FAMILIES)
    first_position: ClassVar[int] = 0

    def __init__(self, config: HeadConfig, layers: tuple[int, ...], **of_target: Any) -> None:
        super().__init__(config, layers, **of_target)
        block, family = config.block, family_of(config.block)
        self.fc = nn.Linear(2 * config.width, config.width, bias=config.fields["fusion_bias"])
        self.blocks = nn.ModuleList(family.layer(block, i) for i in range(block.num_hidden_layers))
        self.blocks[0].input_layernorm = nn.Identity()
        self.rotary = family.rotary(block)

    @staticmethod
    def default_layers(count: int) -> tuple[int, ...]:
        """The last hidden state."""
        return (count,)

    def fuse(self, hidden: Tensor) -> Tensor:
        """States of the target's last hidden states."""
        return self.final_norm(hidden)

    def step(self, states: Tensor, tokens: Tensor, positions: Tensor, seen: Tensor, keys: Cache) -> Tensor:
        """States of new cells."""
        rest = {
            "position_embeddings": self.rotary(states, positions),
            "attention_mask": mask_of(seen, states.dtype),
            "past_key_values": keys,
        }
        states = self.fc(torch.cat([self.embed(tokens), states], dim=-1))
        for block in self.blocks:
            states = block(states, **rest)
        return states

    def logits(self, states: Tensor) -> Tensor:
        """Logits after cells with these states."""
        return self.target_logits(states)
