"""Tokens per call and speed-up where drafts are accepted independently at one rate (C1)."""

from __future__ import annotations

import math

from proofs_check.statement.arithmetic import Real


def tokens(alpha: Real, k: int) -> Real:
    """The sum of alpha^i, i = 0..k: expected tokens per call."""
    return sum(math.prod([alpha] * i) for i in range(k + 1))


def speedup(alpha: Real, k: int, c: Real) -> Real:
    """Tokens per call over the time of a call, in target steps."""
    return tokens(alpha, k) / (k * c + 1)
