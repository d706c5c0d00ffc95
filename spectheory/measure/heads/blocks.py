"""Transformers' layers as heads use them: the families, explicit masks, and a store of keys and values."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Family:
    """The classes of a family of layers in transformers."""

    layer: Any
    norm: Any
    rotary: Any


FAMILIES = {"llama": ("llama", "Llama", ""), "qwen3": ("qwen3", "Qwen3", "")}
"""Model types of plain transformers: module in transformers, and how the names of its classes begin."""
HYBRID = {
    "qwen3_next": ("qwen3_next", "Qwen3Next", ""),
    "qwen3_5_text": ("qwen3_5", "Qwen3_5", "Text"),
    "qwen3_5_moe_text": ("qwen3_5_moe", "Qwen3_5Moe", "Text"),
}
"""Model types with layers of full attention among others, and what stands before ``RotaryEmbedding`` there."""


def family_of(block: Any) -> Family:
    """The family of a configuration."""
    folder, begin, rotary = (FAMILIES | HYBRID)[block.model_type]
    module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    names = f"{begin}DecoderLayer", f"{begin}RMSNorm", f"{begin}{rotary}RotaryEmbedding"
    return Family(*(getattr(module, name) for name in names))


def mask_of(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """The additive mask ``[b, 1, s, c]`` of which cells ``[b, s, c]`` each query sees."""
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, -math.inf)[:, None]


class Keys:
    """Keys and values ``[b, heads, cells, width]`` of every layer, in the order in which they were read."""

    def __init__(self) -> None:
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Add cells of a layer and return all of them; transformers' layers call this."""
        if layer in self._layers:
            before = self._layers[layer]
            keys, values = torch.cat([before[0], keys], dim=2), torch.cat([before[1], values], dim=2)
        self._layers[layer] = keys, values
        return keys, values

    def cut(self, cells: int) -> None:
        """Keep the first cells only."""
        self._layers = {i: (keys[:, :, :cells], values[:, :, :cells]) for i, (keys, values) in self._layers.items()}
