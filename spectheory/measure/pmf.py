"""Blocks of pmfs in float32 from logits, with zero probabilities marked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure.truncation import divisor, log_pmf


@dataclass(frozen=True)
class Pmf:
    """A block of pmfs ``[rows, V]`` in float32, with logarithms.

    `log` has 0 in place of -inf where `cut`, so that products with it vanish there. `cut` marks tokens that the
    settings or the model exclude; None where every token has a finite logarithm.
    """

    pmf: Tensor
    log: Tensor
    cut: Tensor | None

    def log_at(self, at: Tensor) -> Tensor:
        """Log-probabilities ``[rows]`` of one token per row, -inf where cut."""
        own = self.log.gather(1, at)[:, 0].clamp_(max=0.0)
        return own if self.cut is None else own.masked_fill_(self.cut.gather(1, at)[:, 0], -math.inf)

    def order(self) -> Tensor:
        """Values ``[rows, V]`` in the order of the probabilities: logarithms, which round together less often."""
        return self.log if self.cut is None else self.log.masked_fill(self.cut, -math.inf)

    def order_of(self, rows: Tensor) -> Tensor:
        """The same values ``[n, V]`` for some rows, given by their indices."""
        return self.log[rows] if self.cut is None else self.log[rows].masked_fill(self.cut[rows], -math.inf)


def token_at(cumulative: Tensor, heights: Tensor) -> Tensor:
    """Tokens ``[rows, n]`` at heights ``[rows, n]`` in [0, 1) of cumulative masses ``[rows, V]``, by inversion."""
    total = cumulative[:, -1:]
    # Strictly below the total despite rounding, so that the token found has mass.
    height = torch.minimum((heights * total).to(total.dtype), torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, height, right=True)


def make_pmf(logits: Tensor, sampling: Sampling, buffers: Tensor, admitted: Tensor | None = None) -> Pmf:
    """The pmfs of logits ``[rows, V]``, in `buffers` ``[2, rows, V]``; `admitted` ``[rows, 1]`` is never cut."""
    pmf, log = buffers
    best = logits.amax(dim=-1, keepdim=True).float()
    torch.sub(logits, best, out=log)
    if sampling.truncates or not bool(torch.isfinite(best).all()):
        kept = log_pmf(logits.float(), sampling)  # raises where a row is not finite, naming it
        if admitted is not None:
            _admit(kept, log, admitted, sampling)
        log.copy_(kept)
    elif sampling.temperature != 1:
        log /= divisor(sampling, log.dtype)
    torch.exp(log, out=pmf)
    total = pmf.sum(dim=-1, keepdim=True)
    pmf /= total
    log -= total.log()
    if bool(torch.isfinite(log.amin(dim=-1)).all()):
        return Pmf(pmf, log, None)
    cut = log == -math.inf
    return Pmf(pmf, log.masked_fill_(cut, 0.0), cut)


def _admit(log: Tensor, logits: Tensor, tokens: Tensor, sampling: Sampling) -> None:
    """Re-admit cut tokens ``[rows, 1]`` in place, unnormalised; `logits` are relative to their row's largest entry."""
    own = log.gather(1, tokens)
    outside = own == -math.inf
    if sampling.temperature == 0:  # the admitted token becomes the only one
        log.masked_fill_(outside, -math.inf)
        value = torch.zeros_like(own)
    else:
        value = logits.gather(1, tokens) / divisor(sampling, logits.dtype) + log.amax(dim=-1, keepdim=True)
    log.scatter_(1, tokens, torch.where(outside, value, own))
