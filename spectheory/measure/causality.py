"""Whether a model predicts each token only from the tokens before it, tested on two short texts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spectheory.errors import ModelError
from spectheory.measure.pair import Model
from spectheory.measure.reading import Reading

_SHARE, _SHARE_OF_SINGLE = 1e-2, 3e-4
"""Tolerated change of the logits relative to their spread: rounding in half precision stays below the first, in single
precision below the second. Both are small, since looking ahead changes the logits of a barely trained model little."""


def moved(model: Model, one: Tensor, other: Tensor, *, share_of_half: float = _SHARE) -> tuple[float, float]:
    """Largest difference of two blocks of logits, and the largest that is tolerated as rounding."""
    share = _SHARE_OF_SINGLE if model.network.dtype in (torch.float32, torch.float64) else share_of_half
    return float((one - other).abs().max()), share * float(one.max() - one.min())


def cache_of_causal(model: Model) -> Any:
    """The cache a causal model returns after a pass on two texts of four tokens, or None; refuses any other model."""
    reading = Reading(model, model.outputs)
    first, second = reading.read(torch.tensor([[0, 1, 0, 0], [0, 1, 0, 1]]), keep=4)[:, :3].float()
    by, tolerated = moved(model, first, second)
    if by > tolerated:
        raise ModelError(
            f"{model.name!r} is not causal: a later token moved its logits by {by:.3g}",
            limit="both models must predict each token from those before it",
            remedy="use a causal language model",
        )
    return reading.cache
