r"""Find a fall of acceptance while a server runs: a sequential test with a stated rate of false alarms per day.

After each scrape a statistic is multiplied by a likelihood ratio of a fall against what is expected, and grows by the
days that passed (Shiryaev and Roberts; an e-detector, ``shin2023edetectors``):

.. math:: M_n = L_n (M_{n-1} + d_n), \qquad
          L_n = \exp\left(-\frac{\delta}{v} x_n - \frac{\delta^2}{2 v} c_n\right)

with :math:`c_n` calls, :math:`x_n` their accepted drafts less those expected at least, :math:`v` the variance per call
and :math:`\delta` the fall that is looked for. Where acceptance is no lower than expected, E[L_n | past] <= 1, so M
less the days passed is a supermartingale. An alarm takes 1/rate from it and starts again from 0: the mean number of
alarms in t days is at most rate x t, whatever t. The same holds for a mean of such statistics: of three falls, for
tokens per call and for each position.

What this rests on, and its kind: E[L_n | past] <= 1 is that of sums that are normal, as sums over many requests are
(an *estimate*: asymptotic). `v` covers calls of one request that depend: it is the largest of independent calls, of
the expectation's requests, and of the server's own scrapes, by the squared differences of successive batches of them.
Requests must end within about the time between two scrapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from spectheory.distributions import Floats
from spectheory.errors import TextError
from spectheory.intervals import Interval
from spectheory.judging.runs import Side, Stated, two_runs
from spectheory.trace.counters import Counters

FALLS = np.array([0.02, 0.05, 0.1])
"""Shares of accepted drafts that are looked for. Of larger ones single requests would decide, which are not normal."""
LEARNING = 32
"""Scrapes with calls from which the noise is learned before the test begins."""
_MOST_BATCHES = 64
_SAFETY = 1.3
"""Factor of the learned variance, whose own error is about a fifth."""
_DOUBT = 0.01
"""Probability that acceptance without fault lies below the lower end of what is expected."""
_LARGEST = 600.0
"""Of e: float64 ends at 709."""


@dataclass(frozen=True)
class Expected:
    """What calls without fault reach: tokens per call, then the share that accepted 1, ..., k drafts where known.

    - `deviations` are the errors of `shares`, of totals without requests as if calls were independent; they are known
      by `freedom`. `slack` is the part of the shares that another way of counting at the ends of texts may make.
    - `per_call` are the variances of one call, 0 if unknown; `clustering` is the factor that calls of one request make.
    """

    name: str
    k: int
    shares: Floats
    deviations: Floats
    slack: Floats
    freedom: float
    per_call: Floats
    clustering: Floats
    totals: bool

    @classmethod
    def of(cls, name: str, side: Side, k: int | None, *, positions: bool = True, rule: str = "token") -> Expected:
        """That of a trace, a log, counters or an answer, for a server that drafts k tokens and counts by position.

        Examples
        --------
        >>> Expected.of("before", Counters(calls=400, survival=(0.8, 0.6)), 2).shares.tolist()
        [2.4, 0.8, 0.6]
        """
        probe: Side = Stated(Interval.exact(1.0), k)
        if positions and k:
            probe = Counters(calls=1, survival=(0.0,) * k)
        run, other = two_runs((name, "the server"), (side, probe), k=None if positions else k, rule=rule)
        size = 1 if not positions or isinstance(side, Stated) else run.k + 1
        known = run.errors is not None
        totals = not known and len(run.prompts) < 2
        answer = cls(
            name,
            other.k,
            run.shares[:size],
            np.sqrt(run.variance(np.ones(len(run.shares))))[:size],
            np.broadcast_to(run.slack, run.shares.shape)[:size],
            run.freedom,
            np.zeros(size) if known else (run.of_calls * run.calls)[:size],
            np.ones(size) if known else run.clustering[:size],
            totals,
        )
        if answer.least(np.ones(size))[0] <= 1:
            raise TextError(
                f"{name} has too few calls to expect anything of a server",
                limit="its lower end is below 1 token per call, and no engine gives less",
                remedy="measure more prompts, or count for longer",
            )
        return answer

    def least(self, clustering: Floats) -> Floats:
        """The one-sided lower ends of the shares (99%, Student's t), where calls depend so much ``[..., P]``."""
        wide = np.sqrt(clustering) if self.totals else 1.0
        return self.shares - self.slack - float(stdtrit(self.freedom, 1 - _DOUBT)) * self.deviations * wide

    @property
    def size(self) -> int:
        """How many shares are known: 1, or k + 1."""
        return len(self.shares)

    @property
    def names(self) -> tuple[str, ...]:
        """What the shares are of."""
        return ("tokens per call", *(f"position {i}" for i in range(1, self.size)))


class FallTest:
    """The test, fed scrape by scrape; arrays may have leading axes, for many servers at once.

    `evidence` is compared with ``1 / rate``, in days. It stays 0 while the noise is learned.

    Examples
    --------
    >>> test = FallTest(Expected.of("before", Counters(calls=10**6, survival=(0.8,)), 1), rate=0.01)
    >>> counts = [[1800 + 30 * (-1) ** n, 800 + 30 * (-1) ** n] for n in range(LEARNING)] + [[1600.0, 600.0]] * 3
    >>> [bool(test.add(1000, each, days=0.01)) for each in counts][-3:]
    [False, False, True]
    """

    def __init__(self, expected: Expected, rate: float, servers: Sequence[int] = ()) -> None:
        self.expected, self.rate = expected, rate
        size = expected.size
        self._of_falls = np.zeros((*servers, len(FALLS), size))
        self._rise, self._begun = (np.zeros_like(self._of_falls) for _ in range(2))  # of the logarithm, from its lowest
        weights = np.full(size, 0.5 / max(size - 1, 1))
        weights[0] = 0.5 if size > 1 else 1.0
        self._weights = weights / len(FALLS)
        self._batches: list[tuple[float, Floats]] = []
        self._open: tuple[int, float, Any] = (0, 0.0, 0.0)
        self._scrapes = 1  # of a batch
        self.seen = 0
        self._learned = np.zeros((*servers, size))

    @property
    def evidence(self) -> Floats:
        """The statistic, in days; an alarm at 1 / rate."""
        return np.asarray((self._of_falls * self._weights).sum(axis=(-2, -1)))

    @property
    def learning(self) -> int:
        """Scrapes with calls until the test begins."""
        return max(LEARNING - self.seen, 0)

    @property
    def variance(self) -> Floats:
        """Variance per call ``[..., P]``."""
        known = self.expected.per_call * self.expected.clustering
        return np.maximum(np.maximum(known, _SAFETY * self._learned), 1e-6)

    @property
    def least(self) -> Floats:
        """What is expected at least ``[..., P]``."""
        independent = self.expected.per_call
        if not self.expected.totals:
            return self.expected.least(np.ones(1))
        return self.expected.least(np.maximum(self.variance / np.where(independent > 0, independent, np.inf), 1.0))

    def strongest(self) -> tuple[int, int]:
        """What speaks most for a fall, of one server: 0 for tokens per call, i for position i; and in how many scrapes
        with calls, the last ones (an estimate, from the lowest likelihood of the fall on).
        """
        fall, place = np.unravel_index((self._of_falls * self._weights).argmax(), self._of_falls.shape)
        return int(place), self.seen - int(self._begun[fall, place])

    def add(self, calls: float, counts: Any, days: float) -> Any:
        """Whether the counts of a scrape with calls raise an alarm: tokens, then calls that accepted 1, ..., k drafts.

        `days` passed since the last one.
        """
        counts = np.asarray(counts, dtype=float)
        if not self.learning:
            self._weigh(calls, counts, days)
        self.seen += 1
        self._learn(calls, counts)
        return self.evidence >= 1 / self.rate

    def _weigh(self, calls: float, counts: Floats, days: float) -> None:
        least, variance = self.least, self.variance[..., None, :]
        falls = FALLS[:, None] * (least - np.eye(1, least.shape[-1])[0])[..., None, :]
        off = (counts - least * calls)[..., None, :]
        ratio = np.clip(-falls / variance * (off + falls * calls / 2), -_LARGEST, _LARGEST)
        self._of_falls = np.exp(ratio) * (self._of_falls + days)
        self._begun = np.where(self._rise <= 0, self.seen, self._begun)
        self._rise = np.maximum(self._rise, 0) + ratio

    def restart(self, which: Any = ...) -> None:
        """Begin again with no evidence, as after an alarm."""
        self._of_falls[which] = 0.0

    def _learn(self, calls: float, counts: Floats) -> None:
        """Squared differences of the shares of successive batches, of these and of pairs of them: the larger."""
        number, before, so_far = self._open
        self._open = (number + 1, before + calls, so_far + counts)
        if number + 1 < self._scrapes:
            return
        self._batches.append(self._open[1:])
        self._open = (0, 0.0, 0.0)
        if len(self._batches) == _MOST_BATCHES:
            self._batches, self._scrapes = _paired(self._batches), 2 * self._scrapes
        if len(self._batches) >= LEARNING:
            self._learned = np.maximum(_spread(self._batches), _spread(_paired(self._batches)))


def _paired(batches: Sequence[tuple[float, Floats]]) -> list[tuple[float, Floats]]:
    """Batches of twice the length; an odd first one is left out."""
    first = len(batches) % 2
    pairs = zip(batches[first::2], batches[first + 1 :: 2], strict=True)
    return [(one[0] + other[0], one[1] + other[1]) for one, other in pairs]


def _spread(batches: Sequence[tuple[float, Floats]]) -> Floats:
    """Variance per call: the mean squared difference of successive shares in units of independent calls.

    A fall in between enters one difference alone.
    """
    calls = np.array([each for each, _ in batches])
    shares = np.stack([counts / each for each, counts in batches])
    weights = 1 / (1 / calls[1:] + 1 / calls[:-1])
    squares = np.diff(shares, axis=0) ** 2 * weights.reshape(-1, *[1] * (shares.ndim - 1))
    return np.asarray(squares.mean(axis=0))
