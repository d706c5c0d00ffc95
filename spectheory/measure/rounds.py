"""Rounds of timed passes: which the next one measures, medians with 95% intervals, and when to end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from spectheory.checks import real
from spectheory.intervals import CONFIDENCE, Interval


@dataclass(frozen=True)
class Budget:
    """Passes are measured until they are precise enough, or until the time is spent.

    `width` is that of a 95% interval, relative to its value. `seconds` are for passes and decoding loop together; what
    must be measured in any case may exceed them.

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


LOOKS = (8, 13, 20, 30, 40)
"""Numbers of measurements at which an interval may end the repeating."""
LEAST_REPEATS = 6
"""Fewer measurements give no 95% interval of the median: 2 · 2^-5 > 0.05."""


def median_at(values: Sequence[float] | NDArray[np.float64], *, last: bool) -> Interval:
    r"""Median with its 95% interval from order statistics (distribution-free, independent values; statistical).

    Of n values all intervals at the looks up to n contain the median together with a probability of at least 0.95.
    So coverage holds whichever look ends the repeating. `last` says that something other than the values ended it, such
    as the time: all that the looks before have left of the 0.05 is then spent on this interval.

    Examples
    --------
    >>> median_at(range(1, 41), last=True)
    Interval(low=13.0, best=20.5, high=28.0, kind='statistical')
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n, rank = len(ordered), rank_at(len(ordered), last=last)
    return Interval(float(ordered[rank - 1]), float(np.median(ordered)), float(ordered[n - rank]), "statistical")


@cache
def rank_at(count: int, *, last: bool) -> int:
    """Rank, from below and from above, of the ends of the interval of `count` values; 0 where there is none."""
    # Looks up to this one may spend of the error rate in proportion to the square root of the values.
    missed = (1 - CONFIDENCE) * (1.0 if last else min(1.0, sqrt(count / LOOKS[-1])))
    rank = 0
    while 2 * (rank + 1) <= count and miss_rate(count, rank + 1) <= missed:
        rank += 1
    return rank


def miss_rate(count: int, rank: int) -> float:
    """Probability that the interval of that rank, or that of an earlier look, misses the median (exact).

    Of the first n values a number with the law Binomial(n, 1/2) lies below the median; the interval of rank r contains
    it if that number is in r..n - r.
    """
    law, before = np.ones(1), 0
    for n in (*(look for look in LOOKS if look < count), count):
        law = np.convolve(law, binom.pmf(np.arange(n - before + 1), n - before, 0.5))
        ends = rank if n == count else rank_at(n, last=False)
        law[:ends] = law[n - ends + 1 :] = 0.0
        before = n
    return float(1 - law.sum())


Pass: TypeAlias = tuple[str, int]
"""A model and the tokens that its pass reads."""
PLAIN: Pass = ("target", 1)
"""The plain step, the unit of every round."""
Round = dict[Pass, float]
"""Seconds of each pass of a round."""
Stopped = Literal["width", "budget", "repeats"]
"""Why rounds ended: numbers are narrow enough, the seconds are spent, or there were as many rounds as may be."""


@dataclass
class Rounds:
    """Rounds measured so far: seconds of the plain step, and other passes in units of their own round's plain step.

    A pass is measured until its interval is as narrow as `width` says, `repeats` times at most. Its width counts times
    the largest share that the pass can have of a call that needs it, so that no call's time has a wider interval
    because of it: of a draft pass on m > 2 tokens d_m / (d_m + t_m), of a target's pass t_m / (t_m + d_1), and 1 of a
    draft step, whose ratio is c itself.

    `repeated` says how often a round has a pass, where it is more than once.
    """

    passes: Sequence[Pass]
    width: float
    repeats: int
    repeated: Mapping[Pass, int] = field(default_factory=dict)
    plain: list[float] = field(default_factory=list)
    ratios: dict[Pass, list[float]] = field(default_factory=dict)
    narrow: set[Pass] = field(default_factory=set)
    most: dict[Pass, int] = field(default_factory=dict)

    def due(self, left: float) -> set[Pass]:
        """The passes that the next round measures beside the plain step, with `left` seconds left; none: no round."""
        if len(self.plain) >= LEAST_REPEATS and left <= 0:
            return set()
        if not (due := self._due()):
            self._share_out(left)
            due = self._due()
        return due

    def _due(self) -> set[Pass]:
        most = {key: self.most.get(key, LEAST_REPEATS) for key in self.passes if key not in self.narrow}
        return {key for key, count in most.items() if self.count(key) < count}

    def _share_out(self, left: float) -> None:
        """Share the seconds that are left: a pass of c seconds gets more repetitions in proportion to 1/sqrt(c).

        At equal relative spread this makes the sum of the squared widths smallest.
        """
        costs = {key: self._seconds(key) * self.repeated.get(key, 1) for key in self.passes if key not in self.narrow}
        roots = sum(map(math.sqrt, costs.values()))
        for key, cost in costs.items():
            more = min(left / (math.sqrt(cost) * roots), self.repeats)
            self.most[key] = min(self.repeats, self.count(key) + math.floor(more))

    def add(self, taken: Round) -> None:
        """Take a round; see which passes are known narrowly enough."""
        self.plain.append(taken[PLAIN])
        measured = taken.keys() - {PLAIN}
        for key in measured:
            self.ratios.setdefault(key, []).append(taken[key] / taken[PLAIN])
        self.narrow.update(key for key in measured if self.count(key) in LOOKS and self.wide(key) <= self.width)

    def count(self, key: Pass) -> int:
        """How often a pass was measured."""
        return len(self.plain) if key == PLAIN else len(self.ratios.get(key, ()))

    def wide(self, key: Pass) -> float:
        """Width of the interval relative to the value, times the share that the pass can have of a call."""
        found = self._ratio(key)
        return self._share(key) * (found.high - found.low) / found.best

    def _ratio(self, key: Pass) -> Interval:
        """The median in plain steps."""
        return median_at(self.ratios[key], last=self.count(key) not in LOOKS or self.count(key) == self.repeats)

    def _share(self, key: Pass) -> float:
        """The largest share that a pass can have of a call."""
        (who, tokens), own = key, self._seconds(key)
        if who == "target":
            return own / (own + self._seconds(("draft", 1)))
        return own / (own + (self._seconds(("target", tokens)) if tokens > 2 else 0.0))

    def _seconds(self, key: Pass) -> float:
        """Median so far; 0 of a pass that is not measured."""
        if key != PLAIN and key not in self.ratios:
            return 0.0
        return float(np.median(self.plain)) * (1.0 if key == PLAIN else float(np.median(self.ratios[key])))

    @property
    def stopped(self) -> Stopped:
        """Why no round follows: every pass is known narrowly, or measured as often as asked, or the time was spent."""
        wide = [key for key in self.passes if key not in self.narrow]
        if not wide:
            return "width"
        return "repeats" if all(self.count(key) >= self.repeats for key in wide) else "budget"

    def medians(self) -> dict[Pass, Interval]:
        """Seconds of each pass: the median ratio with its interval, times the median plain step."""
        plain = self._seconds(PLAIN)
        unit = Interval(plain, plain, plain, "statistical")
        return {PLAIN: unit, **{key: self._ratio(key) * plain for key in sorted(self.ratios)}}

    def as_dict(self) -> dict[str, Any]:
        """Rounds, quartiles of the plain step, and those of each pass, every round scaled to the median plain step."""
        plain, units = self._seconds(PLAIN), {PLAIN: [1.0], **self.ratios}
        return {
            "repeats": len(self.plain),
            "plain_step_quartiles": _quartiles(self.plain),
            "quartiles": {_name(key): [plain * q for q in _quartiles(units[key])] for key in sorted(units)},
        }

    def ended(self) -> dict[str, Any]:
        """Why the rounds ended; for each pass how often it was measured and how wide its interval is."""
        return {
            "stopped": self.stopped,
            "repeats": {_name(key): self.count(key) for key in (PLAIN, *self.passes)},
            "widths": {_name(key): self.wide(key) for key in self.passes},
        }


def _name(key: Pass) -> str:
    return f"{key[0]} {key[1]}"


def _quartiles(values: Sequence[float]) -> list[float]:
    return [float(q) for q in np.quantile(values, (0.25, 0.75))]
