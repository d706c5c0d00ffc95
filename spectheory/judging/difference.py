"""Two runs against each other: tokens per call and acceptance by position, paired by the prompts that both have."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from spectheory.checks import instance, located, several, shown, whole
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TextError, argument
from spectheory.intervals import Interval
from spectheory.judging.judgement import align_texts
from spectheory.prediction.at_starts import CallStarts
from spectheory.prediction.over_prompts import FEW, reach
from spectheory.prediction.plan_answer import named_rules
from spectheory.trace import Trace, read_evidence
from spectheory.trace.calls import MOST_DRAFTS, CallLog
from spectheory.trace.counters import Counters, by_accepted, depth_of
from spectheory.trace.reading import given_trace

Floats = NDArray[np.float64]
Evidence: TypeAlias = Trace | CallLog | Counters
FALSE_ALARM = 0.01
"""Share of comparisons of equal runs that are said to differ, over tokens per call and all positions together."""


@dataclass(frozen=True)
class Run:
    """Calls, and calls that accepted at least 1, ..., k drafts, of each prompt: `counts` ``[prompts, k + 1]``.

    `prompts` names the rows; it is empty where totals alone are known, which are one row. `errors` ``[k + 1]`` are then
    the standard deviations of tokens per call and of the shares by position, if they are known otherwise. `rule` is the
    rule of a trace, whose counts are expected ones.
    """

    name: str
    counts: Floats
    prompts: tuple[Hashable, ...] = ()
    errors: Floats | None = None
    rule: str = ""

    @classmethod
    def of(cls, name: str, evidence: Evidence, *, k: int | None = None, rule: str = "token") -> Run:
        """What a log or a scrape counted, or what a trace expects of chains of `k` drafts under a rule.

        Examples
        --------
        >>> Run.of("a", Counters(calls=4, survival=(0.5, 0.25))).shares.tolist()
        [1.75, 0.5, 0.25]
        """
        if isinstance(evidence, Trace):
            return _with_calls(cls._expected(name, evidence, k, rule))
        found = cls._of_log(name, evidence) if isinstance(evidence, CallLog) else _of_totals(name, evidence)
        _with_calls(found)
        if k is not None and k != found.k:
            raise SettingError(
                f"{argument('k')} is {k}",
                limit=f"{name} counted calls of {found.k} drafts",
                remedy="leave it out, or serve that k",
            )
        return found

    @classmethod
    def _expected(cls, name: str, trace: Trace, k: int | None, rule: str) -> Run:
        if k is None:
            raise SettingError(
                "k is not given", limit="traces have no length of calls", remedy="give the drafts per call"
            )
        counts = expected_counts(trace, rule, k)
        return cls(name, *_by_prompt(counts, [text.prompt or text.id for text in trace.texts]), rule=rule)

    @classmethod
    def _of_log(cls, name: str, log: CallLog) -> Run:
        depth, rows = depth_of(log), []
        for request in log.requests:
            found = by_accepted(request)
            if not found and request.calls != 0:
                raise TextError(
                    f"request {request.id!r} of {name} has no accepted tokens of its calls",
                    limit="positions are compared",
                    remedy="log them, or compare the engine's counters",
                )
            rows.append([sum(n for j, n in found.items() if j >= i) for i in range(depth + 1)])
        return cls(name, *_by_prompt(np.array(rows, dtype=float).reshape(-1, depth + 1), _keys(log)))

    @property
    def k(self) -> int:
        """Drafts of a call."""
        return self.counts.shape[1] - 1

    @property
    def calls(self) -> float:
        """All calls."""
        return float(self.counts[:, 0].sum())

    @property
    def shares(self) -> Floats:
        """Tokens per call, and the share of calls that accepted at least i drafts, ``[k + 1]``."""
        return self._sums.sum(axis=0) / self.calls

    @property
    def _sums(self) -> Floats:
        """What the shares are sums of, by prompt."""
        return np.column_stack([self.counts.sum(axis=1), self.counts[:, 1:]])

    @property
    def influence(self) -> Floats:
        """What each prompt adds to the error of the shares ``[prompts, k + 1]``: their squares add up to the variance.

        The linearised ratio of sums over prompts, for prompts that are drawn independently.
        """
        rows = len(self.counts)
        return math.sqrt(rows / (rows - 1)) * (self._sums - self.shares * self.counts[:, :1]) / self.calls

    @property
    def of_calls(self) -> Floats:
        """Variances of the shares if calls were independent, ``[k + 1]``."""
        survival = self.shares[1:]
        squares = float((2 * np.arange(1, self.k + 1) - 1) @ survival)
        return np.array([squares - survival.sum() ** 2, *(survival * (1 - survival))]) / self.calls

    @property
    def clustering(self) -> float:
        """By how much calls of one prompt depend: variance of tokens per call over that of independent calls."""
        if len(self.prompts) < FEW or self.of_calls[0] <= 0:
            return 1.0
        return max(1.0, float((self.influence[:, 0] ** 2).sum() / self.of_calls[0]))

    def variance(self, clustering: float) -> Floats:
        """Variances of the shares; those of totals alone are taken to be as clustered as the other run's."""
        if self.errors is not None:
            return self.errors**2
        if len(self.prompts) < 2:
            return self.of_calls * clustering
        return np.asarray((self.influence**2).sum(axis=0))


