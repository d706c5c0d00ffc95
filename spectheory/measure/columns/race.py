"""The race's acceptance rate at every position (A2), from one sort of the ratios of each row, or between two bounds."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spectheory.measure.columns.compiled import fits, spread
from spectheory.measure.devices import widest


def race_acceptance(p: Tensor, q: Tensor, scratch: Tensor) -> Tensor:
    r"""Acceptance rate of the race, :math:`\sum_x p_x / (1 + g(p_x/q_x))`, ``[rows, V]`` to ``[rows]`` (A2).

    Exact up to rounding; compiled, the middle of bounds that are less than 1.5e-6 apart
    (:mod:`spectheory.kernels.race_columns`). `scratch` ``[rows, V]`` is overwritten.
    """
    if fits(p):
        from spectheory.kernels.race_columns import race_bounds

        bounds = np.empty((len(p), 2))
        spread(race_bounds, p, q, bounds)
        return torch.from_numpy(bounds.mean(axis=1))
    return _by_sort(p, q, scratch)


def _by_sort(p: Tensor, q: Tensor, scratch: Tensor) -> Tensor:
    ratio, q = _sorted_pairs(p, q, scratch)
    below = q.cumsum(dim=-1, dtype=widest(p)).mul_(ratio)
    # p, recomputed from the ratio; where q = 0 < p the race never accepts, and the token is left out.
    mass = torch.mul(ratio, q).nan_to_num_(nan=0.0, posinf=0.0)
    g = below.sub_(mass.cumsum(dim=-1, dtype=widest(p))).clamp_(min=0.0)
    return torch.div(mass, g.add_(1.0)).sum(dim=-1)


def _sorted_pairs(p: Tensor, q: Tensor, scratch: Tensor) -> tuple[Tensor, Tensor]:
    """Ratios p/q and draft probabilities, both in ascending order of the ratio; 0/0 comes first, p/0 last.

    In float32 each pair is packed into one 64-bit word, so that one sort needs no indices: the bits of non-negative
    floats are ordered as the floats are.
    """
    # 0/0 is NaN; such tokens have no mass, so their place does not matter.
    torch.div(p, q, out=scratch).nan_to_num_(nan=0.0, posinf=torch.inf)
    if p.dtype != torch.float32:
        ratio, order = scratch.sort(dim=-1)
        return ratio, q.gather(1, order)
    words = scratch.view(torch.int32).to(torch.int64)
    words.bitwise_left_shift_(32).bitwise_or_(q.view(torch.int32))
    if words.device.type == "cpu":
        words.numpy().sort(axis=-1)
    else:
        words = words.sort(dim=-1).values
    pairs = words.view(torch.float32).unflatten(-1, (-1, 2))
    return pairs[..., 1].contiguous(), pairs[..., 0].contiguous()
