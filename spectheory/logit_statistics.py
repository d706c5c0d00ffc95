"""D1 and D2 of a pair, computed directly from two rows of logits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory import kernels
from spectheory.distributions import Array, Sampling, as_floats, same_library
from spectheory.errors import ShapeError

NEAR = 1 / 32
"""Largest |log p/q| with a KL term from its series; for larger ones cancellation costs less than 12 bits."""

APART = 16.0
"""Distance of the rows' largest logits from which these are subtracted before log p/q is computed."""

_SERIES_TERMS = 9
"""Terms of exp(-z) - 1 + z on |z| < 1/32; the first one left out is below 1e-17 of the sum."""


@dataclass(frozen=True)
class _PairStatistics:
    r"""Six sums over the vocabulary, each ``[...]``, in nats (D1, D2).

    In order: :math:`\tfrac12\sum|p-q|`; :math:`\sum p\log(p/q)` (inf where the draft cuts a token of the target);
    :math:`-\sum p\log p`; :math:`\sum p\log^2 p`; :math:`-\sum p\log q`; :math:`\sum 2pq/(p+q)`.
    """

    total_variation: Array
    kl: Array
    target_entropy: Array
    target_second_moment: Array
    cross_entropy: Array
    harmonic_similarity: Array


def pair_statistics(target_logits: Any, draft_logits: Any) -> _PairStatistics:
    """TV, KL, H(p), M2(p), cross entropy and S_HM of p, q = softmax of the logits, ``[..., V]`` to ``[...]`` (exact).

    Logits are -inf where a token is cut. Sums are in double precision. KL is summed as p log(p/q) - p + q, whose terms
    are never negative, with log(p/q) from the difference of the logits, so nearly equal rows lose no digits.

    Examples
    --------
    >>> import numpy as np
    >>> statistics = pair_statistics(np.log([0.5, 0.5]), np.log([0.25, 0.75]))
    >>> round(float(statistics.kl), 6), round(float(statistics.cross_entropy), 6)
    (0.143841, 0.836988)
    """
    target, draft = (
        as_floats(target_logits, "target_logits", ShapeError),
        as_floats(draft_logits, "draft_logits", ShapeError),
    )
    xp = same_library(target, draft)
    _check_shapes(target, draft)
    if kernels.usable(target, draft, dtypes=(np.float64, np.float32)):
        return _compiled(target, draft)
    return _by_arrays(xp.astype(target, xp.float64), xp.astype(draft, xp.float64), xp)


def _check_shapes(target: Array, draft: Array) -> None:
    try:
        np.broadcast_shapes(tuple(target.shape[:-1]), tuple(draft.shape[:-1]))
        fits = min(target.ndim, draft.ndim) > 0 and target.shape[-1] == draft.shape[-1] > 0
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"target is {tuple(target.shape)} and draft {tuple(draft.shape)}",
            limit="one vocabulary of at least one token, leading dimensions that agree or are 1",
            remedy="cut both to the common ids",
        )


def _compiled(target: Array, draft: Array) -> _PairStatistics:
    from spectheory.kernels.logits import sums_of_logits

    sums = np.empty((*np.broadcast_shapes(target.shape[:-1], draft.shape[:-1]), 6))
    for at, (p, q) in kernels.rows(target, draft):
        best_p, best_q = float(p.max()), float(q.max())
        if not (math.isfinite(best_p) and math.isfinite(best_q)):
            for logits in (target, draft):
                Sampling().log_pmf(logits)  # raises an error that names the row
        sums[at] = sums_of_logits(p, q, best_p, best_q)
    return _PairStatistics(*(sums[..., i][()] for i in range(6)))


def _by_arrays(target: Array, draft: Array, xp: Any) -> _PairStatistics:
    log_p, log_q = Sampling().log_pmf(target), Sampling().log_pmf(draft)
    p, q = xp.exp(log_p), xp.exp(log_q)
    zero = 0 * p * q
    log_p, log_q, z = (xp.where(p > 0, x, zero) for x in (log_p, log_q, _log_ratio(target, draft, xp)))
    near = xp.abs(z) < NEAR
    z_near, series = xp.where(near, z, zero), zero
    for n in range(_SERIES_TERMS, 1, -1):
        series = (-1) ** n / math.factorial(n) + z_near * series
    with np.errstate(invalid="ignore"):  # 0 * inf where p = 0 is not used
        far = xp.where(p > 0, p * z - p, zero) + q
        cross = xp.where(p > 0, -p * log_q, zero)
    kl = xp.where(near & (p > 0), p * z_near * z_near * series, far)
    both = p + q
    harmonic = 2 * p * q / xp.where(both > 0, both, zero + 1)
    terms = (xp.abs(p - q) / 2, kl, zero - p * log_p, zero + p * log_p**2, cross, harmonic)
    return _PairStatistics(*(xp.sum(x, axis=-1) for x in terms))


def _log_ratio(target: Array, draft: Array, xp: Any) -> Array:
    """log(p/q) from the difference of the logits: exact where they are close, unless the rows are far apart."""
    best_p, best_q = xp.max(target, axis=-1, keepdims=True), xp.max(draft, axis=-1, keepdims=True)
    sum_p, sum_q = (xp.sum(xp.exp(x - b), axis=-1, keepdims=True) for x, b in ((target, best_p), (draft, best_q)))
    far = xp.abs(best_p - best_q) >= APART
    off_p, off_q = xp.where(far, best_p, 0 * best_p), xp.where(far, best_q, 0 * best_q)
    shift = (best_p - off_p) - (best_q - off_q) + (xp.log(sum_p) - xp.log(sum_q))
    with np.errstate(invalid="ignore"):  # tokens cut by both are not used
        return ((target - off_p) - (draft - off_q)) - shift
