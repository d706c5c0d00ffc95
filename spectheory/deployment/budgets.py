r"""What a budget of verified drafts over a batch gives, planned from a trace and step times (§15).

R requests are decoded together without end: a request that ends is replaced at once. Under a rule that decides each
call's drafts from its own request, requests are independent, and a step finds each at a stationary start of a call. So
with T the tokens and K the drafts of a call at such a start, both exact for the texts of the trace,

.. math:: \text{tokens per second} = \frac{R\, E[T]}{E\, t(R + K_1 + \dots + K_R)} ,

with the law of the sum by convolution. Compared are plain decoding, chains of one length, a threshold on the draft's
confidence, and a threshold on the true probability of acceptance, which no engine knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import MOST_EXACT, amount, instance, several, whole
from spectheory.deployment.batch_budget import least_edges, sum_law
from spectheory.deployment.batches import BATCHES
from spectheory.deployment.step_times import StepTimes
from spectheory.distributions import Floats
from spectheory.drafting import Chain
from spectheory.drafting.stopping import ConfidenceBelow, TopBelow
from spectheory.drafting.tree import at_least_one
from spectheory.errors import SettingError, argument
from spectheory.intervals import Interval
from spectheory.prediction.adaptive import clairvoyant_seconds
from spectheory.prediction.law import moves_of
from spectheory.prediction.ngrams import in_trace
from spectheory.prediction.over_prompts import Prompts, interval
from spectheory.prediction.paths import tokens_left
from spectheory.prediction.recorded import check_depth, recorded_rules
from spectheory.prediction.shape_calls import by_parallel_head, drafted
from spectheory.prediction.stopped import Drafted, rooms
from spectheory.trace import Trace
from spectheory.trace.record import a_trace
from spectheory.verification import CopiedFirst, PathRule
from spectheory.verification.by_start import along_calls, missing, within
from spectheory.verification.copied import CopiedMatch
from spectheory.verification.registry import path_rule

THRESHOLDS = 32
"""Of each kind of budget, by default."""
_CONFIDENCES = (ConfidenceBelow.reads, TopBelow.reads)
"""Columns that may decide, the first that a trace has: both are known before the draft is drawn."""
_QUANTILES = (0.05, 0.5, 0.95)
_LARGEST_BATCH = 4096
PLAIN, FIXED, CONFIDENT, INFORMED = "plain", "fixed", "confidence", "acceptance"
"""The policies: no drafts, k of every call, by confidence, by the probability of acceptance."""


@dataclass(frozen=True)
class BudgetPoint:
    """What one policy gives with so many requests at a time.

    `policy` is ``plain``, ``fixed``, ``confidence`` or ``acceptance``; `k` the most drafts of a request, `threshold`
    the least survival that is verified (0: all drafts), None of the first two. `drafts` and `tokens` are means of a
    request's call, `per_second` the tokens of all requests (95% over prompts; step times are taken as they are). A step
    takes `seconds` in the mean and outputs `step_mean` tokens, with their standard deviation and 5%, 50% and 95%
    quantiles.
    """

    batch: int
    policy: str
    k: int
    threshold: float | None
    drafts: float
    tokens: float
    per_second: Interval
    seconds: float
    step_mean: float
    step_deviation: float
    step_quantiles: tuple[int, int, int]

    @property
    def tpot(self) -> float:
        """Milliseconds per output token of a request."""
        return 1e3 * self.batch / self.per_second.best


@dataclass(frozen=True)
class BudgetChoice:
    """The best setting of every policy at one concurrency, and the `limit` in tokens per second.

    `longest` verifies all `k_max` drafts of every call. `confident` is None where nothing says how sure the draft is.
    No lossless rule that decides what to verify, whatever it reads, gives more than the limit in the mean over the same
    texts, with this draft, verification and step times (upper bound).
    """

    batch: int
    plain: BudgetPoint
    fixed: BudgetPoint
    longest: BudgetPoint
    confident: BudgetPoint | None
    informed: BudgetPoint
    limit: float

    @property
    def points(self) -> list[BudgetPoint]:
        """What an engine can run."""
        return [self.plain, self.fixed, *([self.confident] if self.confident else [])]

    @property
    def best(self) -> BudgetPoint:
        """The one of most tokens per second, the simplest of equal ones."""
        return max(self.points, key=lambda point: point.per_second.best)


@dataclass(frozen=True)
class BudgetAnswer:
    """A plan of budgets: a choice for each concurrency, ascending.

    `column` is the confidence that decides, None without one, and then `reason` says why. `tpot` is the longest time
    per output token, milliseconds, where one was given.
    """

    choices: Sequence[BudgetChoice]
    rule: PathRule
    k_max: int
    column: str | None
    reason: str
    texts: int
    tpot: float | None = None

    @property
    def goodput(self) -> BudgetPoint | None:
        """The most tokens per second of what an engine can run within the target; None if nothing meets it."""
        points = [point for choice in self.choices for point in choice.points]
        within_target = [point for point in points if self.tpot is None or point.tpot <= self.tpot]
        return max(within_target, key=lambda point: point.per_second.best, default=None)


def plan_budgets(
    trace: Trace,
    steps: StepTimes,
    rule: PathRule | str | None = None,
    *,
    batches: Sequence[int] | None = None,
    k_max: int = 16,
    tpot: float | None = None,
    thresholds: int = THRESHOLDS,
) -> BudgetAnswer:
    """The best budget, fixed length and limit for each concurrency (§15).

    Without a `rule` it is token verification, or the first draft of recorded lengths. Without `batches` they are the
    powers of two up to 256 that the step times cover with `k_max` drafts of every request. Drafts are made for all
    requests, `k_max` deep where a pass drafts them all and where drafts are free, else of the depth that is best. Each
    threshold is of `thresholds` equally spaced quantiles, and 0; it is chosen on the texts that it is scored on, and
    intervals do not include that choice.

    Examples
    --------
    >>> from spectheory.deployment.step_times import StepTable
    >>> trace = Trace.from_log_probabilities([([-1.0] * 60, [-1.0, -4.0] * 30)] * 2)
    >>> choice, = plan_budgets(trace, StepTable((1, 4096), (0.01, 0.2)), batches=[256], k_max=4).choices
    >>> round(choice.plain.per_second.best), round(choice.informed.per_second.best), round(choice.limit)
    (11726, 15113, 15324)
    """
    trace = a_trace(trace).in_memory()
    rule = path_rule((recorded_rules(trace)[0] if trace.recorded else "token") if rule is None else rule)
    instance("steps", steps, StepTimes, remedy="spectheory.deployment.step_times.StepTable is one")
    rule.require(trace.columns)
    depth = check_depth(trace, within(trace.columns, at_least_one("k_max", k_max)))
    if tpot is not None:
        amount(argument("tpot"), tpot, positive=True, remedy="give milliseconds")
    sizes = _sizes(batches, steps, depth)
    texts = _Texts(trace, rule, depth)
    settings = texts.settings(steps, sizes, whole("thresholds", thresholds, remedy="32 is usual"))
    choices = [_choice(texts, settings, steps, batch) for batch in sizes]
    return BudgetAnswer(choices, rule, depth, texts.column, texts.reason, len(trace.texts), tpot)


def _sizes(batches: Sequence[int] | None, steps: StepTimes, k: int) -> list[int]:
    """The concurrencies that are asked for, or the usual ones that are covered."""
    if batches is not None:
        given = several("batches", batches, remedy="[1, 8, 64] is one")
        sizes = sorted({whole("batch", each, most=_LARGEST_BATCH, remedy="count requests") for each in given})
        for batch in sizes:
            steps.verifying(batch, k)
        return sizes
    sizes = [batch for batch in BATCHES if steps.covers(batch, k)]
    if not sizes:
        raise SettingError(
            f"no concurrency of 1, 2, 4, ..., 256 is covered with {k} drafts of every request",
            limit="every request may verify all its drafts in one step",
            remedy=f"add step times, lower {argument('k_max')}, or name sizes with {argument('batches', '--batch')}",
        )
    return sizes


@dataclass(frozen=True)
class _Setting:
    """A policy at a setting: the drafts of calls from each start, if they equal the text, and sums over each text.

    `calls` ``[texts]`` are expected, `sums` ``[5, texts, k]`` say how many draft 1, ..., k tokens or more
    (:func:`_law`), `tokens` is the law of a call's tokens, none past the end of a text; `passes` are
    those of the draft model.
    """

    policy: str
    k: int
    threshold: float | None
    passes: int
    calls: Floats
    sums: Floats
    tokens: Floats

    @cached_property
    def drafts(self) -> Floats:
        """P(a call drafts j tokens), j = 0, 1, ..., as far as they are possible."""
        law = _law(self.sums.sum(axis=1), self.calls.sum())
        return law[: int(np.flatnonzero(law)[-1]) + 1]

    @property
    def mean_drafts(self) -> float:
        """Of a call."""
        return float(self.drafts @ np.arange(len(self.drafts)))


def _law(sums: Floats, calls: Any) -> Floats:
    r"""P(a call drafts j tokens), ``[..., k + 1]``, from sums ``[5, ..., k]`` over calls.

    Of the n calls with room for j drafts, a share :math:`g / (g + s)` drafts so many, g and s the weights of those that
    do along the text and of those that stopped: both have the right mean, and their sum that of n (§11). It is cut at
    the certain bounds.
    """
    going, stopped, inside, low, high = sums
    share = going / np.maximum(going + stopped, np.finfo(float).tiny)
    longer = np.clip(share * inside, low, high) / np.asarray(calls)[..., None]
    return moves_of(np.minimum.accumulate(longer, axis=-1))


class _Texts:
    """A trace, a rule and a depth: survival and confidences of calls from each start, and what policies give."""

    def __init__(self, trace: Trace, rule: PathRule, depth: int) -> None:
        self.trace, self.rule, self.depth = trace, in_trace(rule, trace), depth
        self.survival = np.ascontiguousarray(self.rule.path_survival(trace.columns, depth))
        self.room = np.minimum(rooms(trace, depth), _copied(self.rule, trace))
        self.inside = np.arange(1, depth + 1) < tokens_left(trace.lengths)[:, None]  # drafts that a text can use
        self.decoded = trace.lengths - 1
        self.prompts = Prompts(trace.texts)
        self.parallel = by_parallel_head(trace.provenance)
        self.column, self.reason = _column_of(trace, rule)
        self.weights = Drafted(trace, rule, depth).weights if self.column else np.zeros((0, depth))

    def passes(self, k: int) -> int:
        """Of the draft model for chains of k drafts."""
        return len(drafted(self.rule, Chain(k), parallel=self.parallel).passes) if k else 0

    def settings(self, steps: StepTimes, sizes: Sequence[int], thresholds: int) -> dict[str, list[_Setting]]:
        """Plain decoding, every fixed length, and every threshold at every depth that is worth trying."""
        caps = [k for k in range(1, self.depth + 1) if k == self.depth or k & (k - 1) == 0]
        free = self.passes(self.depth) <= 1 or not any(steps.drafting(batch) for batch in sizes)
        rows = len(self.survival)
        settings = {
            PLAIN: [self._of(PLAIN, 0, None, np.zeros(rows, np.int64))],
            FIXED: [self._of(FIXED, k, None, np.full(rows, k)) for k in range(1, self.depth + 1)],
            INFORMED: [
                *self._by_threshold(INFORMED, self.survival * self.inside, [self.depth] if free else caps, thresholds)
            ],
        }
        if self.column is None:
            return settings
        with np.errstate(divide="ignore"):
            logs = along_calls(self.trace.columns, self.depth, lambda at: np.log(at[self.column or ""]), fill=-np.inf)
        sure = np.exp(np.cumsum(logs, axis=1))
        return {**settings, CONFIDENT: [*self._by_threshold(CONFIDENT, sure, caps, thresholds)]}

    def _by_threshold(self, policy: str, scores: Floats, caps: Sequence[int], number: int) -> Iterator[_Setting]:
        """A threshold on scores ``[N, depth]``, which fall: quantiles of those of drafts inside the texts, and 0."""
        inside = scores[self.inside]
        levels = np.quantile(inside, np.arange(1, number + 1) / (number + 1)) if inside.size else np.zeros(1)
        levels = np.unique(levels)
        for threshold in [0.0, *levels[levels > 0].tolist()]:
            along = (scores >= threshold).sum(axis=1)
            yield from (self._of(policy, k, threshold, np.minimum(along, k)) for k in caps)

    def _of(self, policy: str, k: int, threshold: float | None, along: NDArray[np.int64]) -> _Setting:
        """The calls of a policy that drafts `along` ``[N]`` tokens where the drafts equal the text."""
        from spectheory.kernels.path_calls import budget_calls

        weights = self.weights if policy == CONFIDENT else self.weights[:0]
        texts = len(self.trace.lengths)
        calls, sums, tokens = np.zeros(texts), np.zeros((5, texts, self.depth)), np.zeros(self.depth + 2)
        budget_calls(self.survival, weights, along, self.room, self.trace.lengths, 1, calls, sums, tokens)
        return _Setting(policy, k, threshold, self.passes(k), calls, sums, tokens / calls.sum())


def _copied(rule: PathRule, trace: Trace) -> Any:
    """The most drafts of a call from each position where they are copied from the text, as far as that is known."""
    copied = rule.copied if isinstance(rule, CopiedFirst) else rule
    if not isinstance(copied, CopiedMatch) or len(copied.needs) < 2:
        return MOST_EXACT
    drafted = np.asarray(copied.drafted(trace.columns), np.int64)
    return drafted if copied is rule else np.where(drafted > 0, drafted, MOST_EXACT)


def _scored(trace: Trace, rule: PathRule) -> bool:
    """Whether drafted lengths can be estimated: a model drafts, and its log-probabilities are known."""
    return rule.can_stop and not trace.recorded


def _column_of(trace: Trace, rule: PathRule) -> tuple[str | None, str]:
    """The confidence that decides, or why there is none."""
    if not _scored(trace, rule):
        return None, f"{rule.label} has no draft model whose confidence could decide"
    known = [name for name in _CONFIDENCES if not missing(trace.columns, [name])]
    return (known[0], "") if known else (None, f"the trace has no {' or '.join(_CONFIDENCES)}")


# One concurrency


@dataclass(frozen=True)
class _Clock:
    """The step times of one concurrency, and the largest convex function below those of verifying."""

    batch: int
    plain: float
    verifying: Floats
    drafting: float
    corners: NDArray[np.int64]

    @classmethod
    def of(cls, steps: StepTimes, batch: int, depth: int) -> _Clock:
        verifying = steps.verifying(batch, depth)
        return cls(batch, steps.plain(batch), verifying, steps.drafting(batch), least_edges(verifying))

    def times(self, each: _Setting) -> Floats:
        """Seconds of a step by its drafts, ``[batch · depth + 1]``."""
        return np.full(1, self.plain) if each.policy == PLAIN else self.verifying + each.passes * self.drafting

    def mean(self, each: _Setting) -> float:
        """Mean seconds of a step."""
        law = sum_law(each.drafts, self.batch)
        return float(law @ self.times(each)[: len(law)])

    def least_mean(self, each: _Setting, drafts: float) -> float:
        """Below the mean seconds, from the mean drafts of a request alone (Jensen)."""
        if each.policy == PLAIN:
            return self.plain
        below = np.interp(self.batch * drafts, self.corners, self.verifying[self.corners])
        return float(below) + each.passes * self.drafting


def _choice(texts: _Texts, settings: Mapping[str, Sequence[_Setting]], steps: StepTimes, batch: int) -> BudgetChoice:
    """The best setting of each policy, and the limit."""
    clock = _Clock.of(steps, batch, texts.depth)
    points = {policy: _point(texts, _best(each, clock), clock) for policy, each in settings.items()}
    longest = _point(texts, settings[FIXED][-1], clock)
    limit = _limit(texts, steps, batch, points[INFORMED].drafts * batch)
    return BudgetChoice(batch, points[PLAIN], points[FIXED], longest, points.get(CONFIDENT), points[INFORMED], limit)


def _best(settings: Sequence[_Setting], clock: _Clock) -> _Setting:
    """The setting of most tokens per second; those whose bound is below the best so far are not worked out."""
    bounds = [-1 / (each.calls.sum() * clock.least_mean(each, each.mean_drafts)) for each in settings]
    most, best = 0.0, settings[0]
    for place in np.argsort(bounds, kind="stable").tolist():
        if -bounds[place] <= most:
            break
        rate = 1 / (settings[place].calls.sum() * clock.mean(settings[place]))
        if rate > most:
            most, best = rate, settings[place]
    return best


def _point(texts: _Texts, each: _Setting, clock: _Clock) -> BudgetPoint:
    """What a setting gives, with its intervals and the law of a step's tokens."""
    batch = clock.batch
    tokens, numbers = each.tokens, np.arange(len(each.tokens))
    whole_step, mean = sum_law(tokens, batch), float(tokens @ numbers)
    deviation = math.sqrt(batch * max(float(tokens @ numbers**2) - mean**2, 0.0))
    low, middle, high = (int(np.searchsorted(np.cumsum(whole_step), q * whole_step.sum())) for q in _QUANTILES)
    return BudgetPoint(
        batch=batch,
        policy=each.policy,
        k=each.k,
        threshold=each.threshold,
        drafts=each.mean_drafts,
        tokens=mean,
        per_second=_per_second(texts, each, clock),
        seconds=clock.mean(each),
        step_mean=batch * mean,
        step_deviation=deviation,
        step_quantiles=(low, middle, high),
    )