def _with_calls(run: Run) -> Run:
    """The run, if it has a call."""
    if not run.calls > 0:
        raise TextError(
            f"{run.name} has no call", limit="shares are of calls", remedy="use longer texts, or serve some"
        )
    return run


def expected_counts(trace: Trace, rule: str, k: int) -> Floats:
    """Expected calls of each text, and those that accept at least 1, ..., k drafts, ``[texts, k + 1]``."""
    chosen = (named_rules([rule]) or [])[0]
    starts = CallStarts.of(trace.held(), chosen, Chain(k), prefill_emits_token=True)
    of_text = np.repeat(np.arange(len(trace.texts)), trace.lengths)
    rows = starts.counted[:, None] * np.column_stack([np.ones(len(of_text)), starts.survival])
    return np.stack([np.bincount(of_text, column, len(trace.texts)) for column in rows.T], axis=1)


def _keys(log: CallLog) -> list[Hashable]:
    """What names the prompt of each request."""
    return [request.prompt or request.id for request in log.requests]


def _of_totals(name: str, counters: Counters) -> Run:
    if not (counters.calls and counters.survival):
        raise TextError(
            f"{name} has no calls, or no counts by position",
            limit="positions are compared",
            remedy="scrape while the engine speculates, or compare a log of its calls",
        )
    return Run(name, counters.calls * np.array([[1.0, *counters.survival]]))


def _by_prompt(counts: Floats, keys: Sequence[Hashable]) -> tuple[Floats, tuple[Hashable, ...]]:
    """Rows of one prompt added up."""
    names = tuple(dict.fromkeys(keys))
    number = {name: i for i, name in enumerate(names)}
    rows = np.array([number[key] for key in keys], dtype=np.int64)
    return np.stack([np.bincount(rows, column, len(names)) for column in counts.T], axis=1), names


@dataclass(frozen=True)
class Change:
    """A number of both runs; `difference` is the other's less the first one's, with its 95% interval."""

    what: str
    one: float
    other: float
    difference: Interval
    deviation: float

    @property
    def z(self) -> float:
        """The difference in standard deviations."""
        return self.difference.best / self.deviation if self.deviation else 0.0


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
        return 2 * float(ndtr(-abs(change.z))) < FALSE_ALARM / len(self.changes)


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
    sides = [evidence_of(each) for each in (one, other)]
    k = None if k is None else whole(argument("k"), k, most=MOST_DRAFTS, remedy="give the drafts per call")
    counted = [Run.of(name, side) for name, side in zip(names, sides, strict=True) if not isinstance(side, Trace)]
    length = k or next((run.k for run in counted), None)
    runs = [Run.of(name, side, k=_asked(side, k, length), rule=rule) for name, side in zip(names, sides, strict=True)]
    if runs[0].k != runs[1].k:
        raise SettingError(
            f"calls draft {runs[0].k} tokens in {names[0]} and {runs[1].k} in {names[1]}",
            limit="with another k calls start elsewhere: every position differs without any fault",
            remedy="serve both with one k, or compare each with a trace",
        )
    found = difference(*runs)
    return _explained(found, sides, texts, rule) if texts else found


def _asked(side: Evidence, k: int | None, length: int | None) -> int | None:
    """The k that a run is asked for: a trace takes that of the other run."""
    return length if isinstance(side, Trace) else k


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
    clustering = max(one.clustering, other.clustering)
    variance = one.variance(clustering) + other.variance(clustering)
    if shared and one.errors is None and other.errors is None:
        places = [{name: row for row, name in enumerate(run.prompts)} for run in (one, other)]
        rows = [[of[name] for name in shared] for of in places]
        variance = variance - 2 * (one.influence[rows[0]] * other.influence[rows[1]]).sum(axis=0)
    totals = any(len(run.prompts) < 2 and run.errors is None for run in (one, other))
    changes = _changes(one.shares, other.shares, np.sqrt(np.maximum(variance, 0.0)))
    return Difference(one, other, changes, len(shared), clustering if totals else 1.0)


def _shared(one: Run, other: Run) -> list[Hashable]:
    """The prompts of both runs; too few say nothing of their noise."""
    if min(len(one.prompts), len(other.prompts)) < 2:
        return []
    known = set(other.prompts)
    return [name for name in one.prompts if name in known]


def _changes(one: Floats, other: Floats, deviations: Floats) -> tuple[Change, ...]:
    names = ["tokens per call", *(f"position {i}" for i in range(1, len(one)))]
    rows = zip(names, one.tolist(), other.tolist(), deviations.tolist(), strict=True)
    return tuple(Change(what, a, b, _within(b - a, error), error) for what, a, b, error in rows)


def _within(best: float, deviation: float) -> Interval:
    half = reach(np.inf) * deviation
    return Interval(best - half, best, best + half, "statistical")


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
    expected = []
    for log, run, trace in zip(sides, (found.one, found.other), texts, strict=True):
        assert isinstance(log, CallLog)
        counts = expected_counts(align_texts(given_trace(trace), log), rule, found.k)
        expected.append(replace(run, counts=_by_prompt(counts, _keys(log))[0]))
    pairs = list(zip((found.one, found.other), expected, strict=True))
    gaps = [run.shares - own.shares for run, own in pairs]
    variance = sum(((run.influence - own.influence) ** 2).sum(axis=0) for run, own in pairs)
    certain = _changes(expected[0].shares, expected[1].shares, np.zeros(found.k + 1))
    return replace(found, texts=certain, rest=_changes(gaps[0], gaps[1], np.sqrt(variance)))
