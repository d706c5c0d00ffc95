"""Acceptance that decays along the text: a draft that loses its context."""

from __future__ import annotations

import numpy as np

from spectheory.judging.causes.base import Cause, Context, Finding
from spectheory.judging.standing import FALSE_ALARMS
from spectheory.judging.starts import Calls, Floats

LEAST = 3.0
"""Deviations of the score test; its p-value alone is also 0 where a rule excludes a single call."""
MILDER = 0.5
"""The loss per call in the first third of the texts is less than this times that in the last third."""


def explains(context: Context) -> Finding | None:
    """The score test of a trend finds one, and early calls lose little of what late calls lose."""
    calls = context.calls
    if calls is None:
        return None
    for one in context.refuted:
        survival = context.survival(one.rule)
        p, z = calls.trend(survival)
        early, late = _losses(calls, survival)
        if p < FALSE_ALARMS and z < -LEAST and late > 0 and abs(early) < MILDER * late:
            sentence = (
                f"acceptance decays along the text: {early:.2f} accepted tokens fewer than expected per call in "
                f"the first third, {late:.2f} in the last (score test z = {z:.1f}): look at the context of the draft"
            )
            return Finding(DECAY.name, sentence, one.rule, {"z": z, "p": p, "early": early, "late": late})
    return None


def _losses(calls: Calls, survival: Floats) -> tuple[float, float]:
    """Expected less counted accepted tokens per call in the first and the last third of the texts."""
    lost = calls.means(survival) - calls.accepted
    place = calls.positions / (calls.positions + calls.left)
    thirds = lost[place < 1 / 3], lost[place >= 2 / 3]
    early, late = (float(np.mean(third)) if len(third) else 0.0 for third in thirds)
    return early, late


DECAY = Cause("decay with context", "acceptance falls with the position in the text", explains)
