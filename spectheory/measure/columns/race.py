"""The race at every position: its acceptance rate (A2) and the law of the output's rank among distinct drafts (R2)."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory.measure.columns.compiled import fits, on_threads
from spectheory.measure.machine import widest
from spectheory.trace import RECORDED_RANKS


def race_acceptance(p: Tensor, q: Tensor, scratch: Tensor) -> Tensor:
    r"""Acceptance rate of the race, :math:`\sum_x p_x / (1 + g(p_x/q_x))`, ``[rows, V]`` to ``[rows]`` (A2).

    Exact up to rounding; compiled, the middle of bounds that are less than 1.5e-6 apart
    (:mod:`spectheory.kernels.race_columns`). `scratch` ``[rows, V]`` is overwritten.
    """
    if fits(p):
        from spectheory.kernels.race_columns import race_bounds

        bounds = np.empty((len(p), 2))
        on_threads(race_bounds, p, q, bounds)
        return torch.from_numpy(bounds.mean(axis=1))
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


Floats = NDArray[np.float64]

SINGLED_OUT = 400
"""Largest number of tokens treated exactly, those of the largest rates; the others enter by a series."""
FLOOR, SHARE = 0.003, 1 / 400
"""A token enters by the series if its rate is at most this, or at most this share of the sum of those that do."""
_LARGEST_RATE = 1e9
"""A token with a larger rate arrives first except with a probability of one in a billion."""
LOG_TIMES, NODES = (-16.5, 3.0), 64
"""Trapezoid rule in the logarithm of the winner's time."""
_MOST_ARRIVALS = 100.0
"""Expected arrivals beyond which seven or fewer have a probability below 1e-30."""
_BLOCK = 2**22
"""Most entries of an array."""


def ratio(log_target: Tensor, log_draft: Tensor, precision: torch.dtype) -> Tensor:
    """p/q at the token, ``[rows]``; at most half the largest number of a precision, so that its products with a pmf
    add up to a finite number.
    """
    return torch.exp(log_target - log_draft).clamp_(max=torch.finfo(precision).max / 2)


def race_ranks(p: Tensor, q: Tensor, log_target: Tensor, log_draft: Tensor, scratch: Tensor) -> Tensor:
    r"""P(R = r | token), ``[rows, 8]``, of the race over distinct tokens (R2; exact to 1e-6 where the token's
    probabilities are normal numbers of their precision).

    Given the token and its time u ~ Exp(1), R - 1 counts independent arrivals of probability :math:`1-e^{-u\lambda_y}`,
    :math:`\lambda_y = (c q_y - p_y)_+`, c = p/q of the token. The largest rates enter exactly, as a product of
    polynomials; the others by four terms of the logarithm of their generating function, whose error is of fifth order
    in the largest of them. `scratch` ``[rows, V]`` is overwritten.

    **Error.** The integrand at rank k + 1 is :math:`P_k(u) e^{s-u}, u = e^s`. At :math:`u = |u|e^{i\theta}` each
    :math:`|1-e^{-u\lambda}|` is at most :math:`\sec\theta` times its value at the real part of u, so the integral of
    the modulus is at most :math:`\sec^{k+1}\theta\,P(R=k+1)`. So the trapezoid rule of step h is off by at most
    :math:`2\sec^{k+1}\theta/(e^{2\pi\theta/h}-1)` for every :math:`\theta<\pi/2`, and by the integral
    outside the nodes. tests/measure/race_rank_bounds.py evaluates this and bounds the error of the series.
    """
    c = ratio(log_target, log_draft, p.dtype)
    law = _laws(p, q, c, *_quadrature(), scratch)
    # The four terms leave a rank of almost no probability a little below 0.
    return law.clamp_(min=0.0).masked_fill_((log_draft == -math.inf)[:, None], 0.0)


def _quadrature() -> tuple[Floats, Floats]:
    """Times of the winner and the weights of the trapezoid rule for the exponential distribution, ``[nodes]``."""
    log_times = np.linspace(*LOG_TIMES, NODES)
    return np.exp(log_times), np.exp(log_times - np.exp(log_times)) * (log_times[1] - log_times[0])


def _laws(p: Tensor, q: Tensor, c: Tensor, times: Floats, weights: Floats, scratch: Tensor) -> Tensor:
    if fits(p):
        from spectheory.kernels.race_columns import race_law

        laws = np.empty((len(p), RECORDED_RANKS))
        limits = (_LARGEST_RATE, FLOOR, SHARE, SINGLED_OUT, _MOST_ARRIVALS)
        on_threads(race_law, p, q, c, laws, constants=((times, weights), limits))
        return torch.from_numpy(laws)
    torch.addcmul(p, q, c[:, None].to(p.dtype), value=-1, out=scratch).neg_().clamp_(min=0.0, max=_LARGEST_RATE)
    # A sum in single precision would be off by more than the small rates.
    whole = scratch.sum(dim=-1, keepdim=True, dtype=c.dtype)
    top, at = scratch.topk(min(SINGLED_OUT, scratch.shape[1]), dim=-1)
    singled = _singled(top, whole)
    chosen = torch.arange(top.shape[1], device=top.device) < singled[:, None]
    scratch.scatter_(1, at, top.masked_fill(chosen, 0.0))
    exact = top.masked_fill(~chosen, 0.0)
    tail = _moments(scratch)
    u, weight = (torch.from_numpy(x).to(top) for x in (times, weights))
    law = c.new_empty((len(c), RECORDED_RANKS))
    size = 1
    while size < 2 * top.shape[1]:
        (rows,) = torch.nonzero((singled <= size) & ((singled > size // 2) | (size == 1)), as_tuple=True)
        for part in rows.split(max(1, _BLOCK // (NODES * size))):
            law[part] = _law(exact[part, :size], tail[part], u, weight).to(c.dtype)
        size *= 2
    law[:, 0] = 1 / (1 + whole[:, 0])
    return law


def _singled(top: Tensor, whole: Tensor) -> Tensor:
    """Number ``[rows]`` of the largest rates `top`, descending, that are treated exactly."""
    rest = (whole - top.to(whole.dtype).cumsum(dim=-1)).clamp_(min=0.0)
    before = torch.cat([whole, rest[:, :-1]], dim=1)
    small = top <= (before * SHARE).clamp_(min=FLOOR)
    return torch.where(small.any(dim=1), small.to(torch.int8).argmax(dim=1), top.shape[1])


def _moments(rates: Tensor) -> Tensor:
    """Sums of the first four powers ``[rows, 4]``; powers of tiny rates would underflow, so they are scaled."""
    scale = 2.0**20 / rates.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(rates.dtype).tiny * 2.0**21)
    scaled = rates * scale
    powers, moments = scaled.clone(), []
    for order in range(1, 5):
        moments.append(powers.sum(dim=-1) / scale[:, 0] ** order)
        if order < 4:
            powers *= scaled
    return torch.stack(moments, dim=-1)


def _law(top: Tensor, tail: Tensor, u: Tensor, weight: Tensor) -> Tensor:
    """Law of the number of arrivals, 0 to 7, averaged over the winner's time."""
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
