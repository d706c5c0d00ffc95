"""The law of the rank of the output among the race's distinct drafts, at every position (R2)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spectheory.trace import RECORDED_RANKS

_SINGLED_OUT = 256
"""Number of tokens treated exactly, those of the largest rates; the others arrive rarely enough for a series."""
_LARGEST_RATE = 1e9
"""A token with a larger rate arrives first except with a probability of one in a billion."""
_LOG_TIMES, _NODES = (-21.0, 4.0), 64
"""Trapezoid rule in the logarithm of the winner's time, accurate to 1e-6 for eight ranks."""
_MOST_ARRIVALS = 100.0
"""Expected arrivals beyond which seven or fewer have a probability below 1e-30."""
_BLOCK = 2**22
"""Most entries of an array."""


def race_ranks(p: Tensor, q: Tensor, log_target: Tensor, log_draft: Tensor, scratch: Tensor) -> Tensor:
    r"""P(R = r | token), ``[rows, 8]``, of the race over distinct tokens (R2; exact to 3e-6).

    Given the token and its time u ~ Exp(1), R - 1 counts independent arrivals of probability :math:`1-e^{-u\lambda_y}`,
    :math:`\lambda_y = (c q_y - p_y)_+`, c = p/q of the token. The largest rates enter exactly, as a product of
    polynomials; the others by four terms of the logarithm of their generating function, whose error is of fifth order
    in the largest of them. `scratch` ``[rows, V]`` of float32 is overwritten.
    """
    c = torch.exp(log_target - log_draft).clamp_(max=torch.finfo(torch.float32).max).to(torch.float32)
    torch.addcmul(p, q, c[:, None], value=-1, out=scratch).neg_().clamp_(min=0.0, max=_LARGEST_RATE)
    first = 1 / (1 + scratch.sum(dim=-1).to(log_target.dtype))
    top, at = scratch.topk(min(_SINGLED_OUT, scratch.shape[1]), dim=-1)
    scratch.scatter_(1, at, 0.0)
    moments = []
    powers = scratch
    for order in range(1, 5):
        moments.append(powers.sum(dim=-1))
        if order < 4:
            powers = powers * scratch
    tail = torch.stack(moments, dim=-1)
    rows = max(1, _BLOCK // (_NODES * top.shape[1]))
    parts = [_law(t, m) for t, m in zip(top.split(rows), tail.split(rows), strict=True)]
    law = torch.cat(parts).to(first.dtype)
    law[:, 0] = first
    return law.masked_fill_((log_draft == -math.inf)[:, None], 0.0)


def _law(top: Tensor, tail: Tensor) -> Tensor:
    """Law of the number of arrivals, 0 to 7, averaged over the winner's time."""
    log_u = torch.linspace(*_LOG_TIMES, _NODES, dtype=top.dtype, device=top.device)
    u = log_u.exp()
    weight = u * (-u).exp() * (log_u[1] - log_u[0])
    exponent = -top[:, None, :] * u[:, None]
    counted = _product(torch.stack([exponent.exp(), -torch.expm1(exponent)]))
    both = _multiply(counted, _series(tail, u))
    return torch.einsum("krn,n->rk", both, weight)


def _product(factors: Tensor) -> Tensor:
    """Product over the last axis of polynomials ``[degree + 1, ..., n]``, cut at degree 7."""
    while factors.shape[-1] > 1:
        if factors.shape[-1] % 2:
            one = torch.zeros_like(factors[..., :1])
            one[0] = 1.0
            factors = torch.cat([factors, one], dim=-1)
        factors = _multiply(factors[..., ::2], factors[..., 1::2])
    factors = factors[..., 0]
    missing = RECORDED_RANKS - len(factors)
    return torch.cat([factors, factors.new_zeros((missing, *factors.shape[1:]))]) if missing > 0 else factors


def _multiply(a: Tensor, b: Tensor) -> Tensor:
    """Product of two polynomials ``[degree + 1, ...]``, cut at degree 7."""
    degree = min(len(a) + len(b) - 1, RECORDED_RANKS)
    product = a.new_zeros((degree, *a.shape[1:]))
    for i in range(len(a)):
        for j in range(min(len(b), degree - i)):
            product[i + j].addcmul_(a[i], b[j])
    return product


def _series(tail: Tensor, u: Tensor) -> Tensor:
    r"""Generating function of the rare arrivals up to degree 7, ``[8, rows, nodes]``.

    Its logarithm is :math:`\sum_m (-1)^{m-1} (z-1)^m S_m / m`, :math:`S_m = \sum_y (1-e^{-u\lambda_y})^m`; each S_m is
    a series in u whose coefficients are the moments of the rates.
    """
    # The moments may overflow where more arrivals are expected.
    alive = tail[:, 0, None] * u < _MOST_ARRIVALS
    m1, m2, m3, m4 = (torch.where(alive, tail[:, i, None] * u ** (i + 1), 0.0) for i in range(4))
    s1 = m1 - m2 / 2 + m3 / 6 - m4 / 24
    s2 = m2 - m3 + 7 * m4 / 12
    s3 = m3 - 3 * m4 / 2
    s4 = m4
    # Coefficients of z^0..z^4 of s1 (z-1) - s2 (z-1)^2/2 + s3 (z-1)^3/3 - s4 (z-1)^4/4.
    log = [
        -s1 - s2 / 2 - s3 / 3 - s4 / 4,
        s1 + s2 + s3 + s4,
        -s2 / 2 - s3 - 3 * s4 / 2,
        s3 / 3 + s4,
        -s4 / 4,
    ]
    series = [torch.where(alive, log[0].exp(), 0.0)]
    for n in range(1, RECORDED_RANKS):
        terms = [k * log[k] * series[n - k] for k in range(1, min(n, 4) + 1)]
        series.append(torch.stack(terms).sum(dim=0) / n)
    return torch.stack(series)
