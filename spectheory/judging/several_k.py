r"""Counts of one engine at several k, read together (§14, an estimate).

Counts at one k leave two readings of every other k: matches that renew at each miss, R(k), and the same shares summed,
Z(k). Counts at a second k say where between the two the draft and its rule lie:

.. math:: \tau(k) = R(k) + w\,(Z(k) - R(k)), \qquad w = \frac{\tau_j - R(k_j)}{Z(k_j) - R(k_j)}

with both readings from the longest k. A draft that reads the text alone, verified position by position, has w near 0,
block verification near 1/2. Several k are weighed by their errors. On the built-in pair, counts at k = 1 and 8 give
every k between within 0.8% (token, block, argmax and lookup), where the readings of k = 8 alone miss by up to 3.8%.

This is for draft models, whose every draft has the pmf of its own prefix: of heads whose later drafts are worse shares
fall faster than both readings, and counts at two k may look like two drafts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spectheory.checks import several
from spectheory.cost import CostModel
from spectheory.distributions import Floats
from spectheory.errors import SettingError, TextError
from spectheory.intervals import Interval
from spectheory.judging.readings import covariance, readings, speedup_at
from spectheory.prediction.over_prompts import reach
from spectheory.prediction.renewal import Renewal, Summed
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters, pooled

UNLIKELY = 4.0
"""Deviations from the line of both readings at which counts are said not to be of one setting."""
_BEFORE, _WIDTH = 0.25, 0.5
"""The weight before any count: its mean and standard deviation."""
_MISS, _MISS_AT = 0.005, 0.01
"""Standard deviations of what the reading itself misses: as a share of tokens per call, and of survival by position.

