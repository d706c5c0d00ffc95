"""Counted against expected calls: the difference in standard deviations, and its p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import stdtrit

from spectheory.measure.validation.expected import READINGS
from spectheory.measure.validation.runs import Run
from spectheory.prediction.law import in_deviations, tail

CERTAIN = 1e-3
"""A smaller standard deviation is rounding error: nothing is random, and counted and expected calls must be equal."""
_BEYOND = 6e-7
"""Probability that the error of an estimated expectation exceeds the assumed largest error."""


def read_as_control(runs: Sequence[Run], name: str) -> list[Run]:
    """The runs with what a wrong reading of :data:`CONTROLS` expects of them; empty if they have none of that name."""
    known = [(run, getattr(run.expected, name)) for run in runs if run.expected is not None]
    return [replace(run, expected=control) for run, control in known if control is not None]


def deviation(runs: Sequence[Run]) -> float:
    """Standard deviation of counted - expected calls: of the calls given the texts, and of the estimates."""
    known = [run.expected for run in runs if run.expected is not None]
    return math.sqrt(sum(one.spread + one.noise for one in known))


def calls_off(runs: Sequence[Run]) -> float:
    """Counted minus expected calls."""
    return sum(run.count - run.expected.calls for run in runs if run.expected is not None)


def is_certain(runs: Sequence[Run]) -> bool:
    """Whether nothing is random given the texts."""
    return deviation(runs) <= CERTAIN


def z_value(runs: Sequence[Run]) -> float:
    """Counted - expected calls in standard deviations; 0 or infinite where nothing is random (§7)."""
    return in_deviations(calls_off(runs), deviation(runs), CERTAIN)


def p_value(runs: Sequence[Run]) -> float:
    """Two-sided probability of calls this far from those expected (§7; exact, or an upper estimate for estimated laws).

    Estimated: the tail of the mean law beyond its assumed largest error, plus the probability of a larger error.
    """
    known = [run.expected for run in runs if run.expected is not None]
    count, calls = sum(run.count for run in runs), sum(one.calls for one in known)
    laws, error = [(one.least, np.array(one.law)) for one in known], largest_error([one.noise for one in known])
    if error == 0:
        return tail(laws, count)
    off = calls_off(runs)
    moved = calls + math.copysign(max(abs(off) - error, 0.0), off)
    return min(1.0, tail(laws, math.ceil(moved) if off > 0 else math.floor(moved)) + _BEYOND)


def largest_error(noises: Sequence[float], beyond: float = _BEYOND) -> float:
    r"""The bound that the error of a sum of estimated expectations exceeds with probability `beyond` (Student).

    Each noise v is estimated from a few readings, with f degrees of freedom. The sum gets the mean of f and
    Satterthwaite's :math:`(\sum v)^2 / \sum (v^2 / f)`, too large by itself where a few texts have nearly all the
    noise.
    """
    total = sum(noises)
    if total == 0:
        return 0.0
    least = READINGS - 1
    freedom = (least + least * total**2 / sum(noise**2 for noise in noises)) / 2
    return float(stdtrit(freedom, 1 - beyond / 2)) * math.sqrt(total)
