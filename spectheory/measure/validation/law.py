r"""The law of the number of calls of a text, given the text, and the tails of sums of such numbers.

Calls are independent given the text (§7). With n tokens present, the number of remaining calls has the law
:math:`L_n(t) = \sum_i P(\tau = i \mid n)\, L_{n+i+1}(t - 1)`, and is 0 at the end of the text. Mean and variance are
those of the path theorem; the tails need no normal approximation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NEGLIGIBLE = 1e-15
"""Smaller entries at the ends of a law are dropped; even 1000 of them are far below any false-alarm rate."""


def law_of_calls(survival: Floats) -> Floats:
    """P(calls = t), t = 0..N, of one text (exact), from P(tau >= i) ``[N, depth]`` of a call that starts at each
    position.
    """
    tokens, depth = survival.shape
    laws = np.zeros((tokens + 1, tokens + 1))
    laws[tokens, 0] = 1.0
    for start in range(tokens - 1, -1, -1):
        deepest = min(depth, tokens - start - 1)
        reached = np.concatenate([[1.0], survival[start, :deepest], [0.0]])
        moves = reached[:-1] - reached[1:]
        laws[start, 1:] = moves @ laws[start + 1 : start + deepest + 2, :-1]
    return laws[0]


def trimmed(law: Floats) -> tuple[int, Floats]:
    """The first index of a law that is not negligible, and the entries from there to the last such one."""
    (kept,) = (law > NEGLIGIBLE).nonzero()
    return int(kept[0]), law[kept[0] : kept[-1] + 1]


def tail(laws: Sequence[tuple[int, Floats]], count: int) -> float:
    """Two-sided tail of a sum of independent counts: twice the smaller of P(sum <= count) and P(sum >= count).

    It is below a false-alarm rate with at most that probability, for any law.

    Examples
    --------
    >>> coin = (0, np.array([0.5, 0.5]))
    >>> tail([coin, coin], 0), tail([coin, coin], 1), tail([coin, coin], 3)
    (0.5, 1.0, 0.0)
    """
    first, total = 0, np.ones(1)
    for start, law in laws:
        first, total = first + start, np.convolve(total, law)
    place = count - first
    low, high = float(total[: max(place + 1, 0)].sum()), float(total[max(place, 0) :].sum())
    return min(1.0, 2 * min(low, high))
