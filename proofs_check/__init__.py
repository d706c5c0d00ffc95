"""The evidence for every statement, and a bench to try a new one: write a claim, get a proof or a counterexample.

A claim is written with the functions here in place of ``max``, ``min``, ``abs`` and ``math.log``, so that it can be
judged in fractions, by intervals, by a solver and by a search.
"""

from __future__ import annotations

from proofs_check.run.trial import Trial, try_claim
from proofs_check.statement.arithmetic import absolute, every, exp, is_zero, larger, log, positive_part, smaller
from proofs_check.statement.claims import (
    POSITIVE,
    Assumption,
    AssumptionError,
    Claim,
    ClaimError,
    at_least,
    at_most,
    equal,
)
from proofs_check.statement.findings import Effort

__all__ = [
    "POSITIVE",
    "Assumption",
    "AssumptionError",
    "Claim",
    "ClaimError",
    "Effort",
    "Trial",
    "absolute",
    "at_least",
    "at_most",
    "equal",
    "every",
    "exp",
    "is_zero",
    "larger",
    "log",
    "positive_part",
    "smaller",
    "try_claim",
]
