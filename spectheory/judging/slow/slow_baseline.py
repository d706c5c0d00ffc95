"""The baseline: plain decoding itself is slower than its sizes explain."""

from __future__ import annotations

from spectheory.intervals import Interval
from spectheory.judging.slow.case import Case, Found, Reason

_SLOW = 1.5
"""Measured plain steps of more rooflines than this are slow; good servers reach 60% to 90% of the bandwidth."""


def _look(case: Case) -> Found | None:
    """A measured plain step against the roofline's."""
    if case.cost is None or case.plain_step is None:
        return None
    least = case.cost.target_step().best
    if case.plain_step < _SLOW * least:
        return None
    times = case.plain_step / least
    without = case.speedup * Interval.estimate(1 / times)
    said = (
        f"plain decoding is slow: {1e3 * case.plain_step:.2f} ms a step, {times:.1f} times the {1e3 * least:.2f} ms of "
        "reading and computing; against a plain step of that time the same calls would be a speed-up of "
        f"{without.best:.2f}x"
    )
    return Found(BASELINE.name, said, without=without)


BASELINE = Reason("slow baseline", "plain steps take longer than reading and computing do", _look)
