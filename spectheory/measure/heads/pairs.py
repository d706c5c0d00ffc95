"""Reading a text by a head that reads its own drafts: pairs first, then drafted nodes below them."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from transformers import Cache, DynamicCache

from spectheory.errors import SettingError
from spectheory.measure.heads.base import AutoregressiveReading, HeadReading
from spectheory.measure.heads.checkpoint import CheckpointHead

_PIECE = 512
"""Pairs read in one pass; it bounds the mask."""


class AutoregressiveHead(CheckpointHead):
    """A head that reads its own drafts. Gradients flow through its methods.

    A *cell* is a pair or a draft that was read, and has a *state* ``[..., width]``: :meth:`step` makes it from the
    state before (of a pair: the fused hidden states) and the cell's token. :meth:`logits` of the next token come from
    it. `first_position` is the position of pair 0 in its position embeddings; a draft stands one position further than
    its parent.
    """

    first_position: ClassVar[int] = 1

    @abstractmethod
    def fuse(self, hidden: Tensor) -> Tensor:
        """States ``[..., width]`` of the target's hidden states ``[..., layers * target width]``."""

    @abstractmethod
    def step(self, states: Tensor, tokens: Tensor, positions: Tensor, seen: Tensor, keys: Cache) -> Tensor:
        """States ``[b, s, width]`` of new cells.

        They come from the states ``[b, s, width]`` before, tokens and positions ``[b, s]``, and the cells that each
        sees ``[b, s, c]``, all those before in `keys` and the new ones.
        """

    @abstractmethod
    def logits(self, states: Tensor) -> Tensor:
        """Logits ``[..., V]`` after cells with states ``[..., width]``."""

    def reading(self) -> HeadReading:
        """Start reading a text."""
        return _PairsReading(self)


class CellsReading(HeadReading):
    """States, keys and values of cells: first the pairs read, each of which sees those before, then what is drafted."""

    def __init__(self, head: AutoregressiveHead) -> None:
        self.pairs, self._head, self._keys = 0, head, DynamicCache()
        like = head.embed_tokens.weight
        self._device = like.device
        self._states = like.new_empty(0, head.config.width)

    @torch.no_grad()
    def read(self, hidden: Tensor, following: Tensor) -> None:
        """Read the next pairs; see :meth:`~spectheory.measure.heads.base.HeadReading.read`."""
        self.forget()
        if not len(following):
            return
        for states, tokens in zip(hidden.split(_PIECE), following.split(_PIECE), strict=True):
            before, self.pairs = self.pairs, self.pairs + len(tokens)
            cells = torch.arange(self.pairs, device=self._device)
            own = cells[before:]
            fused = self._head.fuse(states.to(self._states))
            self._step(fused, tokens, own, own[:, None] >= cells)

    @torch.no_grad()
    def first(self, pairs: Tensor) -> Tensor:
        """Logits of the first draft; see :meth:`~spectheory.measure.heads.base.AutoregressiveReading.first`."""
        return self._head.logits(self._states[pairs.to(self._device)])

    def forget(self) -> None:
        """Forget all drafted cells."""
        if drafted := len(self._states) - self.pairs:
            self._keys.crop(-drafted)
        self._states = self._states[: self.pairs]

    def _step(self, states: Tensor, tokens: Tensor, places: Tensor, seen: Tensor) -> Tensor:
        tokens, positions = tokens.to(self._device), places + self._head.first_position
        states = self._head.step(states[None], tokens[None], positions[None], seen[None], self._keys)[0]
        self._states = torch.cat([self._states, states])
        return states


class _PairsReading(CellsReading, AutoregressiveReading):
    """Drafted nodes are cells, flat: each sees its pair and those before, and its parents.

    `_above` is the cell above each node, `_place` its position from that of pair 0. A pass over s nodes has a mask of
    s times (pairs + nodes) entries.
    """

    def __init__(self, head: AutoregressiveHead) -> None:
        super().__init__(head)
        self._above = torch.empty(0, dtype=torch.int64, device=self._device)
        self._place = torch.empty_like(self._above)

    @torch.no_grad()
    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Read drafts; see :meth:`~spectheory.measure.heads.base.AutoregressiveReading.extend`."""
        if self._head.deepest == 1:
            raise SettingError(
                f"more than one draft in a call of the {self._head.kind} head is asked for",
                limit="beyond the first, training and engines give it different states",
                remedy="use k = 1",
            )
        parents = parents.to(self._device)
        above = torch.where(parents < 0, -1 - parents, parents + self.pairs)
        old, s = len(self._above), len(parents)
        self._above = torch.cat([self._above, above])
        place = torch.cat([torch.arange(self.pairs, device=self._device), self._place])
        self._place = torch.cat([self._place, place[above] + 1])
        seen = self._ancestors(torch.arange(old, old + s, device=self._device) + self.pairs)
        return self._head.logits(self._step(self._states[above], tokens, self._place[old:], seen))

    def forget(self) -> None:
        """Forget all drafted nodes."""
        self._above, self._place = self._above[:0], self._place[:0]
        super().forget()

    def _ancestors(self, cells: Tensor) -> Tensor:
        """Which cells ``[s, c]`` nodes ``[s]`` see: themselves, their parents, and pairs up to the first parent."""
        seen = torch.zeros(len(cells), self.pairs + len(self._above), dtype=torch.bool, device=self._device)
        above = torch.cat([torch.arange(self.pairs, device=self._device), self._above])
        while bool((cells >= self.pairs).any()):  # a pair is above itself
            seen.scatter_(1, cells[:, None], True)
            cells = above[cells]
        seen[:, : self.pairs] = torch.arange(self.pairs, device=self._device) <= cells[:, None]
        return seen
