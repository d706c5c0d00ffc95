"""One model reading a text piece by piece, with its cache if it has one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from spectheory.errors import ModelError
from spectheory.measure.pair import Model


class Reading:
    """A model in the middle of a text, or of a batch of equally long texts; its logits are cut to `vocabulary` ids."""

    def __init__(self, model: Model, vocabulary: int) -> None:
        self.model, self.vocabulary = model, vocabulary
        self.cache: Any = None
        self._read: Tensor | None = None
        self._can_keep = "logits_to_keep" in inspect.signature(model.network.forward).parameters

    def read(self, ids: Tensor, keep: int = 1) -> Tensor:
        """Read the next tokens ``[batch, m]``; return the logits ``[batch, keep, V]`` after the last `keep` of them.

        A model that returns no cache reads the whole text again.
        """
        ids = ids.to(self.model.device)
        if self._read is not None:
            self._read = ids = torch.cat([self._read, ids], dim=1)
        kept: dict[str, Any] = {"logits_to_keep": keep} if self._can_keep else {}
        texts, tokens = ids.shape
        smaller = f"--chunk {tokens // 2}" if tokens > 1 else f"{max(texts // 2, 1)} texts per prompt, fewer tokens"
        at_once = f"{texts} texts, {tokens} tokens at once"
        with enough_memory(repr(self.model.name), at_once, f"{smaller} or a lower precision"), torch.inference_mode():
            output = self.model.network(input_ids=ids, past_key_values=self.cache, use_cache=self._read is None, **kept)
        self.cache = getattr(output, "past_key_values", None) if self._read is None else None
        if self.cache is None and self._read is None:
            self._read = ids
        return output.logits[:, -keep:, : self.vocabulary]

    def repeat(self, count: int) -> None:
        """Continue with `count` copies of the text read so far."""
        if self.cache is not None:
            self.cache.batch_repeat_interleave(count)
        elif self._read is not None:
            self._read = self._read.repeat_interleave(count, dim=0)


@contextmanager
def enough_memory(who: str, what: str, smaller: str) -> Iterator[None]:
    """Turn running out of memory on `what` into an error that advises `smaller`."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise ModelError(
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
