"""Top-k and top-p on a device without sorting whole rows: the largest entries decide."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spectheory.distributions import Sampling

_FIRST_GUESS = 512
"""Tokens looked at for a nucleus; where they do not reach top-p, eight times as many are, and so on."""


def log_pmf(logits: Tensor, sampling: Sampling) -> Tensor:
    """Log-probabilities ``[rows, V]`` (nats, -inf where cut): what :meth:`Sampling.log_pmf` gives, sooner.

    Both cuts keep the m largest entries of a row, ties to the lowest index: m is top-k, or the length of the nucleus
    among them.

    Parameters
    ----------
    logits : tensor ``[rows, V]``
        Floating.
    sampling : Sampling
        Temperature, top-k and top-p.

    Raises
    ------
    LogitsError
        If a row has a NaN or +inf, or nothing but -inf.

    Examples
    --------
    >>> log_pmf(torch.log(torch.tensor([[0.5, 0.3, 0.2]])), Sampling(top_k=2)).exp()
    tensor([[0.6250, 0.3750, 0.0000]])
    """
    best = logits.amax(dim=-1, keepdim=True)
    if sampling.temperature == 0 or not truncates(sampling) or not bool(torch.isfinite(best).all()):
        return sampling.log_pmf(logits)
    scaled = logits - best
    scaled /= divisor(sampling, scaled.dtype)
    largest, kept = _largest(scaled, sampling)
    last = largest.gather(1, kept - 1)
    log_total = torch.logsumexp(largest.masked_fill_(_places(largest) >= kept, -math.inf), dim=-1, keepdim=True)
    cut = scaled < last
    # Entries equal to the last one kept may be too many; those of higher index go.
    surplus = (~cut).sum(dim=-1, keepdim=True) - kept
    if bool((surplus > 0).any()):
        tied = scaled == last
        cut |= tied & (tied.sum(dim=-1, keepdim=True) - tied.cumsum(dim=-1) < surplus)
    return (scaled - log_total).masked_fill_(cut, -math.inf)


def divisor(sampling: Sampling, precision: torch.dtype) -> float:
    """The temperature, or the smallest number of a precision: a gap over it is infinite by either, and none is 0."""
    return max(sampling.temperature, torch.finfo(precision).tiny)


def truncates(sampling: Sampling) -> bool:
    """Whether tokens with a finite logit may be cut."""
    return sampling.temperature == 0 or sampling.top_k is not None or sampling.top_p not in (None, 1)


def _largest(scaled: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
    """The largest entries of each row in descending order, and how many of them are kept, ``[rows, 1]``."""
    size = scaled.shape[-1]
    most = size if sampling.top_k is None else min(sampling.top_k, size)
    if sampling.top_p is None or sampling.top_p == 1:
        return scaled.topk(most).values, torch.full((len(scaled), 1), most, device=scaled.device)
    guess = most if sampling.top_k is not None else min(_FIRST_GUESS, most)
    log_total = None if sampling.top_k is not None else torch.logsumexp(scaled, dim=-1, keepdim=True)
    while True:
        largest = scaled.topk(guess).values
        total = torch.logsumexp(largest, dim=-1, keepdim=True) if log_total is None else log_total
        pmf = torch.exp(largest - total)
        before = pmf.cumsum(dim=-1) - pmf
        if guess == most or bool((before[:, -1] >= sampling.top_p).all()):
            return largest, (before < sampling.top_p).sum(dim=-1, keepdim=True)
        guess = min(8 * guess, most)


def _places(largest: Tensor) -> Tensor:
    return torch.arange(largest.shape[-1], device=largest.device)
