"""A model that reads texts piece by piece with its cache; whether it is causal, and whether it reads padded texts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer

from spectheory.errors import DeviceMemoryError, ModelError, out_of_memory
from spectheory.measure.model_files import moving_rope
from spectheory.measure.pair import Model


class _PreallocatedLayer(DynamicLayer):
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
        if type(layer) in (DynamicLayer, _PreallocatedLayer) and layer.is_initialized:
            layers[i] = _PreallocatedLayer(layer, rows, room)
        else:
            layer.reorder_cache(rows)


def _bytes_per_token(cache: Any) -> float:
    """Bytes that a cache holds for each token of a text; 0 for what has no slot for each token."""
    total = 0.0
    for layer in getattr(cache, "layers", None) or ():
        for part in (getattr(layer, "keys", None), getattr(layer, "values", None)):
            if part is not None and part.numel():
                total += part.numel() * part.element_size() / (part.shape[0] * part.shape[-2])
    return total


class Reading:
    """A model in the middle of a text, or of a batch of texts; its logits are cut to `vocabulary` ids.

    A draft with another tokenizer reads its own ids, and has logits over those of its target.

    Texts of a batch are equally long, or have `padding` ``[batch]`` ids in front that belong to none of them. Padding
    needs a model for which :func:`why_alone` finds no reason against it.
    """

    def __init__(self, model: Model, vocabulary: int, padding: Tensor | None = None) -> None:
        self.model, self.vocabulary = model, vocabulary
        self.cache: Any = None
        self._read: Tensor | None = None
        self._can_keep = takes(model, "logits_to_keep")
        self._slots = 0
        self._padding = None if padding is None or not padding.any() else padding.to(model.device)[:, None]

    def read(self, ids: Tensor, keep: int = 1) -> Tensor:
        """Read the next tokens ``[batch, m]``; return the logits ``[batch, keep, V]`` after the last `keep` of them.

        A model that returns no cache reads the whole text again.
        """
        ids = ids.to(self.model.device)
        if self._read is not None:
            self._read = ids = torch.cat([self._read, ids], dim=1)
        options: dict[str, Any] = {"logits_to_keep": keep} if self._can_keep else {}
        options |= self._seen(ids.shape[1])
        with self._enough_memory(*ids.shape), torch.inference_mode():
            output = self.model.network(
                input_ids=ids, past_key_values=self.cache, use_cache=self._read is None, **options
            )
        self.cache = getattr(output, "past_key_values", None) if self._read is None else None
        if self.cache is None and self._read is None:
            self._read = ids
        if self._read is None:
            self._slots += ids.shape[1]
        logits = output.logits[:, -keep:]
        return self.model.common.over_target(logits) if self.model.common else logits[..., : self.vocabulary]

    def _seen(self, tokens: int) -> dict[str, Tensor]:
        """Which slots hold tokens, and the places of the next tokens in their texts; nothing without padding."""
        if self._padding is None:
            return {}
        slots = torch.arange(self._slots + tokens, device=self._padding.device)
        seen = {"attention_mask": (slots >= self._padding).long()}
        if takes(self.model, "position_ids"):
            seen["position_ids"] = (slots[self._slots :] - self._padding).clamp_(min=0)
        return seen

    def select(self, rows: Tensor, room: int = 0) -> None:
        """Continue with these texts ``[n]`` of the batch, some perhaps more than once; `room` tokens each will follow.

        The cache is moved once to where it has that room, so that no later token moves it.
        """
        with self._enough_memory(len(rows), 1), torch.inference_mode():
            if self.cache is not None:
                select(self.cache, rows, room)
            elif self._read is not None:
                self._read = self._read[rows]
            if self._padding is not None:
                self._padding = self._padding[rows]

    @contextmanager
    def _enough_memory(self, texts: int, tokens: int) -> Iterator[None]:
        smaller = f"--chunk {tokens // 2}" if tokens > 1 else f"{max(texts // 2, 1)} texts per prompt, fewer tokens"
        at_once = f"{texts} texts, {tokens} tokens at once"
        with enough_memory(repr(self.model.name), at_once, f"{smaller} or a lower precision"):
            yield


@contextmanager
def enough_memory(who: str, what: str, smaller: str) -> Iterator[None]:
    """Turn running out of memory on `what` into an error that advises `smaller`."""
    try:
        yield
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise DeviceMemoryError(
            f"{who} ran out of memory on {what}",
            limit="needs room for weights, caches and logits",
            remedy=f"use {smaller}",
        ) from error


def read_last(reading: Reading, ids: Tensor, keep: int, chunk: int) -> Iterator[Tensor]:
    """Read a text ``[n]`` in chunks; yield the logits ``[m, V]`` after its last `keep` tokens, m <= chunk at a time.

    A draft with another tokenizer reads the text in its own tokens, and each of the last may be several.
    """
    ends = torch.arange(len(ids) - keep, len(ids))
    if reading.model.common:
        ids, ends = reading.model.common.of_text(ids.tolist(), keep)
    begin = int(ends[0])
    for piece in ids[:begin].split(chunk) if begin else ():
        reading.read(piece[None])
    for part in ends.split(chunk):
        piece = ids[begin : int(part[-1]) + 1]
        logits = reading.read(piece[None], keep=len(piece))[0]
        yield logits if len(piece) == len(part) else logits[part - begin]
        begin += len(piece)


def takes(model: Model, option: str) -> bool:
    """Whether the model's forward pass names this argument."""
    kind: Any = type(model.network)
    return option in _arguments(kind)


