"""Top-k, top-p and min-p on a device without sorting whole rows: only the largest entries are needed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure.devices import widest

_FIRST_GUESS = 512
"""Largest tokens taken for a nucleus; where they do not reach top-p, eight times as many are taken, and so on."""


def log_pmf(logits: Tensor, sampling: Sampling) -> Tensor:
    """Log-probabilities ``[rows, V]`` (nats, -inf where cut), equal to those of :meth:`Sampling.log_pmf` but faster."""
    if logits.dtype in (torch.float16, torch.bfloat16):
        return log_pmf(logits.float(), sampling).to(logits.dtype)
    best = logits.amax(dim=-1, keepdim=True)
    if sampling.temperature == 0 or not sampling.truncates or not bool(torch.isfinite(best).all()):
        return sampling.log_pmf(logits)
    scaled = logits - best
    scaled /= divisor(sampling, scaled.dtype)
    by_rank = sampling.top_k is not None and sampling.top_k < logits.shape[-1]
    if not by_rank and sampling.top_p in (None, 1):
        scaled.masked_fill_(scaled < _log_min_p(sampling), -math.inf)
        return scaled - torch.logsumexp(scaled, dim=-1, keepdim=True)
    largest, own, kept = _largest(logits, scaled, sampling)
    kept = torch.minimum(kept, (own >= _log_min_p(sampling)).sum(dim=-1, keepdim=True))
    log_total = torch.logsumexp(own.masked_fill_(_places(own) >= kept, -math.inf), dim=-1, keepdim=True)
    last = largest.gather(1, kept - 1)
    cut = logits < last
    # More entries may equal the last one kept than the nucleus needs; those of highest index are cut.
    surplus = (~cut).sum(dim=-1, keepdim=True) - kept
    if bool((surplus > 0).any()):
        tied = logits == last
        cut |= tied & (tied.sum(dim=-1, keepdim=True) - tied.cumsum(dim=-1) < surplus)
    return (scaled - log_total).masked_fill_(cut, -math.inf)


def divisor(sampling: Sampling, precision: torch.dtype) -> float:
    """The temperature, but at least the smallest positive number of the precision, so that no quotient is 0/0."""
    return max(sampling.temperature, torch.finfo(precision).tiny)


def _log_min_p(sampling: Sampling) -> float:
    """The smallest log-probability, relative to the largest, that min-p keeps."""
    return math.log(sampling.min_p) if sampling.min_p else -math.inf


def _largest(logits: Tensor, scaled: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor, Tensor]:
    """The largest logits of each row in descending order, their scaled values, and how many of them are kept."""
    top_p = 1.0 if sampling.top_p is None else sampling.top_p
    if sampling.top_k is None or sampling.top_k >= logits.shape[-1]:
        return _nucleus(logits, scaled, top_p)
    largest, at = logits.topk(sampling.top_k)
    kept = (logits >= largest[:, -1:]).sum(dim=-1, keepdim=True)
    most = int(kept.max())
    if most > sampling.top_k:
        largest, at = logits.topk(most)
    own = scaled.gather(1, at).masked_fill_(_places(at) >= kept, -math.inf)
    if top_p < 1:
        kept = torch.minimum(kept, _reaching(torch.softmax(own, dim=-1, dtype=widest(own)), top_p)[1])
    return largest, own, kept


def _nucleus(logits: Tensor, scaled: Tensor, top_p: float) -> tuple[Tensor, Tensor, Tensor]:
    """The same for top-p alone."""
    total = torch.exp(scaled).sum(dim=-1, keepdim=True, dtype=widest(scaled))
    guess = min(_FIRST_GUESS, logits.shape[-1])
    while True:
        largest, at = logits.topk(guess)
        own = scaled.gather(1, at)
        reached, kept = _reaching(torch.exp(own.to(total.dtype)) / total, top_p)
        if reached or guess == logits.shape[-1]:
            return largest, own, kept
        guess = min(8 * guess, logits.shape[-1])


def _reaching(pmf: Tensor, top_p: float) -> tuple[bool, Tensor]:
    """Whether these probabilities reach top-p in every row, and how many of them are needed, ``[rows, 1]``."""
    before = pmf.cumsum(dim=-1) - pmf
    return bool((before[:, -1] >= top_p).all()), (before < top_p).sum(dim=-1, keepdim=True)


def _places(largest: Tensor) -> Tensor:
    return torch.arange(largest.shape[-1], device=largest.device)
