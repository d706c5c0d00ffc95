"""Rounds of timed passes that follow each other: their medians, and when there are enough of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy.stats import norm

from spectheory.checks import real


@dataclass(frozen=True)
class Budget:
    """Passes are measured until they are precise enough, or until the time is spent.

    `width` is that of a 95% interval, relative to its value, as far as more rounds make it narrower: what differs from
    one group of rounds to the next stays. `seconds` are for passes and decoding loop of all groups together; what must
    be measured in any case may exceed them.

    Examples
    --------
    >>> Budget(seconds=10).width
    0.1
    >>> Budget(width=0)
    Traceback (most recent call last):
    spectheory.errors.SettingError: the width of latencies is 0: must be > 0; 0.1 is the default
    """

    width: float = 0.1
    seconds: float = 60.0

    def __post_init__(self) -> None:
        for name, value, usual in (("width", self.width, 0.1), ("seconds", self.seconds, 60)):
            real(
                f"the {name} of latencies" if name == "width" else "the time for latencies in seconds",
                value,
                lambda number: 0 < number < math.inf,
                limit="must be > 0",
                remedy=f"{usual:g} is the default",
            )


Pass: TypeAlias = tuple[str, int]
"""What a table has times of (:data:`spectheory.cost.table.PASSES`), and the tokens that the pass reads."""
PLAIN: Pass = ("target", 1)
"""The plain step, the unit of every round."""
Round = dict[Pass, float]
"""Seconds of each pass of a round."""
GROUPS = 8
"""Groups of rounds of a measurement, where its seconds allow: with more, Student's t falls little further."""
FEWEST_ROUNDS = 3
"""Rounds from which the noise of a group is known."""


@dataclass
class Rounds:
    """The rounds of one group so far: seconds of the plain step, and other passes in plain steps of their own round.

    A slow round moves both alike, so most of it cancels.
    """

    plain: list[float] = field(default_factory=list)
    ratios: dict[Pass, list[float]] = field(default_factory=dict)

    def add(self, taken: Round) -> None:
        """Take a round."""
        self.plain.append(taken[PLAIN])
        for key in taken.keys() - {PLAIN}:
            self.ratios.setdefault(key, []).append(taken[key] / taken[PLAIN])

    def medians(self) -> dict[Pass, float]:
        """Seconds of each pass: the median ratio times the median plain step."""
        plain = float(np.median(self.plain))
        return {PLAIN: plain, **{key: plain * float(np.median(self.ratios[key])) for key in sorted(self.ratios)}}

    def width(self) -> float:
        """The widest 95% interval that noise like that of these rounds gives a mean over :data:`GROUPS` groups.

        A pass's width is relative to its value and counts times the largest share that it can have of a call. The
        standard deviation is read from the quartiles, as of a normal law.
        """
        if len(self.plain) < FEWEST_ROUNDS:
            return math.inf
        medians, widest = self.medians(), 0.0
        for key, ratios in self.ratios.items():
            low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
            deviation = (high - low) / middle / (2 * norm.ppf(0.75))
            of_median = math.sqrt(math.pi / 2 / len(ratios)) * deviation
            widest = max(widest, share(key, medians) * 2 * norm.ppf(0.975) * of_median / math.sqrt(GROUPS))
        return float(widest)


def share(key: Pass, seconds: dict[Pass, float]) -> float:
    """The largest share that a pass can have of a call that needs it.

    Of a draft pass on m > 2 tokens it is d_m / (d_m + t_m), of a target's pass t_m / (t_m + d_1), of a head's first
    pass d_m / (d_m + t_1), and 1 of a draft step, whose ratio is c itself.

    Examples
    --------
    >>> share(("target", 4), {("target", 1): 1.0, ("target", 4): 1.5, ("draft", 1): 0.5})
    0.75
    """
    (who, tokens), duration = key, seconds[key]
    if who == "draft":
        return duration / (duration + (seconds.get(("target", tokens), 0.0) if tokens > 2 else 0.0))
    if who == "first":
        return duration / (duration + seconds[PLAIN])
    return duration / (duration + seconds[("draft", 1)])
