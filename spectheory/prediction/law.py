r"""The law of what a text's calls add up to, given the text, and the tails of sums of such numbers.

Calls are independent given the text (§7). With n tokens present, the number of remaining calls has the law
:math:`L_n(t) = \sum_i P(\tau = i \mid n)\, L_{n+i+1}(t - 1)`, and is 0 at the end of the text. Mean and variance are
those of the path theorem; the tails need no normal approximation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Floats

NEGLIGIBLE = 1e-15
"""Smaller entries at the ends of a law are dropped; even 1000 of them are far below any false-alarm rate."""
_TOGETHER = 64
"""Texts whose laws are worked out at a time, which bounds memory."""


def law_of_calls(survival: Floats) -> Floats:
    """P(calls = t), t = 0..N, of one text (exact), from P(tau >= i) ``[N, depth]`` of a call that starts at each
    position.
    """
    tokens, depth = survival.shape
    inside = np.where(np.arange(1, depth + 1) < tokens - np.arange(tokens)[:, None], survival, 0.0)
    return law_of_count(moves_of(inside), np.ones(depth + 1, bool), np.array([tokens]))[0]


def law_of_count(moves: Floats, counted: NDArray[np.bool_], lengths: NDArray[np.int64]) -> Floats:
    """P(count = t), t = 0..T, of a count over the calls of each text, ``[texts, T + 1]``, T the largest one (exact).

    `moves` ``[N, depth + 1]`` is P(tau = i) of a call from each position, i = 0..depth (:func:`moves_of`); what they
    say past the end of a text counts here, so the caller decides it. `counted` ``[..., depth + 1]`` says whether a call
    with 0, 1, ... accepted tokens adds one, wherever it starts or (``[N, depth + 1]``) by its start.
    """
    stays, adds, longest = *_parts(moves, counted, lengths), int(max(lengths))
    steps = np.flatnonzero(adds.any(axis=0))
    most = -(-longest // (int(steps[0]) + 1)) if len(steps) else 0
    law, ends, outcomes = np.zeros((len(lengths), most + 1)), np.cumsum(lengths), adds.shape[1]
    law[:, 0] = 1.0
    for texts in (slice(at, at + _TOGETHER) for at in range(0, len(lengths), _TOGETHER)):
        # The laws with one token fewer to go, two fewer, ... stand in a row, which moves back when it is full.
        ahead, first = np.repeat(law[texts, None], 2 * outcomes, axis=1), outcomes
        for left in range(1, int(max(lengths[texts])) + 1):
            if first == 0:
                ahead[:, outcomes:], first = ahead[:, :outcomes].copy(), outcomes
            rows = np.maximum(ends[texts] - left, 0)  # a text that is shorter than this has its law already
            later = ahead[:, first : first + outcomes]
            new = (stays[rows][:, None] @ later)[:, 0]
            new[:, 1:] += (adds[rows][:, None] @ later)[:, 0, :-1]
            first -= 1
            ahead[:, first] = new
            law[texts][lengths[texts] == left] = new[lengths[texts] == left]
    return law


def log_moment(moves: Floats, counted: NDArray[np.bool_], lengths: NDArray[np.int64], tilt: float) -> Floats:
    """Log E exp(t count) of each text, ``[texts]`` (exact); arguments as in :func:`law_of_count`.

    A count that has a far smaller chance than any false-alarm rate needs no law: P(sum >= c) is at most
    exp(sum of these - t c) for t > 0, and P(sum <= c) for t < 0 (Chernoff).
    """
    stays, adds = _parts(moves, counted, lengths)
    weights, ends, longest = stays + math.exp(tilt) * adds, np.cumsum(lengths), int(max(lengths))
    ahead = np.ones((len(lengths), longest + weights.shape[1]))
    for left in range(1, longest + 1):
        later = ahead[:, longest - left + 1 :][:, : weights.shape[1]]
        ahead[:, longest - left] = np.vecdot(weights[np.maximum(ends - left, 0)], later)
    return np.asarray(np.log(ahead[np.arange(len(lengths)), longest - lengths]))


def _parts(moves: Floats, counted: NDArray[np.bool_], lengths: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """P(tau = i) of calls that are not counted, and of those that are; one entry holds all that lead past the end."""
    adds, first = np.where(counted, moves, 0.0), np.arange(min(moves.shape[1], int(max(lengths)) + 1))
    return np.add.reduceat(moves - adds, first, axis=1), np.add.reduceat(adds, first, axis=1)


def moves_of(survival: Floats) -> Floats:
    """P(tau = i), i = 0..depth, from P(tau >= i), i = 1..depth, along the last axis."""
    return -np.diff(survival, axis=-1, prepend=1.0, append=0.0)


def trimmed(law: Floats) -> tuple[int, Floats]:
    """The first index of a law that is not negligible, and the entries from there to the last such one."""
    (kept,) = (law > NEGLIGIBLE).nonzero()
    return int(kept[0]), law[kept[0] : kept[-1] + 1]


def tails(laws: Sequence[tuple[int, Floats]], count: int) -> tuple[float, float]:
    """P(sum <= count) and P(sum >= count) of a sum of independent counts."""
    first, total = 0, np.ones(1)
    for start, law in laws:
        dropped, total = trimmed(np.convolve(total, law))
        first += start + dropped
    place = count - first
    return float(total[: max(place + 1, 0)].sum()), float(total[max(place, 0) :].sum())


def tail(laws: Sequence[tuple[int, Floats]], count: int) -> float:
    """Two-sided tail of a sum of independent counts: twice the smaller of P(sum <= count) and P(sum >= count).

    It is below a false-alarm rate with at most that probability, for any law.

    Examples
    --------
    >>> coin = (0, np.array([0.5, 0.5]))
    >>> tail([coin, coin], 0), tail([coin, coin], 1), tail([coin, coin], 3)
    (0.5, 1.0, 0.0)
    """
    return min(1.0, 2 * min(tails(laws, count)))


def in_deviations(off: float, deviation: float, certain: float = 0.0) -> float:
    """A difference of counts in standard deviations; up to `certain` nothing is random, and it is 0 or infinite."""
    if deviation > certain:
        return off / deviation
    return 0.0 if abs(off) < 0.5 else math.copysign(math.inf, off)
