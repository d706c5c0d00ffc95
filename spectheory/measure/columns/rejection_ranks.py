"""The law of the rank of recursive rejection with i.i.d. drafts, at every position (R3)."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from spectheory.measure.columns.compiled import fits, spread

LARGEST_LOG = 700.0
"""Cap on the logarithm of a ratio, so that the ratio is finite; larger ones have the same effect."""


def rejection_ranks(p: Tensor, q: Tensor, log_rho: Tensor, scratch: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    r"""P(R = r | token), ``[rows, ranks]``, of recursive rejection with i.i.d. drafts (R3), and TV.

    With :math:`s_1 = 0, G_0 = 1, s_{m+1} = s_m + G_{m-1}`, m rejections leave :math:`(p - s_{m+1} q)_+` of mass
    :math:`G_m`, and :math:`P(R = r, X = x) = \min((p_x - s_r q_x)_+, G_{r-1} q_x)`: one pass a rank. `scratch` ``[rows,
    V]`` is overwritten.
    """
    left = _compiled_masses(p, q, ranks) if fits(p) else _masses(p, q, scratch, ranks)
    before = left.to(log_rho.dtype)
    taken = before.cumsum(dim=-1) - before
    rho = torch.exp(log_rho.clamp(max=LARGEST_LOG))[:, None]
    law = torch.minimum((1 - taken * rho).clamp_(min=0.0), before * rho)
    # log_rho is infinite for a token without target mass; no rank outputs it.
    return law.nan_to_num_(nan=0.0).masked_fill_((log_rho == math.inf)[:, None], 0.0), before[:, 1]


def _masses(p: Tensor, q: Tensor, scratch: Tensor, ranks: int) -> Tensor:
    """The masses left before each rank, ``[rows, ranks]``."""
    left = [torch.ones_like(p[:, :1])]
    taken = torch.zeros_like(left[0])
    for _ in range(ranks - 1):
        taken = taken + left[-1]
        torch.addcmul(p, q, taken, value=-1, out=scratch)
        left.append(torch.minimum(scratch.clamp_(min=0.0).sum(dim=-1, keepdim=True), left[-1]))
    return torch.cat(left, dim=1)


def _compiled_masses(p: Tensor, q: Tensor, ranks: int) -> Tensor:
    from spectheory.kernels.rejections import residual_masses

    left = np.empty((len(p), ranks))
    spread(residual_masses, p, q, left)
    return torch.from_numpy(left)
