"""P-EAGLE: EAGLE-3's network, which drafts all depths in one pass: mask tokens stand for the drafts not known yet."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from spectheory.measure.heads.base import ParallelReading
from spectheory.measure.heads.config import HeadConfig
from spectheory.measure.heads.eagle3 import Eagle3
from spectheory.measure.heads.mask_tokens import check_depth, mask_token_of
from spectheory.measure.heads.pairs import CellsReading

CELLS = 1024
"""Mask tokens of one pass: more are drafted in several passes, so that rollouts are hardly compared with each other."""


class PEagle(Eagle3):
    """A P-EAGLE head: the first draft comes from the pair, draft i from the (i - 1)-th mask token after it.

    A mask token has the embedding of `mask_token_id` and the hidden states `mask_hidden`. It sees the pairs up to its
    own and the mask tokens before it, so the logits of a depth do not depend on how many drafts a call takes.
    """

    kind: ClassVar[str] = "peagle"
    parallel: ClassVar[bool] = True
    fields: ClassVar[dict[str, Any]] = {**Eagle3.fields, "mask_token_id": None, "embed_requires_grad": True}
    first_position: ClassVar[int] = 0
    deepest: int

    def __init__(self, config: HeadConfig, layers: tuple[int, ...], **of_target: Any) -> None:
        super().__init__(config, layers, **of_target)
        self.deepest, self.mask_token = config.trained, mask_token_of(config)
        self.mask_hidden = nn.Parameter(torch.randn(1, 1, len(layers) * config.target_width))

    def reading(self) -> PEagleReading:
        """Start reading a text."""
        return PEagleReading(self)


class PEagleReading(CellsReading, ParallelReading):
    """Cells are the pairs read and, during a pass, the mask tokens of its starts: start after start, by depth."""

    _head: PEagle

    @torch.no_grad()
    def block(self, pairs: Tensor, depth: int) -> Tensor:
        """Logits of drafts 1..depth; see :meth:`~spectheory.measure.heads.base.ParallelReading.block`."""
        check_depth(self._head, depth)
        pairs = pairs.to(self._device)
        drafts = self._head.logits(self._states[pairs])[:, None]
        if depth == 1:
            return drafts
        parts = pairs.split(max(1, CELLS // (depth - 1)))
        return torch.cat([drafts, torch.cat([self._masked(part, depth - 1) for part in parts])], dim=1)

    def _masked(self, pairs: Tensor, count: int) -> Tensor:
        """Logits ``[s, count, V]`` after each mask token of each start."""
        head, s = self._head, len(pairs)
        cells = torch.arange(s * count, device=self._device)
        start, after = cells // count, cells % count
        inside = (start == start[:, None]) & (after <= after[:, None])
        before = torch.arange(self.pairs, device=self._device) <= pairs[start][:, None]
        states = head.fuse(head.mask_hidden[0]).expand(len(cells), -1)
        tokens = torch.full_like(cells, head.mask_token)
        outputs = self._step(states, tokens, pairs[start] + 1 + after, torch.cat([before, inside], dim=1))
        self.forget()
        return head.logits(outputs).view(s, count, -1)
