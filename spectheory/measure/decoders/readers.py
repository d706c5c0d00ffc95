"""Readers: a model that reads the texts of a batch and the trees drafted after them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure.causality import cache_of_causal
from spectheory.measure.decoders.drafted import DraftTree, Floats
from spectheory.measure.decoders.pmfs import PmfRows
from spectheory.measure.devices import wait_for
from spectheory.measure.pair import Model
from spectheory.measure.reading import enough_memory, takes

Requests: TypeAlias = Mapping[int, tuple[DraftTree, list[int]]]
"""By text: the tree drafted after it, and the nodes after which a pmf is needed, parents first, each node once."""

_MASKED = (None, "eager", "sdpa", "flex_attention")
"""Attention that takes a custom mask; flash attention takes only the causal one."""


class Rows(Protocol):
    """Pmfs ``[V]`` in a given order."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, row: int, /) -> Floats:
        """One of them."""


class Reader(Protocol):
    """A model in the middle of the texts of a batch, lists that grow outside; `seconds` is the time in passes since set
    to 0.
    """

    seconds: float

    def prefill(self, chunk: int) -> None:
        """Read all texts except their last tokens, `chunk` tokens at a time."""

    def read(self, requests: Requests) -> Mapping[int, Rows]:
        """The pmfs after the requested nodes, by text and in the order of the nodes: one forward pass."""

    def settle(self, accepted: Mapping[int, list[int]]) -> None:
        """End a call: keep the accepted nodes of each text, from the root down, and discard the trees."""

    def drop(self, ended: Sequence[int]) -> None:
        """Forget texts that ended."""


class Listener(Protocol):
    """Takes the hidden states of a reader's passes: a draft head's reader those of the target."""

    def taken(self) -> Tensor:
        """Hidden states ``[batch, m, width]`` of the last pass."""

    def receive(self, row: int, first: int, states: Tensor, nodes: Sequence[int]) -> None:
        """Take states ``[m, width]`` after tokens of a text from place `first` on, then after nodes of its tree."""


@dataclass(eq=False)
class ModelReader:
    """What every reader has: a model, the texts of a batch, how logits become pmfs, and who takes hidden states."""

    model: Model
    vocabulary: int
    sampling: Sampling
    texts: Sequence[list[int]]
    listener: Listener | None = None
    seconds: float = field(default=0.0, init=False)

    def pmfs(self, logits: Tensor) -> PmfRows:
        """Pmfs of logits ``[rows, V]``."""
        return PmfRows(logits, self.sampling, self.model.name)


def deliver(listener: Listener | None, pieces: Iterable[tuple[int, int, slice, list[int]]]) -> float:
    """Give a listener the hidden states of a pass; return the seconds that this took.

    For each row of the batch: the text, the place of its first token read, which of the states are its own, and nodes.
    """
    if listener is None:
        return 0.0
    started = time.perf_counter()
    states = listener.taken()
    for i, (row, first, own, nodes) in enumerate(pieces):
        listener.receive(row, first, states[i, own], nodes)
    return time.perf_counter() - started


def forward(model: Model, ids: Tensor, keep: int, **options: Any) -> tuple[Any, float]:
    """One pass on ``[batch, m]`` tokens, with at least the last `keep` rows of logits; and its seconds.

    Earlier work of the device is waited for first, and not counted.
    """
    kept = {"logits_to_keep": keep} if takes(model, "logits_to_keep") else {}
    batch, tokens = ids.shape
    smaller = fewer(batch, f"chunk={max(tokens // 2, 1)} or fewer drafts")
    with enough_memory(repr(model.name), f"{batch} texts, {tokens} tokens each at once", smaller):
        wait_for(model.device)
        started = time.perf_counter()
        with torch.inference_mode():
            output = model.network(input_ids=ids.to(model.device), **kept, **options)
        wait_for(model.device)
    return output, time.perf_counter() - started


def fewer(batch: int, smaller: str) -> str:
    """What takes less memory: half the batch, or `smaller` for a single text."""
    return f"batch={batch // 2}" if batch > 1 else smaller


def why_uncached(model: Model) -> str | None:
    """Why this package cannot use a model's cache, or None if it can; one pass on two short texts."""
    layers = getattr(cache_of_causal(model), "layers", None)
    if not layers:
        return "has no cache"
    if not all(hasattr(layer, "keys") and not getattr(layer, "is_sliding", False) for layer in layers):
        return "has a cache that cannot be cut back to any place"
    if not (takes(model, "position_ids") and takes(model, "attention_mask")):
        return "takes no positions and masks"
    attention = getattr(getattr(model.network, "config", None), "_attn_implementation", None)
    if attention not in _MASKED:
        return f"has attention without masks for trees ({attention})"
    return None
