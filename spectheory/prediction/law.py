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

Floats = NDArray[np.float64]
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
    return laws_of_counts(inside, np.ones((depth + 1, 1), bool), np.array([tokens]))[0, 0]


def laws_of_counts(survival: Floats, counted: NDArray[np.bool_], lengths: NDArray[np.int64]) -> Floats:
    """P(count = t), t = 0..T, of several counts of each text, ``[texts, counts, T + 1]``, T the longest text (exact).

    `survival` ``[N, depth]`` as in :mod:`spectheory.prediction.paths`; entries past the end of a text count here, so
    the caller decides them. `counted` ``[..., depth + 1, counts]`` says whether a call with 0, 1, ... accepted tokens
    adds one to a count, wherever it starts or (``[N, depth + 1, counts]``) by its start.
    """
    whole = np.broadcast_to(counted, (len(survival), *counted.shape[-2:]))
    moves, ends, longest = moves_of(survival), np.cumsum(lengths), int(max(lengths))
    parts = [
        _laws(moves, whole, ends[at : at + _TOGETHER], lengths[at : at + _TOGETHER], longest)
        for at in range(0, len(lengths), _TOGETHER)
    ]
    return np.concatenate(parts)


def log_moments(survival: Floats, counted: NDArray[np.bool_], lengths: NDArray[np.int64], tilts: Floats) -> Floats:
    """Log E exp(t count) of each text and count, ``[texts, counts]``, for an exponent t of each count (exact).

    Arguments as in :func:`laws_of_counts`. A count that has a far smaller chance than any false-alarm rate needs no
    law: P(sum >= c) is at most exp(sum of these - t c) for t > 0, and P(sum <= c) for t < 0 (Chernoff).
    """
    whole = np.broadcast_to(counted, (len(survival), *counted.shape[-2:]))
    moves, ends = moves_of(survival), np.cumsum(lengths)
    moments = np.ones((len(lengths), len(tilts)))
    ahead = [moments.copy()] * whole.shape[1]
    for left in range(1, int(max(lengths)) + 1):
        rows = np.maximum(ends - left, 0)
        weights = moves[rows][:, :, None] * np.where(whole[rows], np.exp(tilts), 1.0)
        new = np.zeros_like(moments)
        for each, later in enumerate(ahead):
            new += weights[:, each] * later
        ahead = [new, *ahead[:-1]]
        moments[lengths == left] = new[lengths == left]
    return np.asarray(np.log(moments))


def moves_of(survival: Floats) -> Floats:
    """P(tau = i), i = 0..depth, from P(tau >= i), i = 1..depth, along the last axis."""
    return -np.diff(survival, axis=-1, prepend=1.0, append=0.0)


def _laws(
    moves: Floats, counted: NDArray[np.bool_], ends: NDArray[np.int64], lengths: NDArray[np.int64], longest: int
) -> Floats:
    """The laws of some texts, all read backwards from their ends; the laws of the next starts are kept."""
    outcomes, counts = counted.shape[1:]
    always = bool(counted.all())
    done = np.zeros((len(lengths), counts, longest + 1))
    done[:, :, 0] = 1.0
    laws, ahead = done.copy(), [done] * outcomes
    for left in range(1, longest + 1):
        rows = np.maximum(ends - left, 0)  # a text that is shorter than this has its law already
        adds = moves[rows][:, :, None] * counted[rows]
        stays = moves[rows][:, :, None] - adds
        new = np.zeros_like(done)
        for each, law in enumerate(ahead):
            new[:, :, 1 : left + 1] += adds[:, each, :, None] * law[:, :, :left]
            if not always:
                new[:, :, :left] += stays[:, each, :, None] * law[:, :, :left]
        ahead = [new, *ahead[:-1]]
        laws[lengths == left] = new[lengths == left]
    return laws


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
