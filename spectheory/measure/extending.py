"""Drafts below many places of a text at once: a draft model, or a head, that extends a tree at each of them."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from spectheory.measure.decoders.readers import forward
from spectheory.measure.heads.base import ParallelReading
from spectheory.measure.pair import Model


class Extending(Protocol):
    """What reads a text and drafts below its places, as :class:`~spectheory.measure.heads.base.AutoregressiveReading`.

    A place is a token of the text for a draft model, a pair for a head.
    """

    def first(self, places: Tensor, /) -> Tensor:
        """Logits ``[s, V]`` of the first draft after each of the places ``[s]`` that were read."""

    def extend(self, parents: Tensor, tokens: Tensor, /) -> Tensor:
        """Logits ``[s, V]`` after drafted tokens ``[s]``, each below its parent ``[s]``: a node, or place t as -1 - t.

        Nodes are numbered on from 0 after :meth:`forget`.
        """

    def forget(self) -> None:
        """Forget all drafted nodes."""


class CachedText:
    """A draft model with its text in a cache, read once; all nodes of a pass are in one row, told apart by a mask."""

    def __init__(self, model: Model, vocabulary: int) -> None:
        self.model, self.vocabulary = model, vocabulary
        self.tokens = 0
        self._cache: Any = None
        self._logits = torch.empty(0)
        self._place, self._depth, self._above = self._no_nodes()

    def read(self, ids: Tensor) -> None:
        """Read the next tokens ``[m]``: the places that :meth:`first` knows."""
        self._logits = self._pass(ids, len(ids), {})
        self.tokens += len(ids)

    def first(self, places: Tensor) -> Tensor:
        """Logits after the tokens at these places, of those read last."""
        return self._logits[places - (self.tokens - len(self._logits))]

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Logits after new nodes; each sees the text up to its place, the nodes above it and itself."""
        old, new, device = len(self._place), len(tokens), parents.device
        of_node = parents >= 0
        node = parents[of_node]
        place, depth = -1 - parents, torch.ones_like(parents)
        place[of_node], depth[of_node] = self._place[node], self._depth[node] + 1
        above = torch.zeros(new, old, dtype=torch.bool, device=device)
        above[of_node] = self._above[node]
        above = torch.cat([above, torch.eye(new, dtype=torch.bool, device=device)], dim=1)
        text = torch.arange(self.tokens, device=device) <= place[:, None]
        logits = self._pass(tokens, new, self._seen(torch.cat([text, above], dim=1), place + depth))
        self._place, self._depth = torch.cat([self._place, place]), torch.cat([self._depth, depth])
        self._above = torch.cat([torch.nn.functional.pad(self._above, (0, new)), above])
        return logits

    def forget(self) -> None:
        """Forget all drafted nodes."""
        if len(self._place):
            self._cache.crop(-len(self._place))
        self._place, self._depth, self._above = self._no_nodes()

    def _no_nodes(self) -> tuple[Tensor, Tensor, Tensor]:
        """Place, depth and the nodes above each of no nodes."""
        nothing = torch.zeros(0, dtype=torch.int64, device=self.model.device)
        return nothing, nothing, torch.zeros(0, 0, dtype=torch.bool, device=self.model.device)

    def _seen(self, seen: Tensor, positions: Tensor) -> dict[str, Tensor]:
        dtype = self.model.network.dtype
        mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, torch.finfo(dtype).min)
        return {"attention_mask": mask[None, None], "position_ids": positions[None]}

    def _pass(self, ids: Tensor, keep: int, options: dict[str, Tensor]) -> Tensor:
        output, _ = forward(self.model, ids[None], keep, past_key_values=self._cache, use_cache=True, **options)
        self._cache = output.past_key_values
        logits: Tensor = output.logits[0, -keep:, : self.vocabulary]
        return logits


class RereadText:
    """A draft model without a usable cache: every node costs a pass over its text. All nodes of a pass are equally deep
    below one place.
    """

    def __init__(self, model: Model, vocabulary: int) -> None:
        self.model, self.vocabulary = model, vocabulary
        self._text = torch.zeros(0, dtype=torch.int64, device=model.device)
        self._nodes: list[Tensor] = []

    def read(self, ids: Tensor) -> None:
        """Take the next tokens ``[m]``."""
        self._text = torch.cat([self._text, ids])

    def first(self, places: Tensor) -> Tensor:
        """Logits after the text up to each place."""
        return torch.cat([self._after(self._text[None, : int(place) + 1]) for place in places])

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Logits after new nodes."""
        before = [self._nodes[at] if at >= 0 else self._text[:-at] for at in parents.tolist()]
        paths = [torch.cat([path, token[None]]) for path, token in zip(before, tokens, strict=True)]
        self._nodes += paths
        return self._after(torch.stack(paths))

    def forget(self) -> None:
        """Forget all drafted nodes."""
        self._nodes = []

    def _after(self, ids: Tensor) -> Tensor:
        output, _ = forward(self.model, ids, 1, use_cache=False)
        logits: Tensor = output.logits[:, -1, : self.vocabulary]
        return logits


class Marginals:
    """A parallel head as one that extends: its pmf is the same below every node of a depth."""

    def __init__(self, reading: ParallelReading, depth: int) -> None:
        self._reading, self._depth = reading, depth
        self.forget()

    def first(self, places: Tensor) -> Tensor:
        """Logits of the first draft; one pass gives those of all depths."""
        self._row = {int(place): row for row, place in enumerate(places)}
        self._block = self._reading.block(places, self._depth)
        return self._block[:, 0]

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Logits one depth below the parents: no pass."""
        at = [self._nodes[p] if p >= 0 else (self._row[-1 - p], 0) for p in parents.tolist()]
        below = [(row, depth + 1) for row, depth in at]
        self._nodes += below
        rows, depths = torch.tensor(below, device=parents.device).unbind(dim=1)
        return self._block[rows, depths]

    def forget(self) -> None:
        """Forget all drafted nodes."""
        self._nodes: list[tuple[int, int]] = []