@lru_cache(maxsize=16)  # reading a signature takes as long as one layer
def _arguments(network: Any) -> frozenset[str]:
    return frozenset(inspect.signature(network.forward).parameters)


_SHARE, _SHARE_OF_SINGLE = 1e-2, 3e-4
"""Tolerated change of the logits relative to their spread: rounding in half precision stays below the first, in single
precision below the second. Both are small, since looking ahead changes the logits of a barely trained model little."""


def _logit_change(model: Model, one: Tensor, other: Tensor, *, share_of_half: float = _SHARE) -> tuple[float, float]:
    """Largest difference of two blocks of logits, and the largest that is tolerated as rounding."""
    share = _SHARE_OF_SINGLE if model.network.dtype in (torch.float32, torch.float64) else share_of_half
    return float((one - other).abs().max()), share * float(one.max() - one.min())


def cache_of_causal(model: Model) -> Any:
    """The cache a causal model returns after a pass on two texts of four tokens, or None; refuses any other model."""
    reading = Reading(replace(model, common=None), model.outputs)
    first, second = reading.read(torch.tensor([[0, 1, 0, 0], [0, 1, 0, 1]]), keep=4)[:, :3].float()
    by, tolerated = _logit_change(model, first, second)
    if by > tolerated:
        raise ModelError(
            f"{model.name!r} is not causal: a later token moved its logits by {by:.3g}",
            limit="both models must predict each token from those before it",
            remedy="use a causal language model",
        )
    return reading.cache


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


def _pad_in_front(texts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
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
    rope = moving_rope(model.network.config.get_text_config())
    if rope and longest > rope[1]:
        return f"turns the positions of all texts of a pass by the longest one beyond {rope[1]} tokens"
    if model.network not in _FOUND:
        _FOUND[model.network] = _reason(model)
    return _FOUND[model.network]


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
        by, tolerated = _logit_change(model, alone, rows, share_of_half=_SHARE_OF_HALF)
        if not by <= tolerated:
            return f"gives other logits where texts are padded (by {by:.2g}; {tolerated:.2g} would be rounding)"
    return None


def _logits(model: Model, texts: Sequence[Tensor], rows: Tensor) -> Tensor | None:
    """Logits ``[rows, 3, V]`` after the texts and after each of two more tokens; None if there is no cache."""
    ids, padding = _pad_in_front(texts)
    reading = Reading(model, model.outputs, padding)
    for piece in ids.split(_CHUNK, dim=1):
        logits = reading.read(piece)
    if reading.cache is None:
        return None
    reading.select(rows, 2)
    rows_after = [logits[rows.to(logits.device)]]
    for token in (5, 1):
        rows_after.append(reading.read(torch.full((len(rows), 1), token % model.outputs)))
    return torch.cat(rows_after, dim=1).float()
