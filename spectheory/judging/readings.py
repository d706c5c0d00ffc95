"""What an engine's counts say without its texts: tokens per call at every k, and the k that pays (§13).

Accepted tokens by position are the survival S_i = P(accepted >= i) at the starts of the engine's own calls. At the
engine's k, tokens per call are 1 + sum of S_i: exact for what was counted. Calls of another k start at other positions,
so tokens per call there are a *reading*, an estimate. There are two (§14, :mod:`spectheory.prediction.renewal`): the
*renewal* reading belongs to drafts that read the text alone (models, lookup) under a rule that decides position by
position (token, argmax, greedy, lookup); the *sum* of the same shares is too low for these at a shorter k, too high at
a longer one. Block verification and draft heads lie between: where the rule is one of these or unknown, the reading is
the middle of both and its range spans them. Ranges hold the error of counting too. Where only means
are known, at one k or several, hazards are constant between them (:mod:`spectheory.prediction.step_hazards`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from spectheory.checks import instance
from spectheory.cost import ConstantRatio, CostModel, Roofline
from spectheory.cost.model import reads_besides
from spectheory.deployment import ChainCalls, Load, LoadAnswer, under_load
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TextError
from spectheory.intervals import Interval
from spectheory.judging.first_choices import first_choices
from spectheory.prediction.guessed_ratio import AtRatio, chains_at_ratios
from spectheory.prediction.over_prompts import left_out, ratio, reach
from spectheory.prediction.renewal import Renewal, Summed, read_at, spread_of_calls, tokens_counted
from spectheory.prediction.step_hazards import falls, step_hazards, tokens_from_means
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters, by_accepted, depth_of, pooled
from spectheory.verification import PATH_RULES, LookupMatch
from spectheory.verification.base import PositionRule

FALSE_ALARM = 0.01
"""Share of comparisons of equal acceptances that are said to differ, if calls are independent."""


@dataclass(frozen=True)
class FirstDraftGap:
    """Shares of calls that accepted their first draft in two runs, and the deviations between them."""

    one: float
    other: float
    z: float

    @property
    def differ(self) -> bool:
        """Whether they differ beyond noise (two-sided, at :data:`FALSE_ALARM` for independent calls)."""
        return 2 * float(ndtr(-abs(self.z))) < FALSE_ALARM

    def sentence(self, names: tuple[str, str]) -> str:
        """The comparison in words."""
        verdict = (
            "beyond the noise of independent calls: expected of other k or other texts, as calls start elsewhere"
            if self.differ
            else "within noise"
        )
        shown = f"{self.one:.3f} in {names[0]}, {self.other:.3f} in {names[1]}"
        return f"Acceptance at position 1: {shown} ({self.z:+.1f} deviations), {verdict}."


def first_draft_gap(one: Counters | CallLog, other: Counters | CallLog) -> FirstDraftGap | None:
    """Compare the acceptance at position 1 of two runs: their difference in deviations of the pooled share.

    None without calls and counts by position.

    Examples
    --------
    >>> gap = first_draft_gap(Counters(calls=400, survival=(0.8,)), Counters(calls=400, survival=(0.7, 0.5)))
    >>> round(gap.z, 2), gap.differ
    (3.27, True)
    """
    one, other = _counts(one), _counts(other)
    if not (one.calls and other.calls and one.survival and other.survival):
        return None
    shares = one.survival[0], other.survival[0]
    mean = (shares[0] * one.calls + shares[1] * other.calls) / (one.calls + other.calls)
    deviation = math.sqrt(mean * (1 - mean) * (1 / one.calls + 1 / other.calls))
    return FirstDraftGap(*shares, z=(shares[0] - shares[1]) / deviation if deviation else 0.0)


def _counts(run: Counters | CallLog) -> Counters:
    return instance("a run", pooled(run), Counters, remedy="spectheory.trace.read_evidence reads one")


Basis = Literal["counted", "drafted so far", "own starts", "constant hazard"]
"""``counted``: the engine's own k. ``own starts``: a reading at a shorter k, ``constant hazard`` at a longer one.
``drafted so far``: where calls draft a variable number, hazards among those that drafted so far, multiplied."""
Noise = Literal["requests", "calls", "unknown"]
"""Intervals (95%) of the engine's own k are over requests, or binomial over calls as if these were independent: a lower
bound of the noise."""
_WHY_POSITION_1 = (
    "Acceptance at position 1 is that at the starts of this run's own calls. A longer chain passes over easy stretches "
    "in one call, so its calls start more often at hard tokens: position 1 differs between k without any fault."
)
_VARIABLE = (
    "Calls drafted a variable number of tokens: shares are among the calls that drafted so far, and a chain of k "
    "multiplies them. Where an engine stops drafting because it is unsure, these calls are a selected set."
)
_OTHER_K = (
    "Other k are read from the counts of this one, as their calls start elsewhere: an estimate. Its range spans two "
    "readings, matches that renew at every miss and the same shares summed, and the 95% error of counting."
)
_RENEWED = (
    "Other k are read from the counts of this one, as their calls start elsewhere: an estimate, by matches that renew "
    "at every miss. It is for draft models and lookup, not for heads. Its range is the 95% error of counting."
)
BEYOND = "Beyond the engine's k nothing was counted: the chance of a match is kept as it was after k matches."
_FROM_ONE = (
    "Counts at one position do not show how matches cluster. Both readings coincide, and longer chains may be off by "
    "more than the range says: by up to 12% on the built-in pair."
)
FROM_MEAN = (
    "Without counts by position, drafts between two k with known means are taken to be accepted with one chance. Other "
    "k have the range of every text with these means, if the rule decides each position alone (C6)."
)
_FALLS = (
    "Tokens per call fall from k = {} to k = {}. In the mean they rise for a draft that reads the text alone: runs may "
    "differ by chance, and a head may draft worse in longer chains."
)
_K_FROM_MEAN = "k is not in the log; calls drafted {mean:.2f} tokens on average, and k = {k} is taken."
_OVER_CALLS = "Intervals (95%) take calls as independent; calls of one text are not: the true noise is larger."
_OVER_REQUESTS = "Intervals (95%) are over requests."
FIRST_CHOICES = (
    "First choices: ends for a draft model that proposes its first choices (argmax drafts, or temperature 0), by the "
    "accepted tokens of each call; certain of such a draft alone, an estimate for heads, n-grams and sampled drafts."
)
_FROM_LOG = "c = {c:.3f} from the log's own times, a call's verification taken as one target step: an estimate."


@dataclass(frozen=True)
class ReadingAtK:
    """Chains of k drafts: `tokens_per_call` with the recovered or bonus token, and what it rests on.

    `survival` and `hazard` are those of position k; `speedup` needs a cost; `first_choices` are ends of tokens per call
    for a draft that proposes its first choices (:func:`~spectheory.judging.first_choices.first_choices`). `renewal` and
    `summed` are the two readings of another k; None where k was counted, or positions were not.
    """

    k: int
    survival: Interval
    hazard: float | None
    tokens_per_call: Interval
    basis: Basis
    speedup: Interval | None = None
    first_choices: Interval | None = None
    renewal: float | None = None
    summed: float | None = None


@dataclass(frozen=True)
class Readings:
    """What the counts say at every k: `rows` from 1 on; `k` is the engine's.

    `assumptions` say what the rows rest on, a sentence each. `c` is the cost ratio that was given, and `guessed` has
    the best k at half and at twice as much. `load` is what chains up to the engine's k give under a load, by a
    roofline, `free` whether that takes drafts as free, as counts do not say what drafted.
    """

    counters: Counters
    k: int
    rows: tuple[ReadingAtK, ...]
    noise: Noise
    assumptions: tuple[str, ...] = field(default=())
    rule: str = ""
    c: float | None = None
    guessed: tuple[AtRatio, ...] = ()
    load: LoadAnswer | None = None
    free: bool = False

    @property
    def counted(self) -> ReadingAtK:
        """The engine's own k."""
        return self.rows[self.k - 1]

    @property
    def best(self) -> ReadingAtK | None:
        """The fastest k up to the engine's; None without a cost."""
        return _fastest(self.rows[: self.k])

    @property
    def best_beyond(self) -> ReadingAtK | None:
        """A longer chain that would be faster; None if there is none."""
        fastest = _fastest(self.rows)
        return fastest if fastest and fastest.k > self.k else None


