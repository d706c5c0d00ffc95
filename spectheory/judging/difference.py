"""Two runs against each other: tokens per call and acceptance by position, paired by the prompts that both have."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from spectheory.checks import instance, located, several, shown, whole
from spectheory.errors import SettingError, argument
from spectheory.intervals import Interval
from spectheory.judging.counting import counting_of
from spectheory.judging.judgement import align_texts
from spectheory.judging.runs import Evidence, Run, expected_run, keys, starts_known, two_runs
from spectheory.prediction.over_prompts import reach
from spectheory.prediction.plan_answer import named_rules
from spectheory.trace import Trace, read_evidence
from spectheory.trace.calls import MOST_DRAFTS, CallLog
from spectheory.trace.counters import Counters
from spectheory.trace.reading import given_trace

Floats = NDArray[np.float64]
FALSE_ALARM = 0.01
"""Share of comparisons of equal runs that are said to differ, over tokens per call and all positions together."""


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
        off = math.copysign(max(abs(self.other - self.one) - self.slack, 0.0), self.other - self.one)
        if self.deviation > 0:
            return off / self.deviation
        return math.copysign(math.inf, off) if off else 0.0

    @property
    def p(self) -> float:
        """Two-sided p-value of no difference."""
        return 2 * float(stdtr(self.freedom, -abs(self.z)))


@dataclass(frozen=True)
class Difference:
    """Two runs of chains of k drafts: tokens per call, then the share of calls that accepted 1, 2, ..., k drafts.

    `paired` is the number of prompts that both have. `texts` says how much of each difference is expected from the
    texts themselves, as both models' statistics of them say; `rest` is what the texts do not explain. `clustering` is
    the factor by which the variance of totals without prompts was raised, 1 if nothing says by how much.
    """

    one: Run
    other: Run
    changes: tuple[Change, ...]
    paired: int
    clustering: float = 1.0
    texts: tuple[Change, ...] = ()
    rest: tuple[Change, ...] = ()

    @property
    def k(self) -> int:
        """Drafts of a call."""
        return self.one.k

    @property
    def tokens(self) -> Change:
        """Tokens per call."""
        return self.changes[0]

    def differs(self, change: Change) -> bool:
        """Whether a change is beyond noise (two-sided, at :data:`FALSE_ALARM` over all of them together)."""
        return change.p < FALSE_ALARM / len(self.changes)


def compare(
    one: Evidence | str | Path,
    other: Evidence | str | Path,
    *,
    k: int | None = None,
    rule: str = "token",
    texts: Sequence[Trace | str | Path] = (),
    names: tuple[str, str] = ("the first run", "the second run"),
) -> Difference:
    """Compare two runs: what they accept at each position, and tokens per call (95% intervals over prompts).

    Each run is a trace, a log of calls or counters, or the path of one: two drafts, two settings, an engine before and
    after an upgrade, or what a trace expects against what a server counted. Runs that share prompts are compared prompt
    by prompt. Intervals are for prompts drawn independently; totals without prompts are taken to be as clustered as
    the other run, or else as independent calls, which is a lower bound of their noise.

    Parameters
    ----------
    one, other
        What is compared; differences are the second less the first.
    k
        Drafts per call, where both are traces. A log or counters say it themselves, and both runs need the same: with
        another k calls start elsewhere, and every position differs without any fault.
    rule
        The rule of traces.
    texts
        Two traces, of the texts of the one and of the other log. They separate a harder text from the rest: a weaker
        draft or a fault of the engine.
    names
        What the runs are called in messages.

    Raises
    ------
    SettingError
        Runs of different k, or texts without logs.
    TextError
        Counts without positions.

    Examples
    --------
    >>> found = compare(Counters(calls=400, survival=(0.8,)), Counters(calls=400, survival=(0.7,)))
    >>> round(found.tokens.z, 2), found.differs(found.tokens)
    (-3.29, True)
    """
    check_words(rule, names)
    texts = several(argument("texts"), texts, remedy="name two traces, or none")
    sides = evidence_of(one), evidence_of(other)
    k = None if k is None else whole(argument("k"), k, most=MOST_DRAFTS, remedy="give the drafts per call")
    runs = two_runs(names, sides, k=k, rule=rule)
    if runs[0].k != runs[1].k:
        raise SettingError(
            f"calls draft {runs[0].k} tokens in {names[0]} and {runs[1].k} in {names[1]}",
            limit="with another k calls start elsewhere: every position differs without any fault",
            remedy="serve both with one k, or compare each with a trace",
        )
    found = difference(*runs)
    return _explained(found, sides, texts, rule) if texts else found


def check_words(rule: str, names: tuple[str, str]) -> None:
    """Check the name of a rule, and what two runs are called."""
    instance(argument("rule"), rule, str, remedy="token is one")
    named_rules([rule])
    if not isinstance(names, tuple) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise SettingError(f"names is {shown(names)}", limit="needs two texts", remedy="leave it out")


def evidence_of(given: Evidence | str | Path) -> Evidence:
    """What is given itself, or by the path of a file of it."""
    found: Any = read_evidence(located(given)) if isinstance(given, str | Path) else given
    if isinstance(found, Trace | CallLog | Counters):
        return found
    raise SettingError(
        f"a run is {shown(found)}", limit="needs a trace, a log of calls or counters", remedy="name the file of one"
    )


def difference(one: Run, other: Run) -> Difference:
    """The changes from one run to another of the same k."""
    shared = _shared(one, other)
    clustering = np.maximum(one.clustering, other.clustering)
    variance = one.variance(clustering) + other.variance(clustering)
    if shared and one.errors is None and other.errors is None:
        places = [{name: row for row, name in enumerate(run.prompts)} for run in (one, other)]
        rows = [[of[name] for name in shared] for of in places]
        variance = variance - 2 * (one.influence[rows[0]] * other.influence[rows[1]]).sum(axis=0)
    totals = any(len(run.prompts) < 2 and run.errors is None for run in (one, other))
    noise = _Noise(np.sqrt(np.maximum(variance, 0.0)), min(one.freedom, other.freedom), one.slack + other.slack)
    changes = noise.changes(one.shares, other.shares)
    return Difference(one, other, changes, len(shared), float(clustering[0]) if totals else 1.0)


def _shared(one: Run, other: Run) -> list[Hashable]:
    """The prompts of both runs; too few say nothing of their noise."""
    if min(len(one.prompts), len(other.prompts)) < 2:
        return []
    known = set(other.prompts)
    return [name for name in one.prompts if name in known]


@dataclass(frozen=True)
class _Noise:
    """Standard deviations of the changes ``[k + 1]``, their degrees of freedom, and what is no chance of them."""

    deviations: Floats
    freedom: float
    slack: Floats | float

    def changes(self, one: Floats, other: Floats) -> tuple[Change, ...]:
        names = ["tokens per call", *(f"position {i}" for i in range(1, len(one)))]
        slack = np.broadcast_to(self.slack, one.shape)
        rows = zip(names, *(each.tolist() for each in (one, other, self.deviations, slack)), strict=True)
        return tuple(Change(what, a, b, error, self.freedom, least) for what, a, b, error, least in rows)


def _explained(
    found: Difference, sides: Sequence[Evidence], texts: Sequence[Trace | str | Path], rule: str
) -> Difference:
    """The part of each change that the texts make, and the rest, which is compared prompt by prompt."""
    if len(texts) != 2 or not all(isinstance(side, CallLog) for side in sides):
        raise SettingError(
            f"{len(texts)} traces of texts are given",
            limit="two, of the texts of two logs of calls, separate texts from the rest",
            remedy="name the trace of each log's own texts, in the order of the logs",
        )
    whole, expected = all(map(starts_known, sides)), []
    for log, trace in zip(sides, texts, strict=True):
        assert isinstance(log, CallLog)
        aligned = align_texts(given_trace(trace), log)
        counting = counting_of(log, found.k)
        expected.append(expected_run("", aligned, rule, counting, whole=whole, prompts=keys(log)))
    pairs = list(zip((found.one, found.other), expected, strict=True))
    gaps = [run.shares - own.shares for run, own in pairs]
    variance = sum(((run.influence - own.influence) ** 2).sum(axis=0) for run, own in pairs)
    slack = expected[0].slack + expected[1].slack
    rest = _Noise(np.sqrt(variance), min(found.one.freedom, found.other.freedom), slack).changes(*gaps)
    certain = _Noise(np.zeros(found.k + 1), math.inf, slack).changes(*(own.shares for own in expected))
    return replace(found, texts=certain, rest=rest)
