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
_FAR = 5.0
"""The error of an estimated expectation is larger, in standard deviations, in 6e-7 of all runs."""


def deviation(runs: Sequence[Run]) -> float:
    """Standard deviation of counted - expected calls: that of the calls given the texts, and that of estimates."""
    known = [run.expected for run in runs if run.expected is not None]
    return math.sqrt(sum(one.spread + one.noise for one in known))


def calls_off(runs: Sequence[Run]) -> float:
    """Counted less expected calls."""
    return sum(run.count - run.expected.calls for run in runs if run.expected is not None)


def is_certain(runs: Sequence[Run]) -> bool:
    """Whether nothing is random given the texts."""
    return deviation(runs) <= _CERTAIN


def z_value(runs: Sequence[Run]) -> float:
    """Counted - expected calls in standard deviations; 0 or infinite where nothing is random (§7)."""
    off = calls_off(runs)
    if not is_certain(runs):
        return off / deviation(runs)
    return 0.0 if abs(off) < 0.5 else math.copysign(math.inf, off)


def p_value(runs: Sequence[Run]) -> float:
    """How often chance gives calls so far from those expected (§7; exact, of estimated laws an upper estimate).

    Of estimated laws it is the tail of the mean law, with the count moved towards the expectation by five standard
    deviations of that mean's error, plus how often the error is larger (in its normal limit).
    """
    known = [run.expected for run in runs if run.expected is not None]
    count, calls = sum(run.count for run in runs), sum(one.calls for one in known)
    laws, noise = [(one.least, np.array(one.law)) for one in known], sum(one.noise for one in known)
    if noise == 0:
        return tail(laws, count)
    off = calls_off(runs)
    moved = calls + math.copysign(max(abs(off) - _FAR * math.sqrt(noise), 0.0), off)
    return min(1.0, tail(laws, math.ceil(moved) if off > 0 else math.floor(moved)) + float(2 * norm.sf(_FAR)))
