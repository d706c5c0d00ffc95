"""Whether a model predicts each token from those before it, seen on two short texts."""

from __future__ import annotations

from typing import Any

import torch

from spectheory.errors import ModelError
from spectheory.measure.pair import Model
from spectheory.measure.reading import Reading

_SHARE, _SHARE_OF_SINGLE = 1e-2, 3e-4
"""Share of the spread of the logits by which a later token may move them: roundings of half precision are less than
the first, of single precision than the second. Models that were hardly trained look ahead by little."""


def cache_of_causal(model: Model) -> Any:
    """The cache that a causal model returns with two texts of four tokens, None if it returns none; one pass.

    Raises
    ------
    ModelError
        If the logits after a token depend on later tokens.
    """
    reading = Reading(model, model.outputs)
    first, second = reading.read(torch.tensor([[0, 1, 0, 0], [0, 1, 0, 1]]), keep=4)[:, :3].float()
    moved = float((first - second).abs().max())
    share = _SHARE_OF_SINGLE if model.network.dtype in (torch.float32, torch.float64) else _SHARE
    if moved > share * float(first.max() - first.min()):
        raise ModelError(
            f"{model.name!r} is not causal: a later token moved its logits by {moved:.3g}",
            limit="target and draft predict each token from those before it",
            remedy="use a causal language model",
        )
    return reading.cache
