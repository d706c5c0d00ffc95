"""What counts would have shown: the smallest loss of acceptance, computed under that very loss (§13)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from spectheory.judging.expected import Expected
from spectheory.judging.output import POWER
from spectheory.judging.standing import FALSE_ALARMS, Standing

STEPS = 12
"""Halvings of the interval that holds the loss: to 1/4096."""


def smallest_loss(expected: Expected, one: Standing) -> float | None:
    """The smallest share d for which an engine that accepts each draft with 1 - d times the rule's probability would
    be refuted with probability :data:`~spectheory.judging.output.POWER`; None if these texts would show no loss.

    An estimate that is rather too large: the calls of the whole texts alone decide, their number under the loss is
    taken as normal, and the rule's p-value is Chernoff's bound.
    """

    def shown(loss: float) -> bool:
        depth = np.arange(1, expected.survival.shape[1] + 1)
        other = replace(expected, survival=expected.survival * (1 - loss) ** depth, undecided=None)
        mean, variance = (float(sums[:, 0].sum()) for sums in (other.high.expected, other.high.covariance[:, 0]))
        calls = math.floor(mean - ndtri(POWER) * math.sqrt(max(variance, 0.0)))
        if one.calls.deviation == 0:
            return calls > one.calls.high
        return expected.more_calls(calls) < FALSE_ALARMS / (len(one.every) + 1)

    if not shown(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high
