"""Moving slots of a key-value cache, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Masks = NDArray[np.bool_]
_WASTE = 1.25
_FEW = 32
"""A cache may have this factor of the longest text's slots, plus this many, before its gaps are closed."""


def move_to(cache: Any, tails: Sequence[Sequence[int]], settled: int, slots: int) -> None:
    """Move the slots ``tails[b]`` of text b to the places from `settled` on, and crop the cache behind them."""
    longest = max(map(len, tails))
    with torch.inference_mode():
        if any(list(tail) != list(range(settled, settled + len(tail))) for tail in tails):
            for layer, chosen in zip(cache.layers, _on_devices(cache, tails, longest, settled), strict=True):
                for kept in (layer.keys, layer.values):
                    kept[:, :, settled : settled + longest] = _gathered(kept, chosen)
        if slots > settled + longest:
            cache.crop(settled + longest - slots)


def _on_devices(cache: Any, tails: Sequence[Sequence[int]], longest: int, padding: int) -> list[torch.Tensor]:
    """The slots ``[batch, longest]`` on the device of each layer."""
    chosen = torch.tensor([[*tail, *[padding] * (longest - len(tail))] for tail in tails])
    return [chosen.to(layer.keys.device) for layer in cache.layers]


def _gathered(kept: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The chosen slots of each text."""
    if len(chosen) == 1:  # twice as fast
        return kept.index_select(2, chosen[0])
    return torch.take_along_dim(kept, chosen[:, None, :, None], dim=2)


def compacted(cache: Any, used: Masks) -> Masks:
    """Close the gaps of a cache if too few slots are marked as used ``[batch, slots]``; return the new marks."""
    counts = used.sum(axis=1)
    longest = int(counts.max())
    # A single text without gaps needs no mask.
    if used.shape[1] <= (longest if len(used) == 1 else _WASTE * longest + _FEW):
        return used
    # A stable sort puts used slots first, in their order.
    order = torch.from_numpy(np.argsort(~used, axis=1, kind="stable")[:, :longest])
    with torch.inference_mode():
        for layer in cache.layers:
            at = order.to(layer.keys.device)
            layer.keys, layer.values = _gathered(layer.keys, at), _gathered(layer.values, at)
    return np.arange(longest) < counts[:, None]
