"""A model that reads the texts of a batch and the trees drafted after them, and what it is asked for."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from spectheory.errors import ModelError
from spectheory.measure.decoders.drafted import DraftTree, Floats
from spectheory.measure.pair import Model

Requests: TypeAlias = Mapping[int, tuple[DraftTree, list[int]]]
"""By text: the tree drafted after it, and the nodes after which a pmf is wanted, parents first and no node twice."""

_CAUSAL = 1e-2
"""Share of the spread of the logits by which a later token may move them: roundings of half precision are less."""


class Rows(Protocol):
    """Pmfs ``[V]`` in a given order."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, row: int, /) -> Floats:
        """One of them."""


class Reader(Protocol):
    """A model in the middle of the texts of a batch; texts are lists that grow elsewhere, token by token.

    Attributes
    ----------
    seconds : float
        Time in forward passes since it was last set to 0.
    """

    seconds: float

    def prefill(self, chunk: int) -> None:
        """Read all texts but for their last tokens, `chunk` tokens at a time."""

    def read(self, requests: Requests) -> Mapping[int, Rows]:
        """The pmfs after the nodes asked for, by text and in the order of the nodes: one forward pass."""

    def settle(self, accepted: Mapping[int, list[int]]) -> None:
        """End a call: of the nodes of each text keep the accepted ones, from the root down; the trees are done with."""

    def drop(self, ended: Sequence[int]) -> None:
        """Forget texts that ended."""


def forward(model: Model, ids: Tensor, keep: int, **options: Any) -> tuple[Any, float]:
    """One pass on ``[batch, m]`` tokens, with at least the last `keep` rows of logits; and its seconds.

    Raises
    ------
    ModelError
        If the device runs out of memory.
    """
    kept = {"logits_to_keep": keep} if takes(model, "logits_to_keep") else {}
    started = time.perf_counter()
    try:
        with torch.inference_mode():
            output = model.network(input_ids=ids.to(model.device), **kept, **options)
        if model.device.type == "cuda":
            torch.cuda.synchronize(model.device)
    except torch.OutOfMemoryError as error:
        batch, tokens = ids.shape
        smaller = f"batch={batch // 2}" if batch > 1 else f"chunk={max(tokens // 2, 1)} or fewer drafts"
        raise ModelError(
            f"{model.name!r} ran out of memory on {batch} texts, {tokens} tokens each at once",
            limit="needs room for weights, caches and logits",
            remedy=f"use {smaller}",
        ) from error
    return output, time.perf_counter() - started


def takes(model: Model, option: str) -> bool:
    """Whether the model's forward pass names this argument."""
    kind: Any = type(model.network)
    return option in _arguments(kind)


@lru_cache(maxsize=16)  # a signature takes as long to read as a layer
def _arguments(network: Any) -> frozenset[str]:
    return frozenset(inspect.signature(network.forward).parameters)


def why_uncached(model: Model) -> str | None:
    """Why a model's cache cannot serve here, None if it can; one pass on two short texts.

    Raises
    ------
    ModelError
        If the logits after a token depend on later tokens.
    """
    texts = torch.tensor([[0, 1, 0, 0], [0, 1, 0, 1]])
    output, _ = forward(model, texts, keep=4, use_cache=True)
    first, second = output.logits.float()
    moved = float((first[:3] - second[:3]).abs().max())
    if moved > _CAUSAL * float(first[:3].max() - first[:3].min()):
        raise ModelError(
            f"{model.name!r} is not causal: a later token moved its logits by {moved:.3g}",
            limit="target and draft predict each token from those before it",
            remedy="use a causal language model",
        )
    layers = getattr(getattr(output, "past_key_values", None), "layers", None)
    if not layers:
        return "has no cache"
    if not all(hasattr(layer, "keys") and not getattr(layer, "is_sliding", False) for layer in layers):
        return "has a cache that cannot be cut back to any place"
    if not (takes(model, "position_ids") and takes(model, "attention_mask")):
        return "takes no positions and masks"
    return None
