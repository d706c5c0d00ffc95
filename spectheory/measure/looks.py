"""The median of repeated measurements with a 95% interval that holds although the repeating stops when it is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from spectheory.intervals import CONFIDENCE, Interval

LOOKS = (8, 13, 20, 30, 40)
"""Numbers of measurements at which an interval may end the repeating."""
LEAST_REPEATS = 6
"""Fewer measurements give no 95% interval of the median: 2 · 2^-5 > 0.05."""


def median_at(values: Sequence[float] | NDArray[np.float64], *, last: bool) -> Interval:
    r"""Median with its 95% interval from order statistics (distribution-free, independent values; statistical).

    Of n values all intervals at the looks up to n contain the median together with a probability of at least 0.95.
    So coverage holds whichever look ends the repeating. `last` says that something other than the values ended it, such
    as the time: all that the looks before have left of the 0.05 is then spent on this interval.

    Examples
    --------
    >>> median_at(range(1, 41), last=True)
    Interval(low=13.0, best=20.5, high=28.0, kind='statistical')
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n, rank = len(ordered), rank_at(len(ordered), last=last)
    return Interval(float(ordered[rank - 1]), float(np.median(ordered)), float(ordered[n - rank]), "statistical")


@cache
def rank_at(count: int, *, last: bool) -> int:
    """Rank, from below and from above, of the ends of the interval of `count` values; 0 where there is none."""
    missed = 1 - CONFIDENCE if last else _allowed(count)
    rank = 0
    while 2 * (rank + 1) <= count and miss_rate(count, rank + 1) <= missed:
        rank += 1
    return rank


def miss_rate(count: int, rank: int) -> float:
    """Probability that the interval of that rank, or that of an earlier look, misses the median (exact).

    Of the first n values a number with the law Binomial(n, 1/2) lies below the median; the interval of rank r contains
    it if that number is in r..n - r.
    """
    law, before = np.ones(1), 0
    for n in (*(look for look in LOOKS if look < count), count):
        law = np.convolve(law, binom.pmf(np.arange(n - before + 1), n - before, 0.5))
        ends = rank if n == count else rank_at(n, last=False)
        law[:ends] = law[n - ends + 1 :] = 0.0
        before = n
    return float(1 - law.sum())


def _allowed(count: int) -> float:
    """How much of the error rate looks up to this one may spend: in proportion to the square root of the values."""
    return (1 - CONFIDENCE) * min(1.0, sqrt(count / LOOKS[-1]))
