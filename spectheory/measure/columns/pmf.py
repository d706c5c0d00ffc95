"""Blocks of pmfs in float32 from logits, with zero probabilities marked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from spectheory.distributions import Sampling
from spectheory.measure.columns.softmax import softmax
from spectheory.measure.columns.supports import cuts, divisor, kept
from spectheory.measure.devices import widest


@dataclass(frozen=True)
class Listed:
    """The tokens ``[rows, W]`` of a vocabulary of `size` that columns stand for: ascending, padded with `size`."""

    ids: Tensor
    size: int

    def counts(self, rows: Tensor, like: Tensor) -> Tensor:
        """Numbers of tokens ``[n, 2W + 1]`` before, at, between and after the listed ones of some rows, by id."""
        ids = self.ids[rows]
        edges = pad(pad(ids, (1, 0), value=-1), (0, 1), value=self.size)
        return between((ids < self.size).to(like), (edges.diff(dim=1) - 1).clamp_(min=0).to(like))


def between(values: Tensor, fill: Tensor | float) -> Tensor:
    """Values ``[n, W]`` with others ``[n, W + 1]``, or a number, before, between and after them: ``[n, 2W + 1]``."""
    spread = values.new_empty((len(values), 2 * values.shape[1] + 1))
    spread[:, 1::2], spread[:, ::2] = values, fill
    return spread


@dataclass(frozen=True)
class Pmf:
    """A block of pmfs with logarithms: ``[rows, V]`` in float32, or ``[rows, W]`` in float64 over `listed` tokens.

    `log` has 0 in place of -inf where `cut`, so that products with it vanish there. `cut` marks tokens that the
    settings or the model exclude, and padding; None where every token has a finite logarithm.
    """

    pmf: Tensor
    log: Tensor
    cut: Tensor | None
    listed: Listed | None = None

    def log_at(self, at: Tensor) -> Tensor:
        """Log-probabilities ``[rows]`` of one token per row, -inf where cut; those of normal floats from the floats."""
        mass, log = (values.gather(1, at)[:, 0].to(widest(values)) for values in (self.pmf, self.log))
        own = torch.where(mass >= torch.finfo(self.pmf.dtype).tiny, mass.log(), log).clamp_(max=0.0)
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
    warmth = divisor(sampling, log.dtype)
    if cuts(sampling, logits.shape[1]) or not bool(torch.isfinite(best).all()):
        own = kept(logits, sampling, admitted)  # raises where a row is not finite, naming it
        log.copy_(own.over(logits.shape[1]))
        warmth = 1.0
    if softmax(log, pmf, warmth):
        return Pmf(pmf, log, None)
    cut = log == -math.inf
    return Pmf(pmf, log.masked_fill_(cut, 0.0), cut)
