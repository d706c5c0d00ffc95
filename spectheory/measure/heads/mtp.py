"""MTP: one more transformer layer over the target's last hidden state and the embedding of the token that follows."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import Cache

from spectheory.errors import ModelError
from spectheory.measure.heads.checkpoint import HYBRID, AutoregressiveHead, Family, HeadConfig, family_of, mask_of


class _MtpLayer(nn.Module):
    """A layer of transformers between a projection of normed embeddings and states, and a norm."""

    def __init__(self, family: Family, block: Any) -> None:
        super().__init__()
        width, eps = block.hidden_size, block.rms_norm_eps
        kinds = getattr(block, "layer_types", None) or ["full_attention"]
        if "full_attention" not in kinds:
            raise ModelError(
                "the mtp head has no layer of full attention",
                limit="its layer is one",
                remedy="download the head again",
            )
        layer = family.layer(block, len(kinds) - 1 - kinds[::-1].index("full_attention"))  # the last one of its kind
        for name, part in layer.named_children():
            self.add_module(name, part)
        self._layer = (layer,)  # its parts are those above
        self.hidden_layernorm, self.token_layernorm = family.norm(width, eps=eps), family.norm(width, eps=eps)
        self.input_proj = nn.Linear(2 * width, width, bias=False)
        self.final_layernorm = family.norm(width, eps=eps)

    def forward(self, embedded: Tensor, states: Tensor, **rest: Any) -> Tensor:
        """Outputs ``[b, s, width]`` of embeddings and states ``[b, s, width]``."""
        both = torch.cat([self.token_layernorm(embedded), self.hidden_layernorm(states)], dim=-1)
        return self.final_layernorm(self._layer[0](self.input_proj(both), **rest))


class Mtp(AutoregressiveHead):
    """A multi-token-prediction head, for one draft per call.

    It reads the target's last hidden state *after* the final norm, as engines serve it. The trainer of speculators
    feeds the state before that norm; the two differ by the norm's weight, since the head norms its input again.
    """

    kind: ClassVar[str] = "mtp"
    fields: ClassVar[dict[str, Any]] = {"num_nextn_predict_layers": 1}
    families: ClassVar[tuple[str, ...]] = ("qwen3", *HYBRID)
    blocks_named: ClassVar[str] = "mtp_layers"
    first_position: ClassVar[int] = 0

    def __init__(self, config: HeadConfig, layers: tuple[int, ...], **of_target: Any) -> None:
        super().__init__(config, layers, **of_target)
        self.deepest = self.trained = 1
        if config.fields["num_nextn_predict_layers"] != 1:
            raise ModelError(
                f"the mtp head has num_nextn_predict_layers = {config.fields['num_nextn_predict_layers']}",
                limit="a checkpoint holds one layer",
                remedy="use a head of one layer",
            )
        family = family_of(config.block)
        self.blocks = nn.ModuleList([_MtpLayer(family, config.block)])
        self.rotary = family.rotary(config.block)

    @staticmethod
    def default_layers(count: int) -> tuple[int, ...]:
        """The last hidden state."""
        return (count,)

    def fuse(self, hidden: Tensor) -> Tensor:
        """States of the target's last hidden states."""
        return self.final_norm(hidden)

    def step(self, states: Tensor, tokens: Tensor, positions: Tensor, seen: Tensor, keys: Cache) -> Tensor:
        """States of new cells."""
        return self.blocks[0](
            self.embed(tokens),
            states,
            position_embeddings=self.rotary(states, positions),
            attention_mask=mask_of(seen, states.dtype),
            past_key_values=keys,
        )

    def logits(self, states: Tensor) -> Tensor:
        """Logits after cells with these states."""
        return self.target_logits(states)
