"""The columns that `race` asks for: of the race, of distinct candidates and of biased rules."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spectheory.measure.columns.compiled import fits, spread
from spectheory.measure.columns.distinct_ranks import distinct_ranks
from spectheory.measure.columns.noise import Keys
from spectheory.measure.columns.pmf import Pmf
from spectheory.measure.columns.race import race_acceptance
from spectheory.measure.columns.race_ranks import race_ranks
from spectheory.measure.devices import widest
from spectheory.trace import UNO_SHARES


def expensive(p: Pmf, q: Pmf, at: Tensor, columns: dict[str, Tensor], keys: Keys, buffers: Tensor) -> dict[str, Tensor]:
    """The columns of the race, of distinct candidates and of biased rules."""
    scratch, log_target, log_draft = buffers[1], columns["log_target"], columns["log_draft"]
    return {
        "race_acceptance": race_acceptance(p.pmf, q.pmf, scratch).to(widest(p.pmf)),
        "race_rank": race_ranks(p.pmf, q.pmf, log_target, log_draft, scratch),
        "distinct_rank": distinct_ranks(p, q, at, log_target, log_draft, keys, buffers),
        "uno_loss": uno_loss(p.pmf, q.pmf, columns["total_variation"], buffers),
    }


def uno_loss(p: Tensor, q: Tensor, total_variation: Tensor, scratch: Tensor) -> Tensor:
    """Bias ``[rows, shares]`` of over-acceptance b = (1-t) min(1, p/q) + t with recovery from p (Y5, UNO).

    The output law is :math:`b q + c p`, c = (1-t) TV. Its distance to p is the part of b q above (1-c) p.
    """
    kept = torch.stack([1 - (1 - share) * total_variation for share in UNO_SHARES], dim=1)
    return _compiled_losses(p, q, kept) if fits(p) else _losses(p, q, kept, scratch)


def _losses(p: Tensor, q: Tensor, kept: Tensor, scratch: Tensor) -> Tensor:
    both, above = scratch
    torch.minimum(p, q, out=both)
    losses = []
    for i, share in enumerate(UNO_SHARES):
        torch.mul(p, -kept[:, i, None].to(p.dtype), out=above)
        above.add_(both, alpha=1 - share).add_(q, alpha=share)
        losses.append(above.clamp_(min=0.0).sum(dim=-1).to(kept.dtype))
    return torch.stack(losses, dim=-1)


def _compiled_losses(p: Tensor, q: Tensor, kept: Tensor) -> Tensor:
    from spectheory.kernels.rejections import uno_losses

    losses = np.empty(tuple(kept.shape))
    spread(uno_losses, p, q, kept, losses, constants=(np.array(UNO_SHARES),))
    return torch.from_numpy(losses)