def _per_second(texts: _Texts, each: _Setting, clock: _Clock) -> Interval:
    """Tokens per second, 95% over prompts; without a prompt the step's time moves by its slope in the law of drafts."""
    batch, seconds, times, law = clock.batch, clock.mean(each), clock.times(each), each.drafts
    if each.policy == PLAIN:
        return Interval.exact(batch / seconds)
    summed = texts.prompts.sum
    decoded, calls = summed(texts.decoded), summed(each.calls)
    others = sum_law(law, batch - 1)
    slopes = np.array([others @ times[j : j + len(others)] for j in range(len(law))])
    sums = np.array([[summed(column) for column in kind.T] for kind in each.sums]).swapaxes(1, 2)
    with np.errstate(divide="ignore", invalid="ignore"):  # the only prompt may be left out
        moved = batch * (_law(sums, calls)[:, : len(law)] - law) @ slopes
        rates = batch * decoded / calls / (seconds + moved)
    return interval(rates, decoded)


# The limit


def _limit(texts: _Texts, steps: StepTimes, batch: int, near: float) -> float:
    r"""The most tokens per second of any rule that decides what to verify (§15/limit, an upper bound).

    Step times lie above each line a + b j through an edge of the largest convex function below them. A text's calls
    take at least :math:`T` of §11 with a/R + b L for a call of L drafts, and a rule that knew what will be accepted
    would take it. The least of the bounds of several lines is one.
    """
    times = steps.least(batch, texts.depth, [texts.passes(k) for k in range(texts.depth + 1)])
    corners = least_edges(times)
    edges = [*pairwise(corners.tolist())]

    def bound(edge: int) -> float:
        first, last = edges[edge]
        slope = (times[last] - times[first]) / (last - first)
        call = (times[first] - slope * first) / batch + slope * np.arange(texts.depth + 1)
        seconds = float(clairvoyant_seconds(texts.survival, texts.trace.lengths, call, first=1).sum())
        return float(texts.decoded.sum()) / seconds if seconds > 0 else math.inf  # a steep line may lie below 0

    return _least(bound, len(edges), int(np.searchsorted(corners[1:-1], near)))


def _least(value: Callable[[int], float], number: int, start: int) -> float:
    """The least value downhill from a start."""
    known: dict[int, float] = {}

    def at(place: int) -> float:
        if not 0 <= place < number:
            return math.inf
        if place not in known:
            known[place] = value(place)
        return known[place]

    place = min(start, number - 1)
    while at(step := min((place - 1, place + 1), key=at)) < at(place):
        place = step
    return at(place)
