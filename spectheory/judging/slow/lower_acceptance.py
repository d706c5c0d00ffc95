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
    change, counted = tokens.difference, case.tokens.best
    expected = Interval(counted - change.high, counted - change.best, counted - change.low, "statistical")
    without = case.speedup * quotient(expected, Interval.exact(counted))
    said = (
        f"acceptance is lower than expected: {tokens.other:.2f} tokens per call counted, {tokens.one:.2f} expected"
        f" (p = {tokens.p:.2g})"
    )
    return Found(LOWER.name, said, without=without)


LOWER = Reason("lower acceptance", "tokens per call are below what is expected, beyond noise", _look)
