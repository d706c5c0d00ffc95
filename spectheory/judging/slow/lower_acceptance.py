"""Acceptance is lower than expected."""

from __future__ import annotations

from spectheory.intervals import Interval
from spectheory.judging.slow.case import Case, Found, Reason, quotient


def _look(case: Case) -> Found | None:
    """Tokens per call are below what is expected, beyond noise (at the false-alarm rate of `compare`)."""
    if case.difference is None:
        return None
    tokens = case.difference.tokens
    if not (case.difference.differs(tokens) and tokens.difference.best < 0):
        return None
    expected = Interval(*(case.tokens.best - end for end in _ends(tokens.difference)), "statistical")
    without = case.speedup * quotient(expected, Interval.exact(case.tokens.best))
    said = (
        f"acceptance is lower than expected: {tokens.other:.2f} tokens per call counted, {tokens.one:.2f} expected"
        f" (p = {tokens.p:.2g})"
    )
    return Found(LOWER.name, said, without=without)


def _ends(change: Interval) -> tuple[float, float, float]:
    return change.high, change.best, change.low


LOWER = Reason("lower acceptance", "tokens per call are below what is expected, beyond noise", _look)
