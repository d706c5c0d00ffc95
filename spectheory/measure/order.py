"""What depends on the order of the tokens alone; ties go to the lowest index."""

from __future__ import annotations

import torch
from torch import Tensor


def order_statistics(target: Tensor, draft: Tensor, at: Tensor, buffers: Tensor) -> dict[str, Tensor]:
    """Ranks of the token under both models, and whether their first choices agree.

    Parameters
    ----------
    target, draft : tensor ``[rows, V]`` of float32
        Values in the order of the probabilities.
    at : tensor ``[rows, 1]`` of int
        The token.
    buffers : tensor ``[2, rows, V]`` of float32
        Overwritten.

    Returns
    -------
    dict of str to tensor ``[rows]``
        ``target_rank`` and ``draft_rank``, 1 the most probable, and ``greedy_agreement``.
    """
    before, scratch = buffers
    torch.lt(torch.arange(target.shape[1], device=at.device, dtype=torch.float32), at.float(), out=before)
    return {
        "target_rank": _rank(target, at, before, scratch),
        "draft_rank": _rank(draft, at, before, scratch),
        "greedy_agreement": _first_largest(target) == _first_largest(draft),
    }


def _rank(values: Tensor, at: Tensor, before: Tensor, scratch: Tensor) -> Tensor:
    """Place of a token in its row.

    Comparisons go to a float array, where both they and their sum run at full width; counts are exact below 2^24.
    """
    own = values.gather(1, at)
    ahead = torch.gt(values, own, out=scratch).sum(dim=-1)
    tied = torch.eq(values, own, out=scratch).mul_(before).sum(dim=-1)
    return (1 + ahead + tied).to(torch.int64)


def _first_largest(values: Tensor) -> Tensor:
    """Index of the largest entry of each row."""
    if values.device.type == "cpu":  # numpy's is ten times as fast there
        return torch.from_numpy(values.numpy().argmax(axis=-1))
    return values.argmax(dim=-1)
