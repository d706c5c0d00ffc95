"""A count against what is expected of it: deviations, and a p-value that holds at any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spectheory.prediction.law import in_deviations

CERTAIN = 1e-3
"""A smaller standard deviation is rounding error: nothing is random, and counted and expected must be equal."""


@dataclass(frozen=True)
class Comparison:
    """A count, the interval that holds its expectation given the texts, the standard deviation, and the p-value.

    `low` and `high` differ where a count may hold tokens past the end of a text, whose acceptance is unknown. `p` is
    two-sided, exact or an upper bound: it falls below a with at most probability a if the rule is right.
    """

    what: str
    counted: int
    low: float
    high: float
    deviation: float
    p: float

    @property
    def off(self) -> float:
        """Counted less expected, from the nearer end; 0 inside."""
        return max(self.counted - self.high, 0.0) + min(self.counted - self.low, 0.0)

    @property
    def z(self) -> float:
        """The difference in standard deviations; 0 or infinite where nothing is random."""
        return in_deviations(self.off, self.deviation, CERTAIN)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; an infinite z is left to the writer."""
        expected = {"low": self.low, "high": self.high}
        return {"what": self.what, "counted": self.counted, "expected": expected, "deviation": self.deviation} | {
            "z": self.z,
            "p": self.p,
        }
