"""Texts of different lengths in one batch: padded in front, if the model's logits then stay what they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from spectheory.measure.causality import moved
from spectheory.measure.pair import Model
from spectheory.measure.reading import Reading, takes

_LENGTHS = (9, 3, 6)
"""Tokens of the texts of the probe."""
_CHUNK, _ROWS = 4, (1, 0, 1, 2)
"""The probe reads so many tokens at once, and goes on with these texts. Of their first chunks one has no padding, one
nothing else, and one both: some recurrent layers are right with the first two alone."""
_SHARE_OF_HALF = 5e-2
"""Tolerated change of logits in half precision, relative to their spread. Passes of other shapes round differently: by
1% in a pair of 12 layers in bfloat16, and by more in deeper ones."""
_FOUND: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()
"""What was found of each network."""


def padded(texts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Texts as a block of ids ``[batch, longest]``, and the number of ids of padding ``[batch]`` in front of each."""
    longest = max(map(len, texts))
    ids = torch.stack([torch.nn.functional.pad(text.cpu(), (longest - len(text), 0)) for text in texts])
    return ids, torch.tensor([longest - len(text) for text in texts])


def why_alone(model: Model, longest: int) -> str | None:
    """Why texts of up to `longest` tokens cannot share this model's passes, or None if they can.

    Three short texts are read together, padded, and each alone, in chunks and token by token: the logits must agree up
    to rounding. That is done once for a network. Beyond some length rotary positions may turn by the longest text of a
    pass, which short texts do not show: the configuration says so.
    """
    if longest > (fixed := _fixed_up_to(model.network.config)):
        return f"turns the positions of all texts of a pass by the longest one beyond {fixed} tokens"
    if model.network not in _FOUND:
        _FOUND[model.network] = _reason(model)
    return _FOUND[model.network]


def _fixed_up_to(config: Any) -> float:
    """The longest text in tokens that leaves the rotary positions of others as they are."""
    config = config.get_text_config()
    rotary = getattr(config, "rope_parameters", None) or {}
    kinds = [
        rotary,
        *(each for each in rotary.values() if isinstance(each, dict)),
    ]  # one, or one for each kind of layer
    moving = [each for each in kinds if each.get("rope_type") == "longrope" or "dynamic" in each.get("rope_type", "")]
    return min(
        (each.get("original_max_position_embeddings") or config.max_position_embeddings for each in moving),
        default=math.inf,
    )


def _reason(model: Model) -> str | None:
    if not takes(model, "attention_mask"):
        return "takes no mask of padding"
    texts = [(7 * torch.arange(length) + i) % min(model.outputs, 50) for i, length in enumerate(_LENGTHS)]
    try:
        together = _logits(model, texts, torch.tensor(_ROWS))
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError) as error:
        return f"cannot read padded texts ({type(error).__name__})"
    if together is None:
        return "has no cache"
    for number, text in enumerate(texts):
        alone = _logits(model, [text], torch.tensor([0]))
        assert alone is not None
        rows = together[torch.tensor([row for row, each in enumerate(_ROWS) if each == number])]
        by, tolerated = moved(model, alone, rows, share_of_half=_SHARE_OF_HALF)
        if not by <= tolerated:
            return f"gives other logits where texts are padded (by {by:.2g}; {tolerated:.2g} would be rounding)"
    return None


def _logits(model: Model, texts: Sequence[Tensor], rows: Tensor) -> Tensor | None:
    """Logits ``[rows, 3, V]`` after the texts and after each of two more tokens; None if there is no cache."""
    ids, padding = padded(texts)
    reading = Reading(model, model.outputs, padding)
    for piece in ids.split(_CHUNK, dim=1):
        logits = reading.read(piece)
    if reading.cache is None:
        return None
    reading.select(rows, 2)
    found = [logits[rows.to(logits.device)]]
    for token in (5, 1):
        found.append(reading.read(torch.full((len(rows), 1), token % model.outputs)))
    return torch.cat(found, dim=1).float()
