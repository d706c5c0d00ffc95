"""Blocks of pmfs in float32 from logits, with the zeros decided."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure.truncation import divisor, log_pmf


@dataclass(frozen=True)
class Pmf:
    """A block of pmfs ``[rows, V]`` in float32.

    Attributes
    ----------
    pmf : tensor ``[rows, V]``
        Probabilities.
    log : tensor ``[rows, V]``
        Their logarithms, with 0 in place of -inf where `cut`, so that products with them vanish there.
    cut : tensor ``[rows, V]`` of bool, optional
        Tokens that the settings or the model exclude; None where every token has a finite logarithm.
    """

    pmf: Tensor
    log: Tensor
    cut: Tensor | None

    def log_at(self, at: Tensor) -> Tensor:
        """Log-probabilities ``[rows]`` of one token per row, -inf where cut."""
        own = self.log.gather(1, at)[:, 0].clamp_(max=0.0)
        return own if self.cut is None else own.masked_fill_(self.cut.gather(1, at)[:, 0], -math.inf)

    def order(self) -> Tensor:
        """Values ``[rows, V]`` in the order of the probabilities: logarithms tell apart what these round together."""
        return self.log if self.cut is None else self.log.masked_fill(self.cut, -math.inf)

    def order_of(self, rows: Tensor) -> Tensor:
        """The same ``[n, V]`` of some rows, given by their indices."""
        return self.log[rows] if self.cut is None else self.log[rows].masked_fill(self.cut[rows], -math.inf)


def make_pmf(logits: Tensor, sampling: Sampling, buffers: Tensor, admitted: Tensor | None = None) -> Pmf:
    """The pmfs of a block of logits; one exponential per entry.

    Parameters
    ----------
    logits : tensor ``[rows, V]``
        In any floating precision.
    sampling : Sampling
        Temperature, top-k, top-p and min-p.
    buffers : tensor ``[2, rows, V]`` of float32
        Where the result goes.
    admitted : tensor ``[rows, 1]`` of int, optional
        One token per row that is never cut; see :func:`~spectheory.measure.statistics.position_statistics`.

    Raises
    ------
    LogitsError
        If a row has no pmf.
    """
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
    """Let cut tokens ``[rows, 1]`` in again, in place and unnormalised; at temperature 0 they are the only ones.

    `logits` are relative to the largest of their row.
    """
    own = log.gather(1, tokens)
    outside = own == -math.inf
    if sampling.temperature == 0:
        log.masked_fill_(outside, -math.inf)
        value = torch.zeros_like(own)
    else:
        value = logits.gather(1, tokens) / divisor(sampling, logits.dtype) + log.amax(dim=-1, keepdim=True)
    log.scatter_(1, tokens, torch.where(outside, value, own))
