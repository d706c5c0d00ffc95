"""R3 at one position, compiled: candidates judged one after another, i.i.d. (miao2024specinfer) or distinct (Sequoia).

With i.i.d. candidates the residuals p^1, p^2, ... do not depend on what is rejected: they are worked out once, step by
step, and a candidate costs two table look-ups. Distinct candidates cost O(V) per rejection.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.draws.alias import Tokens, alias, drawn
from simulations.draws.streams import Words, uniform
from simulations.models.positions import Floats, one_pair, whole_number
from spectheory.kernels.compiling import compiled, compiled_in_any_order

Counts = NDArray[np.int64]

_SMALL = 1e-290
"""Below this a draft's mass would overflow what is divided by it."""
_BLOCK = 64
"""Weights that are passed over by their sum."""


def recursive_rejection(
    target: Any, draft: Any, max_rank: int, trials: int, *, state: Words, replacement: bool = True
) -> Counts:
    r"""Count ranks and outputs of recursive rejection at one position (R3).

    Candidate m ~ q^m is accepted with probability :math:`\min(1, p^m_x/q^m_x)`; after a rejection
    :math:`p^{m+1} = \mathrm{norm}(p^m - q^m)_+`, and without replacement the token leaves q, which is renormalised, or
    uniform over the tokens not yet rejected when nothing is left of it. After `max_rank` rejections the output is drawn
    from the last residual. A rejection that leaves nothing of the target is rounding alone: it accepts.

    Draws of a trial, in order: for each candidate one uniform for the token (the first, and with replacement every one,
    from q's alias table, else by inversion) and one for the coin; after `max_rank` rejections one for the output (with
    replacement from the residual's alias table, else by inversion).

    Returns array ``[max_rank + 1, V]`` of int: entry ``[r - 1, x]`` counts trials whose candidate r was the output x;
    the last row those that accepted none. Runs add up; row sums are the rank histogram, column sums the output counts.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> recursive_rejection([0.5, 0.5], [1.0, 0.0], 1, 1000, state=words(1)).tolist()
    [[513, 0], [0, 487]]
    """
    ranks, runs = whole_number("max_rank", max_rank), whole_number("trials", trials)
    p, q = one_pair(target, draft)
    counts = np.zeros((ranks + 1, p.size), dtype=np.int64)
    table = alias(q)
    if replacement:
        left = _residuals(p, q, ranks)
        last = alias(left[ranks])
        _iid_trials(left, q, table.keep, table.other, last.keep, last.other, runs, counts, state)
    else:
        _distinct_trials(p, q, table.keep, table.other, runs, counts, state)
    return counts


def _residuals(p: Floats, q: Floats, rejections: int) -> Floats:
    """What is left of the target after 0, 1, ... rejections, each row a pmf, ``[rejections + 1, V]``."""
    rows = np.empty((rejections + 1, p.size))
    rows[0] = p
    for m in range(rejections):
        left = np.maximum(rows[m] - q, 0.0)
        mass = left.sum()
        if mass == 0:  # candidate m + 1 is accepted whatever the coin; no later row is read
            rows[m] = np.maximum(rows[m], q)
            rows[m + 1 :] = q
            break
        rows[m + 1] = left / mass
    return rows


@compiled
def _iid_trials(
    left: Floats, q: Floats, keep: Floats, other: Tokens, last_keep: Floats, last_other: Tokens,
    trials: int, counts: Counts, state: Words,
) -> None:  # fmt: skip
    most = counts.shape[0] - 1
    for _ in range(trials):
        rank, token = 0, -1
        while rank < most:
            token = drawn(keep, other, uniform(state))
            if uniform(state) * q[token] < left[rank, token]:
                break
            rank += 1
        if rank == most:
            token = drawn(last_keep, last_other, uniform(state))
        counts[rank, token] += 1


@compiled
def _distinct_trials(
    p: Floats, q: Floats, keep: Floats, other: Tokens, trials: int, counts: Counts, state: Words
) -> None:
    most = counts.shape[0] - 1
    left, rest, gone = np.empty(p.size), np.empty(p.size), np.zeros(p.size, np.bool_)
    for _ in range(trials):
        token, rank = drawn(keep, other, uniform(state)), 0
        accepted = uniform(state) * q[token] < p[token]
        mass = total = 1.0
        while not accepted:
            if rank == 0:
                left[:], rest[:] = p, q
            mass, total = _reject(left, rest, mass / total, token)
            if mass == 0.0:
                break
            gone[token] = True
            if total < _SMALL:
                total = _refilled(rest, total, gone)
            rank += 1
            if rank == most:
                token = _inverted(left, uniform(state) * mass)
                break
            token = _inverted(rest, uniform(state) * total)
            accepted = uniform(state) * (rest[token] / total) < left[token] / mass
        if rank > 0:
            gone[:] = False
        counts[rank, token] += 1


@compiled_in_any_order
def _added(a: float, b: float) -> float:
    return a + b


@compiled
def _reject(left: Floats, rest: Floats, scale: float, token: int) -> tuple[float, float]:
    """Turn p and q into (p - scale q)+ and q without the token; the masses of both. Neither is normalised."""
    mass = total = 0.0
    left[token] = rest[token] = 0.0  # it was rejected, so q had more of it than p
    for y in range(left.size):
        left[y] = max(left[y] - scale * rest[y], 0.0)
        mass = _added(mass, left[y])
        total = _added(total, rest[y])
    return mass, total


@compiled
def _refilled(rest: Floats, total: float, gone: NDArray[np.bool_]) -> float:
    """A draft with almost nothing left is scaled up; one with nothing left is uniform over what is not gone."""
    whole = 0.0
    for y in range(rest.size):
        if total > 0.0:
            rest[y] /= total
        else:
            rest[y] = 0.0 if gone[y] else 1.0
        whole += rest[y]
    return whole


@compiled
def _inverted(weights: Floats, height: float) -> int:
    """The first token at which the running sum exceeds the height; the last that has weight if rounding hides it."""
    start, running = 0, 0.0
    while start + _BLOCK < weights.size:
        block = 0.0
        for x in range(start, start + _BLOCK):
            block = _added(block, weights[x])
        if height < running + block:
            break
        running += block
        start += _BLOCK
    last = -1
    for x in range(start, weights.size):
        if weights[x] > 0.0:
            running += weights[x]
            last = x
            if height < running:
                break
    while last < 0 and start > 0:
        start -= 1
        if weights[start] > 0.0:
            last = start
    return last
