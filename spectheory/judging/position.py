"""Acceptance at position 1 of two runs: whether they differ beyond noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr

from spectheory.checks import instance
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters
from spectheory.trace.pooled import pooled

FALSE_ALARM = 0.01
"""Share of comparisons of equal acceptances that are said to differ, if calls are independent."""


@dataclass(frozen=True)
class Comparison:
    """Shares of calls that accepted their first draft in two runs, and the deviations between them."""

    one: float
    other: float
    z: float

    @property
    def differ(self) -> bool:
        """Whether they differ beyond noise (two-sided, at :data:`FALSE_ALARM` for independent calls)."""
        return 2 * float(ndtr(-abs(self.z))) < FALSE_ALARM

    def sentence(self, names: tuple[str, str]) -> str:
        """The comparison in words."""
        verdict = (
            "beyond the noise of independent calls: expected of other k or other texts, as calls start elsewhere"
            if self.differ
            else "within noise"
        )
        shown = f"{self.one:.3f} in {names[0]}, {self.other:.3f} in {names[1]}"
        return f"Acceptance at position 1: {shown} ({self.z:+.1f} deviations), {verdict}."


def compare(one: Counters | CallLog, other: Counters | CallLog) -> Comparison | None:
    """Compare the acceptance at position 1 of two runs: their difference in deviations of the pooled share.

    None without calls and counts by position.

    Examples
    --------
    >>> found = compare(Counters(calls=400, survival=(0.8,)), Counters(calls=400, survival=(0.7, 0.5)))
    >>> round(found.z, 2), found.differ
    (3.27, True)
    """
    one, other = _counts(one), _counts(other)
    if not (one.calls and other.calls and one.survival and other.survival):
        return None
    shares = one.survival[0], other.survival[0]
    mean = (shares[0] * one.calls + shares[1] * other.calls) / (one.calls + other.calls)
    deviation = math.sqrt(mean * (1 - mean) * (1 / one.calls + 1 / other.calls))
    return Comparison(*shares, z=(shares[0] - shares[1]) / deviation if deviation else 0.0)


def _counts(run: Counters | CallLog) -> Counters:
    found = pooled(run) if isinstance(run, CallLog) else run
    return instance("a run", found, Counters, remedy="read_evidence reads one")
