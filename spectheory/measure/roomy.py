"""Key-value caches with room for the tokens to come: a token is written beside the others, and moves none of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer


class RoomyLayer(DynamicLayer):
    """A cache layer whose keys and values are the filled part of longer tensors."""

    def __init__(self, layer: Any, rows: Tensor, room: int) -> None:
        """Hold these rows of a layer, with `room` free slots behind."""
        super().__init__()
        self.dtype, self.device, self.is_initialized = layer.dtype, layer.device, True
        self._slots = _moved(layer.keys, rows, room), _moved(layer.values, rows, room)
        self._fill(layer.get_seq_length())

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Add keys and values behind the others, and return all of them; without room for them all are moved."""
        before = self.get_seq_length()
        after = before + key_states.shape[-2]
        missing = after - self._slots[0].shape[-2]
        if missing > 0:
            rows = torch.arange(len(key_states))
            self._slots = _moved(self._slots[0], rows, missing), _moved(self._slots[1], rows, missing)
        for slots, states in zip(self._slots, (key_states, value_states), strict=True):
            slots[..., before:after, :] = states
        return self._fill(after)

    def _fill(self, count: int) -> tuple[Tensor, Tensor]:
        keys, values = (slots[..., :count, :] for slots in self._slots)
        self.keys, self.values = keys, values
        return keys, values


def _moved(kept: Tensor, rows: Tensor, room: int) -> Tensor:
    """These rows of keys or values ``[batch, heads, slots, width]``, with free slots behind."""
    _, *heads, slots, width = kept.shape
    moved = kept.new_empty(len(rows), *heads, slots + room, width)
    moved[..., :slots, :] = kept.index_select(0, rows.to(kept.device))
    return moved


def select(cache: Any, rows: Tensor, room: int) -> None:
    """Keep these rows ``[n]`` of a cache, some perhaps more than once, with room for so many tokens.

    Layers that do not hold every token, such as those of a sliding window, make no room.
    """
    layers = getattr(cache, "layers", None)
    if layers is None:
        cache.reorder_cache(rows)
        return
    for i, layer in enumerate(layers):
        if type(layer) in (DynamicLayer, RoomyLayer) and layer.is_initialized:
            layers[i] = RoomyLayer(layer, rows, room)
        else:
            layer.reorder_cache(rows)


def bytes_per_token(cache: Any) -> float:
    """Bytes that a cache holds for each token of a text; 0 for what has no slot for each token."""
    found = 0.0
    for layer in getattr(cache, "layers", None) or ():
        for held in (getattr(layer, "keys", None), getattr(layer, "values", None)):
            if held is not None and held.numel():
                found += held.numel() * held.element_size() / (held.shape[0] * held.shape[-2])
    return found
