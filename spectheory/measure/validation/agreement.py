"""Counted against expected calls: the difference in standard deviations, and how often chance gives such a one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm

from spectheory.measure.validation.law import tail
from spectheory.measure.validation.runs import Run

FALSE_ALARMS = 1e-3
"""A validation in which every expectation is right reports a disagreement this often at most."""
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


def p_value(runs: Sequence[Run]) -> float:
    """How often chance gives calls so far from those expected (§7; exact, of estimates in the normal limit)."""
    known = [run.expected for run in runs if run.expected is not None]
    if any(one.noise > 0 for one in known):
        return float(2 * norm.sf(abs(z_value(runs))))
    return tail([(one.least, np.array(one.law)) for one in known], sum(run.count for run in runs))
