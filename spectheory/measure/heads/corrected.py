"""Heads that draft a DFlash block in one pass, and correct its logits from left to right by the drafts before.

So the pmf of a draft depends on the drafts before it, and a call still has one pass of the transformer: what corrects
is small. Measured along a text the drafts before are its tokens (§10).
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from spectheory.measure.heads.base import AutoregressiveReading
from spectheory.measure.heads.checkpoint import check_depth
from spectheory.measure.heads.dflash import BlockReading, DFlash


class CorrectedHead(DFlash):
    """A DFlash backbone with a correction, which has a memory of `remembers` numbers along the drafts of a call."""

    remembers: int = 0

    @abstractmethod
    def correct(self, outputs: Tensor, tokens: Tensor, memory: Tensor, depths: Tensor) -> tuple[Tensor, Tensor]:
        """Logits ``[s, drafted]`` of drafts, and the memory ``[s, remembers]`` for the next ones.

        They come from the slots' normed outputs ``[s, width]``, the tokens ``[s]`` before the drafts, the memory
        before, which begins as zeros, and the number of drafts before ``[s]``.
        """

    def confidence(self, outputs: Tensor, tokens: Tensor) -> Tensor | None:
        """Probability ``[s]`` of being accepted that the head gives its drafts, by outputs and tokens as above."""
        return None

    def reading(self) -> _CorrectedReading:
        """Start reading a text."""
        return _CorrectedReading(self)


class _CorrectedReading(BlockReading, AutoregressiveReading):
    """Blocks of the places that were asked for last; below each its drafted nodes.

    A *cell* is a place or, behind all places, a drafted node. It has a block, a number of drafts before, and the memory
    after its token.
    """

    _head: CorrectedHead

    def __init__(self, head: CorrectedHead) -> None:
        super().__init__(head)
        self.forget()

    def read(self, hidden: Tensor, following: Tensor) -> None:
        """Read the next pairs; see :meth:`~spectheory.measure.heads.base.HeadReading.read`."""
        self.forget()
        super().read(hidden, following)

    @torch.no_grad()
    def first(self, places: Tensor) -> Tensor:
        """Logits of first drafts, after all nodes are forgotten; see
        :meth:`~spectheory.measure.heads.base.Extending.first`.
        """
        self.forget()
        places = places.to(self._following.device)
        self._outputs_of, cells = self._outputs(places), torch.arange(len(places), device=places.device)
        self._cell_of = places.new_full((self.pairs,), -1).index_copy_(0, places, cells)
        self._places = len(places)
        memory = self._outputs_of.new_zeros(len(places), self._head.remembers)
        return self._correct(cells, self._following[places], memory, torch.zeros_like(cells))

    @torch.no_grad()
    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Logits after drafts; see :meth:`~spectheory.measure.heads.base.Extending.extend`."""
        parents, tokens = parents.to(self._following.device), tokens.to(self._following.device)
        above = torch.where(parents < 0, self._cell_of[(-1 - parents).clamp(min=0)], parents + self._places)
        depths = self._depths[above] + 1
        check_depth(self._head, int(depths.max()) + 1)
        return self._correct(self._blocks[above], tokens, self._memory[above], depths)

    def forget(self) -> None:
        """Forget all drafted nodes."""
        self._places, self.confidence = 0, None
        self._blocks = self._depths = self._cell_of = self._following[:0]
        self._outputs_of = self._memory = self._head.embed_tokens.weight.new_zeros(0, self._head.remembers)

    def _correct(self, blocks: Tensor, tokens: Tensor, memory: Tensor, depths: Tensor) -> Tensor:
        """Logits ``[s, V]`` of the drafts after new cells."""
        outputs = self._outputs_of[blocks, depths]
        logits, memory = self._head.correct(outputs, tokens, memory, depths)
        self.confidence = self._head.confidence(outputs, tokens)
        self._blocks, self._depths = torch.cat([self._blocks, blocks]), torch.cat([self._depths, depths])
        self._memory = torch.cat([self._memory, memory])
        return self._head.in_vocabulary(logits)
