"""k-SEQ at one position, compiled: i.i.d. candidates, each judged against a target scaled down (R5; sun2023spectr)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.draws.alias import Tokens, alias, drawn
from simulations.draws.streams import Words, uniform
from simulations.models.chains import checked_stream
from simulations.models.positions import Floats, one_pair, whole_number
from spectheory.kernels.compiling import compiled

Counts = NDArray[np.int64]

HALVINGS = 60
"""Of the bracket of rho: down to the spacing of the floats."""


def kseq(target: Any, draft: Any, k: int, trials: int, *, state: Words) -> Counts:
    r"""Count ranks and outputs of k-SEQ (R5; ``sun2023spectr``).

    Candidates are i.i.d. from q, each accepted with probability :math:`\min(1, p_x/(\rho q_x))` until one is; if none
    of k is, the output is drawn from :math:`\mathrm{norm}(p - \rho q)_+`. The factor rho is the one in [1, k] at which
    what all candidates leave, :math:`(1-\beta)^k` with :math:`1-\beta = \sum_x (q_x - p_x/\rho)_+`, is what is to be
    recovered, :math:`\sum_x (p_x - \rho q_x)_+`: the algorithm itself solves for it, here by bisection.

    Draws of a trial: for each candidate one uniform for the token (alias table) and one for the coin; after k
    rejections one for the output.

    Returns array ``[k + 1, V]`` of int: entry ``[r - 1, x]`` counts trials whose candidate r was the output x; the last
    row those that accepted none.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> kseq([0.5, 0.5], [1.0, 0.0], 1, 1000, state=words(1)).tolist()
    [[513, 0], [0, 487]]
    """
    candidates, runs = whole_number("k", k), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    rho = _factor(p, q, candidates)
    left = np.maximum(p - rho * q, 0.0)
    counts = np.zeros((candidates + 1, p.size), dtype=np.int64)
    some = bool(left.any())
    _trials(p, rho * q, *alias(q), *alias(left if some else p), some, runs, counts, checked_stream(state))
    return counts


def _factor(p: Floats, q: Floats, k: int) -> float:
    """The least rho that leaves candidates enough to reject, up to one rounding."""
    low, high = 1.0, float(k)
    for _ in range(HALVINGS):
        rho = (low + high) / 2
        rejected, recovered = np.maximum(q - p / rho, 0.0).sum(), np.maximum(p - rho * q, 0.0).sum()
        low, high = (rho, high) if rejected**k < recovered else (low, rho)
    return high


@compiled
def _trials(
    p: Floats, scaled: Floats, keep: Floats, other: Tokens, left_keep: Floats, left_other: Tokens, some: bool,
    trials: int, counts: Counts, state: Words,
) -> None:  # fmt: skip
    k = counts.shape[0] - 1
    for _ in range(trials):
        rank, token = 0, -1
        while rank < k:
            token = drawn(keep, other, uniform(state))
            if uniform(state) * scaled[token] < p[token]:
                break
            rank += 1
        if rank == k and not some:  # nothing is left to recover: rounding alone rejected the last one
            rank = k - 1
        elif rank == k:
            token = drawn(left_keep, left_other, uniform(state))
        counts[rank, token] += 1