def _fastest(rows: Sequence[ReadingAtK]) -> ReadingAtK | None:
    """The shortest of the fastest chains."""
    known = [row for row in rows if row.speedup]
    return max(known, key=lambda row: row.speedup.best if row.speedup else 0.0, default=None)


def readings(
    evidence: Counters | CallLog,
    cost: CostModel | None = None,
    *,
    k_max: int = 16,
    rule: str = "",
    load: Load | None = None,
) -> Readings:
    """Tokens per call at k = 1..k_max, and speed-ups where a cost is given or the log has times of its own.

    `rule` is the name of the rule that the engine runs with a draft model or lookup: one that decides position by
    position has a reading of its own at other k. Leave it out for draft heads. A `load` is planned for by a roofline.

    A ``TextError`` says what is missing if no tokens per call follow from the counts.

    Examples
    --------
    >>> answer = readings(Counters(calls=100, drafted=200, accepted=90, survival=(0.6, 0.3), k=2), k_max=3)
    >>> [(row.k, round(row.tokens_per_call.best, 3), row.basis) for row in answer.rows]
    [(1, 1.592, 'own starts'), (2, 1.9, 'counted'), (3, 2.058, 'constant hazard')]
    >>> answer.rows[0].tokens_per_call.low < 1.6 < answer.rows[0].tokens_per_call.high
    True
    """
    log = evidence if isinstance(evidence, CallLog) else None
    counters = pooled(evidence)
    law = _Law.of(counters)
    mean, noise = _tokens_per_call(counters, log)
    cost, from_log = (cost, "") if cost else _cost_in(counters)
    renews, spread = _renews(rule), covariance(counters, log)
    two = (Renewal(law.known), Summed(law.known)) if law.known and not law.variable else None
    rows: list[ReadingAtK] = []
    for k in range(1, max(k_max, law.k) + 1):
        above = law.at(k - 1) if k > 1 else 1.0
        survival, basis = law.at(k), law.basis(k)
        known = k <= len(law.known)
        renewal = summed = None
        if known and basis == "counted":
            tokens = mean(k)
        elif two:
            renewal, summed = (reading.tokens(k) for reading in two)
            tokens = read_at(law.known, k, spread, renews=renews)
        else:
            tokens = _spread(law, k, counters)
        share = _survival_at(counters, log, k) if known and not law.variable else Interval.estimate(survival)
        rows.append(
            ReadingAtK(
                k=k,
                survival=share,
                hazard=survival / above if above else None,
                tokens_per_call=tokens,
                basis=basis,
                speedup=speedup_at(cost, tokens, k, survival),
                first_choices=first_choices(log, k),
                renewal=renewal,
                summed=summed,
            )
        )
    lines = [
        *([_VARIABLE] if law.variable else [_RENEWED if renews else _OTHER_K] if two else []),
        *([_FROM_ONE] if two and len(law.known) == 1 else []),
        *([] if law.known else [FROM_MEAN]),
        *([_FALLS.format(*fall)] if (fall := falls(law.means)) else []),
        *([] if law.known or counters.k else [_K_FROM_MEAN.format(mean=counters.mean_drafted, k=law.k)]),
        *([BEYOND] if len(rows) > law.k else []),
        *({"requests": [_OVER_REQUESTS], "calls": [_OVER_CALLS], "unknown": []}[noise]),
        *([FIRST_CHOICES] if rows[0].first_choices else []),
        *([from_log] if from_log else []),
        *([_WHY_POSITION_1] if law.known else []),
    ]
    c = cost.c if isinstance(cost, ConstantRatio) and not from_log else None
    guessed = () if c is None else chains_at_ratios(cost, ((row.k, row.tokens_per_call) for row in rows[: law.k]))
    loaded = _loaded(rows[: law.k], cost, load)
    free = isinstance(cost, Roofline) and cost.draft is None and not (rule and not PATH_RULES[rule].uses_draft)
    return Readings(counters, law.k, tuple(rows), noise, tuple(lines), rule, c, guessed, loaded, free)


