"""One model reading texts piece by piece, with its cache if it has one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from spectheory.errors import DeviceMemoryError, out_of_memory
from spectheory.measure.pair import Model
from spectheory.measure.roomy import select


class Reading:
    """A model in the middle of a text, or of a batch of texts; its logits are cut to `vocabulary` ids.

    Texts of a batch are equally long, or have `padding` ``[batch]`` ids in front that belong to none of them. Padding
    needs a model for which :func:`~spectheory.measure.padding.why_alone` finds no reason against it.
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
        return output.logits[:, -keep:, : self.vocabulary]

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
    """Read a text ``[n]`` in chunks; yield the logits ``[m, V]`` after its last `keep` tokens, m <= chunk at a time."""
    before = ids[: len(ids) - keep]
    for piece in before.split(chunk) if len(before) else ():
        reading.read(piece[None])
    for piece in ids[len(ids) - keep :].split(chunk):
        yield reading.read(piece[None], keep=len(piece))[0]


def takes(model: Model, option: str) -> bool:
    """Whether the model's forward pass names this argument."""
    kind: Any = type(model.network)
    return option in _arguments(kind)


@lru_cache(maxsize=16)  # reading a signature takes as long as one layer
def _arguments(network: Any) -> frozenset[str]:
    return frozenset(inspect.signature(network.forward).parameters)
