"""Certified means over a mixture of geometric laws: what the rank of the Poisson race is (R1), however heavy its tail.

The mean rank of a real pair may be beyond 1e20, so ranks are not added one by one. They are taken in blocks that grow
with the rank, and both functions averaged here, log r and the surprisal -log P(R = r) of a log-convex law, are concave:
in a block of known mass and mean rank the average lies between the chord and Jensen's bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import real
from spectheory.intervals import Interval
from spectheory.verification.merged_odds import merged

Floats = NDArray[np.float64]

_ENTRIES = 1 << 18
"""Entries of one array at a time."""
_CHUNK = 256
"""Blocks after which the rest is looked at."""
_LAST_RANK = 1e307
"""Blocks end there; what is beyond is bounded as it is."""
_MOST_BLOCKS = 1 << 20
"""Blocks after which the rest is bounded as it is, however wide."""


def tolerance_in_nats(tolerance: float) -> float:
    """The width asked of an interval as a float."""
    inside = "must be in [1e-11, 1] nats"
    return real("tolerance", tolerance, lambda nats: 1e-11 <= nats <= 1, limit=inside, remedy="1e-6 is usual")


@dataclass(frozen=True)
class GeometricMixture:
    r"""The law :math:`P(R=r) = \sum_x p_x g_x^{r-1}/(1+g_x)^r`, r = 1, 2, ..., of `weights` p and `odds` g >= 0."""

    weights: Floats
    odds: Floats

    def mean_of(self, what: Literal["log rank", "surprisal"], tolerance: float) -> Interval:
        """E log R, or the entropy E[-log P(R)], nats: certain up to rounding; at most `tolerance` wide below a million
        blocks.
        """
        tolerance = tolerance_in_nats(tolerance)
        if not np.any(self.odds > 0):
            return Interval.exact(0.0)
        growth = 4 * tolerance**0.5
        while True:
            # Cells a quarter as wide as blocks lose less than these.
            lower, upper = (GeometricMixture(*atoms) for atoms in merged(self.weights, self.odds, growth / 4))
            low, high, blocks = lower._sum(what, growth, tolerance)
            if lower.odds is not upper.odds:
                _, high, blocks = upper._sum(what, growth, tolerance)
            if high - low <= tolerance or blocks >= _MOST_BLOCKS:
                # In a short block the chord misses twice what Jensen's bound does, as do a cell's ends beside its mean.
                return Interval(low, low + (high - low) * 2 / 3, high, "bound")
            growth /= 2

    def _sum(self, what: str, growth: float, tolerance: float) -> tuple[float, float, int]:
        """Lower and upper sum over blocks whose ends grow by `growth`, and their number."""
        low = high = 0.0
        blocks = 0
        for start, length in _blocks(growth, min(_CHUNK, max(1, _ENTRIES // self.odds.size))):
            below, above = self._bounds(what, start, length)
            low, high, blocks = low + float(below.sum()), high + float(above.sum()), blocks + start.size
            rest = self._bounds(what, start[-1:] + length[-1:], np.array([np.inf]))
            narrow = rest[1][0] - rest[0][0] <= tolerance / 4
            if narrow or blocks >= _MOST_BLOCKS or start[-1] >= _LAST_RANK:
                return low + float(rest[0][0]), high + float(rest[1][0]), blocks
        raise AssertionError("the blocks have no end")

    def _bounds(self, what: str, start: Floats, length: Floats) -> tuple[Floats, Floats]:
        """Chord and Jensen sums ``[B]`` of blocks of ranks start, ..., start + length - 1; a length may be infinite."""
        mass, offset = self._moments(start, length)

        def value(at: Floats) -> Floats:
            return np.log(at) if what == "log rank" else -self._log_pmf(at)

        jensen = value(start + offset)
        # An endless block has no far end: the function grows, so it is at least what it is at the start.
        far = np.where(np.isinf(length), start, start + length - 1)
        first = value(start)
        chord = first + (value(far) - first) * np.where(length > 1, offset / np.maximum(length - 1, 1), 0.0)
        single = length == 1
        return mass * np.where(single, first, np.minimum(chord, jensen)), mass * np.where(single, first, jensen)

    def _moments(self, start: Floats, length: Floats) -> tuple[Floats, Floats]:
        """Mass of each block, and the mean of R - start in it."""
        first, rate, odds = self._going(start)
        shares = first * -np.expm1(-length[:, None] * rate)
        endless = np.isinf(length)[:, None]
        bounded = np.where(endless, 1.0, length[:, None])
        within = np.where(endless, odds, mean_offset(rate, bounded))
        # R = 1 for sure where the odds are 0.
        mass = shares.sum(axis=1) + np.where(start == 1, self._certain, 0.0)
        return mass, (shares * within).sum(axis=1) / np.where(mass > 0, mass, 1.0)

    def _log_pmf(self, at: Floats) -> Floats:
        """Log of the law at ranks ``[B]``, real ones too; 0 where it is below the floats, and so is its weight."""
        first, _, odds = self._going(at)
        pmf = (first / (1 + odds)).sum(axis=1) + np.where(at == 1, self._certain, 0.0)
        return np.log(np.where(pmf > 0, pmf, 1.0))

    def _going(self, rank: Floats) -> tuple[Floats, Floats, Floats]:
        """P(X = x, R >= rank) ``[B, n]``, rates log(1 + 1/g) and odds ``[n]`` of the x with positive odds."""
        odds = self.odds[self.odds > 0]
        # log(1 + 1/g), without the quotient where it may be beyond the floats
        rate = np.log1p(np.minimum(odds, 1 / np.maximum(odds, 1.0))) - np.log(np.minimum(odds, 1.0))
        return self.weights[self.odds > 0] * np.exp(-(rank[:, None] - 1) * rate), rate, odds

    @property
    def _certain(self) -> float:
        return float(self.weights[self.odds == 0].sum())


def _blocks(growth: float, count: int) -> Iterator[tuple[Floats, Floats]]:
    """Starts and lengths of the blocks 1, 2, ... whose ends grow by the factor 1 + growth, `count` at a time."""
    at = 1.0
    while True:
        starts = np.empty(count + 1)
        for i in range(count + 1):
            starts[i] = at
            if i < count:
                at = min(max(at + 1, math.floor(at * (1 + growth))), _LAST_RANK)
        yield starts[:-1], np.diff(starts)


def mean_offset(rate: Floats, length: Floats) -> Floats:
    """Mean of j = 0, 1, ..., length - 1 under weights exp(-rate j), entrywise."""
    return _bent(rate) - length * _bent(length * rate)


def _bent(u: Floats) -> Floats:
    """1/(e^u - 1) - 1/u, which is -1/2 + u/12 - u^3/720 + ... near 0."""
    near = u < 0.02
    small = np.where(near, u, 0.0)
    series = -0.5 + small * (1 / 12 - small**2 * (1 / 720 - small**2 / 30240))
    far = np.where(near, 1.0, u)
    with np.errstate(over="ignore"):
        return np.where(near, series, 1 / np.expm1(far) - 1 / far)
