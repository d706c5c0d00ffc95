"""The difference of two runs: tokens per call and acceptance by position, paired by the prompts that both have."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from spectheory.distributions import Floats
from spectheory.intervals import Interval
from spectheory.judging.judgement import Judgement
from spectheory.judging.runs import Run
from spectheory.prediction.over_prompts import reach

FALSE_ALARM = 0.01
"""Share of comparisons of equal runs that are said to differ, over tokens per call and all positions together."""
RARE = 50
"""Counted calls below which the variance of their number is that of a Poisson count."""

_ROUNDING = 1e-9
"""Differences of shares up to so much are rounding: a share of one call in a billion."""


@dataclass(frozen=True)
class Change:
    """A number of both runs.

    `deviation` is the standard deviation of the difference, known with so many degrees of `freedom`; `slack` is the
    part of the difference that another way of counting at the ends of texts may make.
    """

    what: str
    one: float
    other: float
    deviation: float
    freedom: float = math.inf
    slack: float = 0.0

    @property
    def difference(self) -> Interval:
        """The other's less the first one's, with its 95% interval (Student's t)."""
        best, half = self.other - self.one, reach(self.freedom) * self.deviation + self.slack
        return Interval(best - half, best, best + half, "statistical")

    @property
    def z(self) -> float:
        """What of the difference no slack makes, in standard deviations; 0 or infinite where nothing is random."""
        size = abs(self.other - self.one) - self.slack
        if size <= _ROUNDING:
            return 0.0
        return math.copysign(size / self.deviation if self.deviation > 0 else math.inf, self.other - self.one)

    @property
    def p(self) -> float:
        """Two-sided p-value of no difference."""
        return 2 * float(stdtr(self.freedom, -abs(self.z)))


@dataclass(frozen=True)
class Speedups:
    """Speed-ups of both runs over plain decoding, and the other's over the first one's (95% intervals).

    `refused` says why they cannot be compared; there is no `ratio` then.
    """

    one: Interval
    other: Interval
    ratio: Interval | None
    refused: str = ""


@dataclass(frozen=True)
class Difference:
    """Two runs: tokens per call, then the share of calls that accepted 1, 2, ..., k drafts, where positions are known.

    - `paired`: the number of prompts that both have.
    - `clustering`: the factor by which the variance of totals without prompts was raised, 1 if nothing says by how
      much.
    - `texts`, `draft`: how much of each difference is expected from the texts themselves, and from another draft on the
      second texts, as the models' statistics say; `rest`: what remains. Empty where they are not known.
    - `with_drafts`: the traces of the texts are of different drafts, so that `texts` are those of texts and drafts.
    - `judged`: for each run that is a log with a trace of its texts, whether its calls and its output fit the rule, or
      why that is not known; empty without traces of texts.
    - `speedups`: None where a run has no costs.
    """

    one: Run
    other: Run
    changes: tuple[Change, ...]
    paired: int
    clustering: float = 1.0
    texts: tuple[Change, ...] = ()
    draft: tuple[Change, ...] = ()
    rest: tuple[Change, ...] = ()
    with_drafts: bool = False
    judged: tuple[Judgement | str, ...] = ()
    speedups: Speedups | None = None

    @property
    def k(self) -> int:
        """Drafts of a call of the first run; of both, where positions are compared."""
        return self.one.k

    @property
    def totals(self) -> bool:
        """Whether a run has counts of one prompt, or without prompts: the spread over prompts is not in them."""
        return any(len(run.prompts) < 2 and run.errors is None for run in (self.one, self.other))

    @property
    def tokens(self) -> Change:
        """Tokens per call."""
        return self.changes[0]

    def differs(self, change: Change) -> bool:
        """Whether a change is beyond noise (two-sided, at :data:`FALSE_ALARM` over all of them together)."""
        return change.p < FALSE_ALARM / len(self.changes)


def difference(one: Run, other: Run) -> Difference:
    """The changes from one run to another."""
    clustering = np.maximum(one.clustering, other.clustering)
    variances = np.maximum(variance(one, other), _of_rare(one, other))
    noise = Noise(np.sqrt(variances), min(one.freedom, other.freedom), one.slack + other.slack)
    answer = Difference(one, other, noise.changes(one.shares, other.shares), len(_shared(one, other)))
    return replace(answer, clustering=float(clustering[0])) if answer.totals else answer


def _of_rare(one: Run, other: Run) -> Floats:
    """Least variances of shares that few counted calls reach, or miss: where none did, the counts would show no noise.

    A Poisson count of n events is taken to vary by n + 1, n from the run with the larger share. Of tokens per call the
    events are accepted drafts, up to k of them in one call.
    """
    k = one.k
    drafts = np.array([k, *np.ones(len(one.shares) - 1)])
    shares = [np.array([(run.shares[0] - 1) / k, *run.shares[1:]]) for run in (one, other)]
    often = np.minimum(np.maximum(*shares), 1 - np.minimum(*shares)) * drafts
    least = np.zeros(len(drafts))
    for run in (one, other):
        if not run.rule and run.errors is None:
            events = often * run.calls
            least += np.where(events < RARE, drafts * (events + 1) / run.calls**2, 0.0)
    return least * np.maximum(one.clustering, other.clustering)


def variance(one: Run, other: Run, units: tuple[float, float] = (1.0, 1.0)) -> Floats:
    """Variances of the other's shares less the first one's, each in its run's unit ``[k + 1]``; runs of one k."""
    clustering = np.maximum(one.clustering, other.clustering)
    apart = one.variance(clustering) / units[0] ** 2 + other.variance(clustering) / units[1] ** 2
    shared = _shared(one, other)
    if shared:
        places = [{name: row for row, name in enumerate(run.prompts)} for run in (one, other)]
        first, second = (
            run.influence[[of[name] for name in shared]] / unit
            for run, of, unit in zip((one, other), places, units, strict=True)
        )
        apart = apart - 2 * (first * second).sum(axis=0)
    return np.maximum(apart, 0.0)


def _shared(one: Run, other: Run) -> list[Hashable]:
    """The prompts of both runs; too few say nothing of their noise."""
    if min(len(one.prompts), len(other.prompts)) < 2:
        return []
    known = set(other.prompts)
    return [name for name in one.prompts if name in known]


@dataclass(frozen=True)
class Noise:
    """Standard deviations of changes ``[k + 1]``, their degrees of freedom, and the slack of counting."""

    deviations: Floats
    freedom: float
    slack: Floats | float

    def changes(self, one: Floats, other: Floats) -> tuple[Change, ...]:
        """Tokens per call, then the positions, without those that are not known."""
        names = ["tokens per call", *(f"position {i}" for i in range(1, len(one)))]
        slack = np.broadcast_to(self.slack, one.shape)
        rows = zip(names, *(each.tolist() for each in (one, other, self.deviations, slack)), strict=True)
        return tuple(
            Change(what, a, b, error, self.freedom, least) for what, a, b, error, least in rows if math.isfinite(error)
        )