def _loaded(rows: Sequence[ReadingAtK], cost: CostModel | None, load: Load | None) -> LoadAnswer | None:
    """What chains up to the engine's k give under a load, by a roofline."""
    if load is None or not isinstance(cost, Roofline):
        return None
    chains = [ChainCalls(Chain(row.k), row.tokens_per_call.best, row.survival.best) for row in rows]
    return under_load(chains, cost, load)


def _renews(rule: str) -> bool:
    """Whether a rule decides position by position, so that the renewal reading is its own; refuses unknown names."""
    if not rule:
        return False
    if rule not in PATH_RULES:
        raise SettingError(f"rule is {rule!r}", limit=f"there are {', '.join(PATH_RULES)}", remedy="use one of them")
    return isinstance(PATH_RULES[rule], PositionRule | LookupMatch)


def _spread(law: _Law, k: int, counters: Counters) -> Interval:
    """Tokens per call from means, or by separate hazards: the error of a count is at most that of m in 0..k."""
    tokens = tokens_from_means(dict(law.means), k) if law.means else Interval.estimate(1 + math.fsum(law.shares[:k]))
    mean = tokens.best - 1
    half = reach(np.inf) * math.sqrt(mean * (k - mean) / counters.calls) if counters.calls else 0.0
    return Interval(max(tokens.low - half, 1.0), tokens.best, min(tokens.high + half, k + 1.0), "estimate")


