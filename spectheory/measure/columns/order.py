"""Statistics that depend only on the order of the tokens; ties go to the lowest index."""

from __future__ import annotations

import torch
from torch import Tensor


def order_statistics(target: Tensor, draft: Tensor, at: Tensor, buffers: Tensor) -> dict[str, Tensor]:
    """``target_rank``, ``draft_rank`` (1 the most probable) and ``greedy_agreement`` ``[rows]`` of the token `at`
    ``[rows, 1]``.
    """
    before, scratch = buffers
    torch.lt(torch.arange(target.shape[1], device=at.device, dtype=torch.float32), at.float(), out=before)
    return {
        "target_rank": _rank(target, at, before, scratch),
        "draft_rank": _rank(draft, at, before, scratch),
        "greedy_agreement": first_largest(target) == first_largest(draft),
    }


def _rank(values: Tensor, at: Tensor, before: Tensor, scratch: Tensor) -> Tensor:
    """Rank of a token in its row. Counting in floats runs at full vector width, and is exact below 2^24."""
    own = values.gather(1, at)
    ahead = torch.gt(values, own, out=scratch).sum(dim=-1)
    tied = torch.eq(values, own, out=scratch).mul_(before).sum(dim=-1)
    return (1 + ahead + tied).to(torch.int64)


def first_largest(values: Tensor) -> Tensor:
    """Index of the largest entry of each row, the first where several are equal."""
    if values.device.type == "cpu":  # numpy is ten times faster here
        return torch.from_numpy(values.numpy().argmax(axis=-1))
    return values.argmax(dim=-1)
