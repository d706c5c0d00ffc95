"""What heads in the format of speculators have: embeddings, an output matrix, a vocabulary that may be pruned."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from spectheory.measure.heads.base import Head
from spectheory.measure.heads.config import HeadConfig, parse_config


class Matrix(nn.Module):
    """A matrix ``[rows, width]``: a parameter of the head, or the target's, which is none of its parameters."""

    weight: Tensor

    def __init__(self, rows: int, width: int, of_target: Tensor | None) -> None:
        super().__init__()
        if of_target is None:
            self.weight = nn.Parameter(torch.randn(rows, width) / math.sqrt(width))
        else:
            self.register_buffer("weight", of_target.detach(), persistent=False)


class CheckpointHead(Head):
    """A head that the format of speculators can store; its state dict has the format's names.

    `fields` are the fields of its configuration with their defaults, `layer_field` the one that names the target's
    layers, `families` the families of transformers' layers that it can have, `blocks_named` their name in checkpoints,
    `windows` whether it takes layers with a sliding window.
    `embeddings` and `outputs` are the target's matrices, ``[V, width]`` and ``[drafted, width]``, where the head has
    none of its own; `final_norm` is the target's norm of its last hidden state.
    """

    fields: ClassVar[Mapping[str, Any]]
    layer_field: ClassVar[str | None] = None
    families: ClassVar[tuple[str, ...]]
    blocks_named: ClassVar[str] = "layers"
    windows: ClassVar[bool] = False
    blocks: nn.ModuleList
    d2t: Tensor | None
    t2d: Tensor | None

    def __init__(
        self,
        config: HeadConfig,
        layers: tuple[int, ...],
        *,
        embeddings: Tensor | None = None,
        outputs: Tensor | None = None,
        final_norm: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.config, self.layers, self.trained, self.deepest = config, layers, config.trained, None
        self.vocabulary = config.vocabulary
        self._final_norm = (final_norm or nn.Identity(),)  # in a tuple it is no part of the head
        self.embed_tokens = Matrix(config.vocabulary, config.width, embeddings)
        self.lm_head = Matrix(config.drafted, config.width, outputs)
        pruned = config.drafted != config.vocabulary
        self.register_buffer("d2t", torch.zeros(config.drafted, dtype=torch.int64) if pruned else None)
        self.register_buffer("t2d", torch.zeros(config.vocabulary, dtype=torch.bool) if pruned else None)

    @classmethod
    def configured(cls, raw: Mapping[str, Any], name: str) -> HeadConfig:
        """The configuration that a head's config.json holds, checked."""
        return parse_config(raw, name, cls.fields, cls.layer_field, cls.families)

    def weights(self) -> dict[str, Tensor]:
        """The tensors of its checkpoint by their names there; those of the target are left out."""
        return {self._theirs(name): value for name, value in self.state_dict().items()}

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Take the tensors of a checkpoint, which must be complete, in the precision of the head."""
        own = self.state_dict()
        self.load_state_dict({name: weights[self._theirs(name)] for name in own})

    def _theirs(self, name: str) -> str:
        """A tensor's name in checkpoints; `layers` of a head are those of the target."""
        return f"{self.blocks_named}.{name.removeprefix('blocks.')}" if name.startswith("blocks.") else name

    @staticmethod
    def default_layers(count: int) -> tuple[int, ...]:
        """Hidden states read where the configuration names none, of a target of so many layers."""
        return (2, count // 2, count - 3)

    def get_input_embeddings(self) -> nn.Module:
        """The embeddings."""
        return self.embed_tokens

    def final_norm(self, hidden: Tensor) -> Tensor:
        """The target's last hidden states ``[..., width]`` after its final norm."""
        return self._final_norm[0](hidden).to(hidden.device)  # a spread target's norm may be elsewhere

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings ``[..., width]`` of token ids ``[...]``."""
        return embedding(tokens, self.embed_tokens.weight)

    def draft_only(self, ids: Tensor) -> None:
        """Set the ids ``[drafted]`` that a pruned vocabulary has, in ascending order."""
        assert self.d2t is not None
        assert self.t2d is not None
        self.d2t.copy_(ids - torch.arange(len(ids), device=ids.device))
        self.t2d.zero_()[ids] = True

    def target_logits(self, outputs: Tensor) -> Tensor:
        """Logits ``[..., V]`` of normed outputs ``[..., width]``; -inf for ids that the head cannot draft."""
        logits = linear(outputs, self.lm_head.weight)
        if self.d2t is None:
            return logits
        ids = self.d2t + torch.arange(len(self.d2t), device=self.d2t.device)
        full = logits.new_full((*logits.shape[:-1], self.vocabulary), -math.inf)
        return full.index_copy(-1, ids, logits)