@dataclass(frozen=True)
class _Law:
    """Survival by position up to k, then the last hazard: as counted, or from `means` at some k."""

    shares: tuple[float, ...]
    hazard: float
    means: tuple[tuple[int, float], ...] = ()
    variable: bool = False

    @classmethod
    def of(cls, counters: Counters) -> _Law:
        variable = bool(counters.hazards) and (counters.drafted or 0) < (counters.k or 0) * (counters.calls or 0)
        means = () if counters.survival or variable else counters.lengths or (_mean(counters),)
        hazards = step_hazards(dict(means)) if means else counters.hazards
        shares = tuple(accumulate(hazards, mul)) if means or variable else counters.survival
        above = shares[-2] if len(shares) > 1 else 1.0
        return cls(shares, shares[-1] / above if above else 0.0, means, variable)

    @property
    def known(self) -> tuple[float, ...]:
        """The shares that were counted by position."""
        return () if self.means else self.shares

    @property
    def k(self) -> int:
        """The longest k that was counted."""
        return len(self.shares)

    def at(self, k: int) -> float:
        """Survival of position k."""
        return self.shares[k - 1] if k <= self.k else self.shares[-1] * self.hazard ** (k - self.k)

    def basis(self, k: int) -> Basis:
        """What tokens per call of chains of k rest on."""
        if self.variable and k <= self.k:
            return "drafted so far"
        if k == self.k or k in dict(self.means):
            return "counted"
        return "own starts" if k < len(self.known) else "constant hazard"


def _mean(counters: Counters) -> tuple[int, float]:
    """The k and tokens per call of counters without counts by position."""
    k = counters.k or _nearest(counters)
    if counters.length is None or k is None:
        missing = "tokens per call" if counters.length is None else "k, the drafts of a call"
        raise TextError(
            f"the counts of {counters.engine or 'the engine'} do not say {missing}",
            limit="readings need calls with accepted tokens, and k",
            remedy="import a log with counts by position",
        )
    if counters.length > k + 1:
        raise TextError(
            f"{counters.length:.4g} tokens per call with k = {k}",
            limit="at most k + 1",
            remedy="check the log for mixed settings",
        )
    return k, counters.length


def _nearest(counters: Counters) -> int | None:
    """A k that the mean number of drafts allows: the nearest one that the accepted tokens fit in."""
    if not counters.calls or counters.mean_drafted is None:
        return None
    return max(round(counters.mean_drafted), math.ceil((counters.accepted or 0) / counters.calls), 1)


