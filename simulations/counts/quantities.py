"""What a tally is asked for: a probability or a mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simulations.counts.estimates import Estimate, bernstein, exact, student
from simulations.counts.moments import Moments
from simulations.counts.tally import Tally
from spectheory.errors import SettingError
from spectheory.intervals import CONFIDENCE


@dataclass(frozen=True)
class Share:
    """The probability that a trial is counted in ``counts[name]`` at an index, or at one of several.

    A trial must be counted there at most once.

    Examples
    --------
    >>> Share("heads").estimate(Tally.of(4, counts={"heads": [1]})).best
    0.25
    """

    name: str
    index: int | tuple[int, ...] = 0

    def successes(self, tally: Tally) -> int:
        """The count."""
        vector = _named("counts", tally.counts, self.name)
        places = self.index if isinstance(self.index, tuple) else (self.index,)
        if any(not 0 <= place < len(vector) for place in places):
            raise SettingError(f"index is {self.index}", limit=f"{self.name} has {len(vector)}", remedy="use another")
        return sum(int(vector[place]) for place in set(places))

    def estimate(self, tally: Tally, confidence: float = CONFIDENCE) -> Estimate:
        """Its exact interval."""
        return exact(self.successes(tally), tally.trials, confidence)


@dataclass(frozen=True)
class Mean:
    """The mean of ``moments[name]``; with a range that holds all samples its interval is certain, else Student's.

    Examples
    --------
    >>> Mean("time").estimate(Tally.of(3, samples={"time": [1.0, 2.0, 6.0]})).best
    3.0
    """

    name: str
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None) or (self.low is not None and not self.low < self.high):  # type: ignore[operator]
            raise SettingError(
                f"the range is [{self.low}, {self.high}]", limit="needs low < high, or neither", remedy="state both"
            )

    def moments(self, tally: Tally) -> Moments:
        """The moments."""
        return _named("moments", tally.moments, self.name)

    def estimate(self, tally: Tally, confidence: float = CONFIDENCE) -> Estimate:
        """Its interval."""
        if self.low is None or self.high is None:
            return student(self.moments(tally), confidence)
        return bernstein(self.moments(tally), self.low, self.high, confidence)


Quantity = Share | Mean


def _named(what: str, known: Any, name: str) -> Any:
    if name not in known:
        raise SettingError(f"no {what} are called {name!r}", limit=f"there are {sorted(known)}", remedy="use another")
    return known[name]
