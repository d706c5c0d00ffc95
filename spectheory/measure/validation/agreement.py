"""Counted against expected calls: the difference in standard deviations, and how large it may be."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.stats import norm

from spectheory.measure.validation.runs import Run

FALSE_ALARMS = 1e-3
"""A validation in which every prediction is right reports a disagreement this often at most (normal limit)."""
_CERTAIN = 1e-3
"""A smaller standard deviation is rounding: nothing is random, and counted and expected calls must be equal."""


def deviation(runs: Sequence[Run]) -> float:
    """Standard deviation of counted - expected calls: that of the calls given the texts, and that of estimates."""
    known = [run.expected for run in runs if run.expected is not None]
    return math.sqrt(sum(one.variance + one.noise for one in known))


def z_value(runs: Sequence[Run]) -> float:
    """Counted - expected calls in standard deviations; 0 or infinite where nothing is random (§7)."""
    off = sum(run.count - run.expected.calls for run in runs if run.expected is not None)
    spread = deviation(runs)
    if spread > _CERTAIN:
        return off / spread
    return 0.0 if abs(off) < 0.5 else math.copysign(math.inf, off)


def bound(comparisons: int) -> float:
    """The largest |z| of so many comparisons that is no disagreement, at :data:`FALSE_ALARMS` for all of them.

    Examples
    --------
    >>> round(bound(1), 2), round(bound(100), 2)
    (3.29, 4.42)
    """
    return float(norm.isf(FALSE_ALARMS / 2 / max(comparisons, 1)))
