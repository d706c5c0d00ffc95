"""A count against what is expected of it: deviations, and a p-value that holds at any size.

Every comparison of counted with expected calls is one of these: of an engine's log, of our decoders, of transformers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from spectheory.errors import ShapeError
from spectheory.prediction.law import in_deviations, law_of_calls, tail, trimmed
from spectheory.prediction.paths import calls_of_texts

CERTAIN = 1e-3
"""A smaller standard deviation is rounding error: nothing is random, and counted and expected must be equal."""
READINGS = 4
"""Independent estimates of an estimated law; their spread gives the error of their mean."""
_BEYOND = 6e-7
"""Probability that the error of an estimated expectation exceeds the assumed largest error."""


@dataclass(frozen=True)
class Comparison:
    """A count, the interval that holds its expectation given the texts, the standard deviation, and the p-value.

    `low` and `high` differ where a count may hold tokens past the end of a text, whose acceptance is unknown. `p` is
    two-sided, and exact or an upper bound where the law is known: it then falls below a with at most probability a if
    the rule is right. Of an estimated law it is an upper estimate.
    `of_estimates` is the part of the deviation that is the error of an estimated expectation.
    """

    what: str
    counted: int
    low: float
    high: float
    deviation: float
    p: float
    of_estimates: float = 0.0

    @property
    def off(self) -> float:
        """Counted less expected, from the nearer end; 0 inside."""
        return max(self.counted - self.high, 0.0) + min(self.counted - self.low, 0.0)

    @property
    def certain(self) -> bool:
        """Whether nothing is random given the texts."""
        return self.deviation <= CERTAIN

    @property
    def z(self) -> float:
        """The difference in standard deviations; 0 or infinite where nothing is random."""
        return in_deviations(self.off, self.deviation, CERTAIN)


@dataclass(frozen=True)
class CallLaw:
    """The calls of one text, given the text (§7).

    `calls` is their expected number and `variance` their variance: exact, or means over unbiased readings if the rule's
    law is estimated. `noise` is then the estimated variance of `calls` itself, else 0. `law` is P(calls = least),
    P(calls = least + 1), ... without negligible ends.
    """

    calls: float
    variance: float
    noise: float
    least: int
    law: tuple[float, ...]

    @classmethod
    def of(cls, readings: Sequence[NDArray[np.float64]]) -> Self:
        """From P(tau >= i) ``[N, depth]`` at each position of the text: one reading, or :data:`READINGS` unbiased ones.

        Examples
        --------
        >>> CallLaw.of([np.ones((6, 1))])
        CallLaw(calls=3.0, variance=0.0, noise=0.0, least=3, law=(1.0,))
        """
        if len(readings) not in (1, READINGS):
            raise ShapeError(
                f"{len(readings)} readings of a law", limit=f"needs 1 or {READINGS}", remedy="read it again"
            )
        by_reading = [calls_of_texts(survival, np.array([len(survival)])) for survival in readings]
        calls = np.array([one.expected[0] for one in by_reading])
        variance = float(np.mean([one.variance[0] for one in by_reading]))
        noise = float(calls.var(ddof=1)) / len(calls) if len(calls) > 1 else 0.0
        # A path of calls passes each position once, so the mean of the laws is unbiased, as is that of their means.
        least, law = trimmed(np.mean([law_of_calls(survival) for survival in readings], axis=0))
        return cls(float(calls.mean()), variance, noise, least, tuple(law.tolist()))

    @property
    def spread(self) -> float:
        """Variance of the number of calls given the text (exact, or an unbiased estimate).

        The variance of a reading around its own mean is on average too small by the variance of that mean, which is
        added.
        """
        return self.variance + READINGS * self.noise


def compare_calls(counted: int, laws: Sequence[CallLaw]) -> Comparison:
    """Calls counted over several texts against their laws (§7; p is exact, or an upper estimate for estimated laws).

    Estimated: the tail of the mean law beyond its assumed largest error, plus the probability of a larger error.

    Examples
    --------
    Two texts of three tokens, a draft accepted with probability 1/2 in each call but the last.

    >>> made = compare_calls(6, [CallLaw.of([np.full((3, 1), 0.5)])] * 2)
    >>> made.low, round(made.deviation, 3), round(made.z, 3), made.p
    (4.5, 0.612, 2.449, 0.125)
    """
    calls, noise = sum(one.calls for one in laws), sum(one.noise for one in laws)
    deviation = math.sqrt(sum(one.spread + one.noise for one in laws))
    error, off = _largest_error([one.noise for one in laws]), counted - calls
    sums, at, beyond = [(one.least, np.array(one.law)) for one in laws], counted, 0.0
    if error:
        moved = calls + math.copysign(max(abs(off) - error, 0.0), off)
        at, beyond = math.ceil(moved) if off > 0 else math.floor(moved), _BEYOND
    p = min(1.0, tail(sums, at) + beyond)
    return Comparison("calls", counted, calls, calls, deviation, p, math.sqrt(noise))


def _largest_error(noises: Sequence[float], beyond: float = _BEYOND) -> float:
    r"""The bound that the error of a sum of estimated expectations exceeds with probability `beyond` (Student).

    Each noise v is estimated from a few readings, with f degrees of freedom. The sum gets the mean of f and
    Satterthwaite's :math:`(\sum v)^2 / \sum (v^2 / f)`, too large by itself where a few texts have nearly all the
    noise.
    """
    total = sum(noises)
    if total == 0:
        return 0.0
    least = READINGS - 1
    freedom = (least + least * total**2 / sum(noise**2 for noise in noises)) / 2
    return float(stdtrit(freedom, 1 - beyond / 2)) * math.sqrt(total)