Two of the first are about its largest miss on the built-in pair; a share by position may be off twice as much.
"""
_ROUNDS = 3


@dataclass(frozen=True)
class TogetherAtK:
    """Chains of k drafts: `tokens_per_call` from all counts, and `alone` from those of the longest k."""

    k: int
    tokens_per_call: Interval
    alone: Interval
    counted: bool
    speedup: Interval | None = None


@dataclass(frozen=True)
class Together:
    """Counts at several k as one reading: `weight` is w, 0 if matches renew and 1 if shares are summed.

    `misfit` is the largest distance of a counted share from what the longest k gives, in standard deviations.
    """

    ks: tuple[int, ...]
    weight: Interval
    rows: tuple[TogetherAtK, ...]
    misfit: float

    @property
    def best(self) -> TogetherAtK | None:
        """The fastest k; None without costs."""
        known = [row for row in self.rows if row.speedup]
        return max(known, key=lambda row: row.speedup.best if row.speedup else 0.0, default=None)

    @property
    def doubtful(self) -> bool:
        """Whether the counts do not look like those of one draft model under one setting."""
        return self.misfit > UNLIKELY


def together(runs: Sequence[Counters | CallLog], cost: CostModel | None = None, *, k_max: int = 16) -> Together:
    """Tokens per call at every k from counts at two or more of them (estimate; ranges are 95%).

    The runs are of one engine, draft and kind of prompts, and differ in k alone. Ranges hold the error of counting and
    that of the reading.

    Raises
    ------
    SettingError
        Runs of one k.
    TextError
        A run without counts by position, or with calls of a variable number of drafts.

    Examples
    --------
    >>> runs = [Counters(calls=4000, survival=(0.75,)), Counters(calls=3000, survival=(0.72, 0.55, 0.44))]
    >>> answer = together(runs, k_max=3)
    >>> [(row.k, round(row.tokens_per_call.best, 2)) for row in answer.rows], round(answer.weight.best, 1)
    ([(1, 1.75), (2, 2.29), (3, 2.71)], 0.1)
    """
    logs = several("runs", runs, remedy="pass a list")
    known = sorted(((readings(log, cost, k_max=k_max), log) for log in logs), key=lambda pair: pair[0].k)
    ks = tuple(run.k for run, _ in known)
    if len(ks) < 2 or len(set(ks)) < len(ks):
        raise SettingError(
            f"the runs have k = {', '.join(map(str, ks))}",
            limit="needs two or more, each once",
            remedy="serve the same with another k",
        )
    for run, _ in known:
        if not run.counters.survival or run.counted.basis != "counted":
            raise TextError(
                f"the counts of k = {run.k} are not by position, or of a variable number of drafts",
                limit="readings of several k need survival by position",
                remedy="import a log with counts by position",
            )
    *shorter, (base, log) = known
    counted = {run.k: run.counted.tokens_per_call for run, _ in known}
    spread = covariance(base.counters, log if isinstance(log, CallLog) else None)
    line = _Line.through(base.counters.survival, spread, {run.k: counted[run.k] for run, _ in shorter})
    misfit = max(line.misfit(run.counters, each) for run, each in shorter)
    rows = []
    for alone in base.rows:
        tokens = counted.get(alone.k) or _between(counted, alone.k, line.at(alone.k))
        gain = speedup_at(cost, tokens, alone.k, alone.survival.best)
        rows.append(TogetherAtK(alone.k, tokens, alone.tokens_per_call, alone.k in counted, gain))
    half = reach(math.inf) * line.deviation
    weight = Interval(line.weight - half, line.weight, line.weight + half, "statistical")
    return Together(ks, weight, tuple(rows), misfit)


def _between(counted: Mapping[int, Interval], k: int, read: Interval) -> Interval:
    """A reading that is not below what was counted at a shorter k, nor above that of a longer one."""
    least = max((each.best for shorter, each in counted.items() if shorter < k), default=1.0)
    most = min((each.best for longer, each in counted.items() if longer > k), default=k + 1.0)
    best = min(max(read.best, least), max(least, most), k + 1.0)
    return Interval(min(read.low, best), best, max(read.high, best), read.kind)


@dataclass(frozen=True)
class _Line:
    """A point between both readings of the longest k: the `weight`, and what moves it.

    `by_shares` ``[k]`` is its derivative by the counted shares, whose covariance is `spread`; `others` the variance
    that it has from the other counts and from what is not known before.
    """

    counted: tuple[float, ...]
    spread: Floats
    weight: float
    by_shares: Floats
    others: float

    @classmethod
    def through(cls, shares: tuple[float, ...], spread: Floats | None, counted: Mapping[int, Interval]) -> _Line:
        """The line nearest to tokens per call that were counted at other k, and to the weight before any count."""
        spread = np.zeros((len(shares), len(shares))) if spread is None else spread
        both = Renewal(shares), Summed(shares)
        ends = np.array([[each.tokens(k) for each in both] for k in counted])
        slopes = np.array([[each.gradient(k) for each in both] for k in counted])
        values = np.array([each.best for each in counted.values()])
        apart, off = ends[:, 1] - ends[:, 0], values - ends[:, 0]
        counting = np.array([(each.high - each.low) / (2 * reach(math.inf)) for each in counted.values()])
        errors, weight = counting**2 + (_MISS * values) ** 2, _BEFORE
        for _ in range(_ROUNDS):  # the error of the readings depends on the weight, a little
            moved = slopes[:, 0] + weight * (slopes[:, 1] - slopes[:, 0])
            variances = errors + np.einsum("ij,jk,ik->i", moved, spread, moved)
            information = float(apart**2 @ (1 / variances)) + _WIDTH**-2
            pulls = apart / variances / information
            weight = float(pulls @ off) + _BEFORE * _WIDTH**-2 / information
        others = float(pulls**2 @ errors) + _WIDTH**-2 / information**2
        return cls(shares, spread, weight, -pulls @ moved, others)

    @property
    def deviation(self) -> float:
        """That of the weight."""
        return math.sqrt(self.others + float(self.by_shares @ self.spread @ self.by_shares))

    def misfit(self, counters: Counters, log: CallLog | Counters) -> float:
        """The largest distance of survival that was counted at another k from the line, in standard deviations."""
        both, counted = (Renewal(self.counted), Summed(self.counted)), np.array(counters.survival)
        low, high = (each.survival(len(counted)) for each in both)
        first, second = (each.jacobian(len(counted)) for each in both)
        moved = first + self.weight * (second - first)
        spread = covariance(counters, log if isinstance(log, CallLog) else None)
        counting = 0.0 if spread is None else np.diag(spread)
        variances = counting + np.einsum("ij,jk,ik->i", moved, self.spread, moved) + _MISS_AT**2
        off = counted - low - self.weight * (high - low)
        return float(np.max(np.abs(off) / np.sqrt(variances)))

    def at(self, k: int) -> Interval:
        """Tokens per call, cut at what k allows; the range is the 95% error of all counts and of the reading."""
        both = Renewal(self.counted), Summed(self.counted)
        (low, high), (first, second) = (each.tokens(k) for each in both), (each.gradient(k) for each in both)
        best = min(max(low + self.weight * (high - low), 1.0), k + 1.0)
        slope = first + self.weight * (second - first) + (high - low) * self.by_shares
        variance = float(slope @ self.spread @ slope) + (high - low) ** 2 * self.others + (_MISS * best) ** 2
        half = reach(math.inf) * math.sqrt(max(variance, 0.0))
        return Interval(max(best - half, 1.0), best, min(best + half, k + 1.0), "estimate")


def alike(runs: Sequence[Counters | CallLog]) -> bool:
    """Whether runs can be read together: counts by position at several k, each once, of one engine."""
    counters = [pooled(run) for run in runs]
    ks = [len(each.survival) for each in counters]
    return len(set(ks)) == len(ks) > 1 and all(map(_fixed, counters)) and len({each.engine for each in counters}) == 1


def _fixed(counters: Counters) -> bool:
    """Whether every call drafted k tokens, as far as the counts say."""
    drafted = counters.drafted if counters.drafted is not None else math.inf
    return bool(counters.survival) and drafted >= len(counters.survival) * (counters.calls or 0)