def _cost_in(counters: Counters) -> tuple[CostModel | None, str]:
    """A ratio from the draft's share of the log's own time, and a sentence that says so."""
    share = counters.provenance.get("draft_share")
    if counters.seconds and counters.draft_seconds is not None:
        share = counters.draft_seconds / counters.seconds
    if not isinstance(share, float) or not 0 <= share < 1 or not counters.k:
        return None, ""
    c = share / (1 - share) / counters.k
    return ConstantRatio(c), _FROM_LOG.format(c=c)


def speedup_at(cost: CostModel | None, tokens: Interval, k: int, full: float) -> Interval | None:
    """The speed-up; None where latencies were not measured that far."""
    if cost is None:
        return None
    try:
        return cost.speedup(tokens, Chain(k), reads_besides(cost, tokens.best - 1, full))
    except SettingError:
        return None


def _reached(log: CallLog) -> NDArray[np.float64]:
    """Calls of each request that accepted at least i tokens, i = 0..depth, ``[requests, depth + 1]``."""
    counts = [by_accepted(each) for each in log.requests]
    depths = range(depth_of(log) + 1)
    return np.array([[sum(n for j, n in each.items() if j >= i) for i in depths] for each in counts], dtype=float)


def _tokens_per_call(counters: Counters, log: CallLog | None) -> tuple[Callable[[int], Interval], Noise]:
    """Tokens per call of chains of k with their 95% interval, and what that is over."""
    if log is not None and len(log) > 1 and counters.survival:
        reached = _reached(log)
        calls = left_out(reached[:, 0])
        return lambda k: ratio(left_out(reached[:, : k + 1].sum(axis=1)), calls, limits=(1.0, k + 1.0)), "requests"

    def over_calls(k: int) -> Interval:
        counted = counters.survival[:k]
        if counters.calls:
            return tokens_counted(counted, counters.calls)
        return Interval.estimate(1 + math.fsum(counted))

    return over_calls, "calls" if counters.calls and counters.survival else "unknown"


def _survival_at(counters: Counters, log: CallLog | None, i: int) -> Interval:
    """The share of calls that accepted at least i tokens with its 95% interval, over requests where there are several.

    It is never shorter than that of independent calls, so few requests that agree by chance are not taken as certain.
    """
    share = counters.survival[i - 1]
    independent = _share_of_calls(share, counters.calls)
    if log is None or len(log) < 2:
        return independent
    reached = _reached(log)
    over = ratio(left_out(reached[:, i]), left_out(reached[:, 0]), limits=(0.0, 1.0))
    return Interval(min(over.low, independent.low), share, max(over.high, independent.high), independent.kind)


def covariance(counters: Counters, log: CallLog | None) -> NDArray[np.float64] | None:
    """Covariance ``[k, k]`` of the counted survival: over requests, or as if calls were independent; None if unknown.

    Over few requests it is at least that of independent calls on the diagonal.
    """
    if not counters.calls or not counters.survival:
        return None
    of_calls = spread_of_calls(counters.survival, counters.calls)
    if log is None or len(log) < 2:
        return of_calls
    reached = _reached(log)[:, : len(counters.survival) + 1]
    calls = reached[:, 0]
    off = reached[:, 1:] - np.outer(calls, counters.survival)
    over = off.T @ off / calls.sum() ** 2 * len(calls) / (len(calls) - 1)
    return of_calls if np.trace(of_calls) > np.trace(over) else np.asarray(over)


def _share_of_calls(share: float, calls: int | None) -> Interval:
    """A share of calls with Wilson's 95% interval, which is valid near 0 and 1 too."""
    if not calls:
        return Interval.estimate(share)
    z = reach(np.inf)
    weight = 1 + z**2 / calls
    centre = (share + z**2 / (2 * calls)) / weight
    half = z / weight * math.sqrt(share * (1 - share) / calls + (z / (2 * calls)) ** 2)
    return Interval(min(max(centre - half, 0.0), share), share, max(min(centre + half, 1.0), share), "statistical")
