r"""What adaptive draft lengths are worth for a pair: thresholds scored on other prompts, beside the limits (§11, B10).

*One verification rule.* A draft length is *adaptive* if drafts, pmfs, the text so far, earlier calls and coins decide
it, and no sample of the target. Let a call from n go on drafting after the text's next i tokens with probability
:math:`R_i`, falling in i. It accepts i drafts with probability :math:`A_{n,i} R_{i-1}`, A the rule's own survival given
the text. In the mean over target-sampled texts it drafts more than i tokens with :math:`w_{n,i} R_i`,
:math:`w_{n,i} = \prod_{j \le i} \rho_{n,j}`. Both are linear in R, so the least time of a text is

.. math:: W(n) = t(0) + W(n+1) + \min_{l \ge 0} \sum_{i=1}^{l}
    \bigl[(t(i) - t(i-1))\, w_{n,i-1} + A_{n,i}\, (W(n+i+1) - W(n+i))\bigr],
    \qquad t(L) = \min_{l \ge L} t_d(l) + t_p(l + 1),

with :math:`t_d` and :math:`t_p` the draft's and the target's share of a call on l drafts. In the mean over texts of the
target, no adaptive length takes less. For given text A takes the place of w: a call that accepted i drafts and goes on
has drafted more than i. That bound holds for every text.

*Any lossless fresh rule* on one chain accepts at most :math:`M_i = \min(M_{i-1}, w_{n,i} R_{i-1})` (B10), and along one
text it may accept less. Then the least time X of a text is

.. math:: X(n) = t(0) + b_0 - \max_R \sum_{i=1}^{k}
    \bigl[(b_{i-1} - b_i)\, M_i - (t(i) - t(i-1))\, w_{n,i-1} R_{i-1}\bigr], \qquad b_i = \min_{j \le i} X(n+j+1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory import kernels
from spectheory.cost import CostModel
from spectheory.cost.model import reads_besides
from spectheory.distributions import Floats
from spectheory.drafting import Chain, Shape
from spectheory.drafting.history import POLICIES
from spectheory.drafting.schedules import Cut
from spectheory.drafting.stopping import STOPPING, StoppingRule, TokenBelow, TopBelow
from spectheory.errors import SettingError, argument
from spectheory.intervals import Interval
from spectheory.prediction.answer import AdaptiveWorth
from spectheory.prediction.call_times import _exactly, _late_calls, _stopped_seconds, sum_of
from spectheory.prediction.history import _by_history, _known_by
from spectheory.prediction.over_prompts import FEW, PARTS, Prompts, deviation, interval
from spectheory.prediction.paths import by_text
from spectheory.prediction.prediction import of_calls, planned
from spectheory.prediction.shape_calls import ShapeCalls, by_parallel_head, drafted
from spectheory.prediction.stopped import (
    Drafted,
    DraftedLengths,
    Integers,
    check_stops,
    lengths_of_calls,
    weights_along,
)
from spectheory.trace import GIVEN_TEXT, Trace
from spectheory.verification import Columns, PathRule
from spectheory.verification.by_start import missing, read_as


def least_seconds(
    survival: Floats,
    lengths: Integers,
    times: Floats,
    carried: Floats | None = None,
    *,
    weights: Floats | None = None,
    first: int = 0,
) -> Floats:
    """W at the first call of each text, ``[texts]``: a lower bound on the time of every adaptive length (§11/adaptive).

    `survival` ``[N, K]`` is P(tau >= i) at each position, `times` ``[K + 1]`` what a call takes that drafts 0, ..., K
    tokens. `weights` ``[N, K]`` are the products of the first 0, ..., K - 1 ratios q/p: a bound in the mean over texts
    of the target. Without them it holds for every text. `carried` ``[K + 1]`` is what accepting so many adds to the
    next call that drafts. Calls start after `first` tokens.

    Examples
    --------
    Every draft is accepted, and drafting costs a tenth: one call drafts all that is left.

    >>> least_seconds(np.ones((4, 3)), np.array([4]), 1 + 0.1 * np.arange(4)).round(12).tolist()
    [1.3]
    """
    k = survival.shape[1]
    least = np.minimum.accumulate(times[::-1])[::-1]
    more = np.zeros((k + 1, 1)) if carried is None else carried[:, None]
    drafted = np.column_stack([np.ones(len(survival)), survival[:, :-1]]) if weights is None else weights

    def call(rows: Integers, ahead: Floats, after: Integers) -> Floats:
        # Calls without drafts to the end of the text never pay what is carried.
        then = np.minimum(more + ahead, after[:, None] * times[0])
        steps = np.diff(least)[:, None] * drafted[rows].T + survival[rows].T * np.diff(then, axis=0)
        return np.asarray(least[0] + then[0] + np.minimum(steps.cumsum(axis=0).min(axis=0, initial=0.0), 0.0))

    return _backwards(call, lengths, k, first)


def clairvoyant_seconds(survival: Floats, lengths: Integers, times: Floats, *, first: int = 0) -> Floats:
    """The least time of each text, ``[texts]``, if each call knew before it drafts what will be accepted (§11).

    A lower bound on the time of every rule that decides what is verified, whatever it reads, as long as drafts are
    accepted with `survival` given the text: lossless rules. That of :func:`least_seconds` is larger, and holds where
    nothing depends on what will be accepted.

    Examples
    --------
    >>> clairvoyant_seconds(np.array([[0.5], [0.0]]), np.array([2]), np.array([1.0, 1.1])).round(12).tolist()
    [1.55]
    """
    least = np.minimum.accumulate(times[::-1])[::-1]
    if kernels.pays(len(survival)):
        from spectheory.kernels.path_calls import least_times

        seconds = np.zeros(len(lengths))
        least_times(np.ascontiguousarray(survival), lengths, np.ascontiguousarray(least), first, seconds)
        return seconds

    def call(rows: Integers, ahead: Floats, after: Integers) -> Floats:
        best = np.minimum.accumulate(least[:, None] + ahead, axis=0)
        return np.asarray(best[0] + (survival[rows].T * np.diff(best, axis=0)).sum(axis=0))

    return _backwards(call, lengths, survival.shape[1], first)


def least_seconds_of_any_rule(ratios: Floats, lengths: Integers, times: Floats, *, first: int = 0) -> Floats:
    """X at the first call of each text, ``[texts]``: no lossless fresh rule on one chain takes less (B10/text).

    `ratios` ``[N, K]`` are the products of the first 1, ..., K ratios q/p, finite; `times` and `first` as in
    :func:`least_seconds`. It is a lower bound in the mean over texts of the target, whatever decides what is drafted
    and accepted.

    From :math:`R_{i-1} = r` and :math:`M_i = m` on, a call saves a sum of terms min(A m, B r), A in
    `gains` and B in `slopes`, deeper ones with the smaller B/A. The i-th ratio w turns B into min(B, A w) and adds
    the term of b's fall; the price of a draft is taken from the deepest terms first.

    Examples
    --------
    p = (1/2, 1/2), q = (1, 0), texts of two tokens, one draft at 0.1. A call that drafts half the time accepts always:

    >>> ratios, times = np.array([[2.0], [0.0], [0.0], [0.0]]), np.array([1.0, 1.1])
    >>> least_seconds_of_any_rule(ratios, np.array([2, 2]), times).round(12).tolist()
    [1.05, 2.0]
    """
    k = ratios.shape[1]
    prices = np.diff(np.minimum.accumulate(times[::-1])[::-1])

    def call(rows: Integers, ahead: Floats, after: Integers) -> Floats:
        best = np.minimum.accumulate(ahead, axis=0)
        gains, at = -np.diff(best, axis=0), np.vstack([np.ones(len(rows)), ratios[rows].T])
        slopes = np.full_like(gains, np.inf)
        for i in reversed(range(k)):
            deeper = np.minimum(slopes[i:], gains[i:] * at[i + 1])
            unpaid = np.maximum(deeper[::-1].cumsum(axis=0)[::-1] - prices[i] * at[i], 0.0)
            slopes[i:] = -np.diff(unpaid, axis=0, append=0.0)
            gains[i:] *= np.divide(slopes[i:], deeper, out=np.zeros_like(deeper), where=deeper > 0)
        return np.asarray(times.min() + best[0] - np.minimum(gains, slopes).sum(axis=0))

    return _backwards(call, lengths, k, first)


def _backwards(call: Callable[[Integers, Floats, Integers], Floats], lengths: Integers, k: int, first: int) -> Floats:
    """Seconds of each text after `first` tokens, ``[texts]``, the last calls first.

    `call` has them from some rows on, of what is ahead of calls that accept 0, ..., k drafts, ``[k + 1, rows]``, and of
    the tokens left then, ``[k + 1]``.
    """
    order = np.argsort(-lengths, kind="stable")
    ends, sorted_lengths = np.cumsum(lengths)[order], lengths[order]
    ahead = np.zeros((int(lengths.max()) + 1, len(lengths)))  # by tokens left: none left, no time
    for left in range(1, len(ahead)):
        active = int(np.searchsorted(-sorted_lengths, -left, side="right"))
        after = np.maximum(left - 1 - np.arange(k + 1), 0)
        ahead[left, :active] = call(ends[:active] - left, ahead[after, :active], after)
    seconds = np.empty(len(lengths))
    seconds[order] = ahead[np.maximum(sorted_lengths - first, 0), np.arange(len(lengths))]
    return seconds


class _Limits:
    """Upper bounds on speed-ups with at most k drafts a call (95% over prompts), from times with their errors."""

    def __init__(self, trace: Trace, rule: PathRule, k: int, cost: CostModel, *, prefill_emits_token: bool) -> None:
        self._trace, self._cost, self._first = trace, cost, int(prefill_emits_token)
        self._chain = drafted(rule, Chain(k), parallel=by_parallel_head(trace.provenance))
        self._prompts, self._errors = Prompts(trace.texts), tuple(cost.errors())
        self._survival, self._weights, self._ratios = rule.path_survival(trace.columns, k), None, None
        if trace.provenance.get("origin") != GIVEN_TEXT:
            products = weights_along(trace, rule, k + 1)
            self._weights = products[:, :k]
            if rule.drafts == "drawn" and rule.output == "sample":
                self._ratios = products[:, 1:]

    def of_rule(self) -> Interval:
        """Of every adaptive length with this rule."""
        return self._speedup(
            lambda times, carried, at: least_seconds(
                self._survival, self._trace.lengths, times, carried, weights=self._weights, first=at
            )
        )

    def of_any_rule(self) -> Interval | None:
        """Of every adaptive length and lossless fresh rule on one chain; None where no likelihood ratio says it."""
        ratios = self._ratios
        if ratios is None:
            return None
        return self._speedup(
            lambda times, _, at: least_seconds_of_any_rule(ratios, self._trace.lengths, times, first=at)
        )

    def _speedup(self, least: Callable[[Floats, Floats, int], Floats]) -> Interval:
        tokens = self._prompts.sum(self._trace.lengths - self._first)

        def per_token(model: CostModel) -> Floats:
            """Plain steps over an output token's time, on all prompts and without each."""
            seconds = least(*call_seconds(model, self._chain), self._first)
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(tokens * model.target_step().best / self._prompts.sum(seconds))

        of_times = sum(deviation(*(float(per_token(end)[0]) for end in ends)) ** 2 for ends in self._errors)
        return interval(per_token(self._cost), tokens, other_variance=of_times)


def call_seconds(cost: CostModel, chain: Chain) -> tuple[Floats, Floats]:
    """What a call takes that drafts 0, ..., k tokens, and what accepting so many adds to the next one that drafts.

    Both are ``[k + 1]``. A call on no drafts makes no draft pass, and a parallel head's pass is on no more tokens than
    are drafted. Only a head's next pass reads all that was accepted; here as a line through 0, below what any pays.
    """
    depths = range(1, chain.k + 1)
    chains = [chain.by(Cut(0, ())), *map(chain.of_length, depths)]
    times = np.array([cost.call(each).best for each in chains])
    passes = chains[1:2] if chains[-1].passes[0] == 1 else chains[1:]  # a first pass on one token, whatever follows
    slopes = [
        (cost.call(each, reads_besides(cost, accepted, 0)).best - alone) / accepted
        for each, alone in zip(passes, times[1:].tolist(), strict=False)
        for accepted in depths
    ]
    return times, min(slopes) * np.arange(len(times))


THRESHOLDS = 32
"""Of each kind of stopping rule, by default."""


def adaptive_worth(
    trace: Trace,
    rule: PathRule,
    k: int,
    cost: CostModel,
    *,
    thresholds: int = THRESHOLDS,
    prefill_emits_token: bool = False,
) -> AdaptiveWorth:
    """Sweep the thresholds of all stopping rules that the trace has columns for, at most k drafts a call (§11).

    Refused are fewer than 8 prompts, since each threshold is scored on other prompts than those it was chosen on.

    Examples
    --------
    >>> import numpy as np
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.verification import TokenVerification
    >>> q = np.log(np.random.default_rng(0).random((16, 40)))
    >>> trace = Trace.from_log_probabilities([(row, row) for row in q])  # draft and target are equal: nothing to gain
    >>> answer = adaptive_worth(trace, TokenVerification(), 4, ConstantRatio(0.1))
    >>> str(answer.fixed.shape), answer.worth < 0.05
    ('chain k=4', True)
    """
    at: dict[str, Any] = {"prefill_emits_token": prefill_emits_token}
    fixed = planned(trace, cost, [rule], [Chain(each) for each in range(1, k + 1)], **at).best
    swept = sweep(trace, rule, k, _stopping_grid(trace, thresholds), cost, **at)
    limits = _Limits(trace, rule, k, cost, **at)
    histories = tuple(_by_history(trace, rule, kind(most=k), cost, **at) for kind in POLICIES if _known_by(kind, trace))
    return AdaptiveWorth(
        rule,
        fixed,
        of_calls(trace, rule, swept, cost, **at),
        limits.of_rule(),
        limits.of_any_rule(),
        histories=histories,
    )


def _stopping_grid(trace: Trace, thresholds: int = THRESHOLDS) -> list[StoppingRule]:
    """Stopping rules of every kind that the trace has a column for, at quantiles of it; at temperature 0 ``token<``
    compares what ``top<`` does.
    """
    stops: list[StoppingRule] = []
    greedy = trace.sampling is not None and trace.sampling.temperature == 0
    for kind in (kind for kind in STOPPING if kind.greedy or not greedy):
        read = TopBelow.reads if greedy and kind is TokenBelow else kind.reads
        if not missing(trace.columns, [kind.reads, read]):
            stops += map(kind, _quantiles(kind, trace.columns, read, thresholds))
    if not stops:
        raise SettingError(
            "no threshold fits the trace",
            limit="the columns that rules read are missing or constant",
            remedy="use fixed lengths",
        )
    return stops


def _quantiles(kind: type[StoppingRule], columns: Columns, read: str, number: int) -> list[float]:
    """Thresholds in range at equally spaced quantiles of the column that the rule reads."""
    values = np.asarray(columns[read_as(columns, read)], float).ravel()
    thresholds = np.quantile(values[np.isfinite(values)], (np.arange(number) + 0.5) / number)
    thresholds = kind.threshold_of(thresholds) if read == kind.reads else thresholds
    return sorted({float(f"{value:.3g}") for value in thresholds.tolist() if kind.inside(float(f"{value:.3g}"))})


def sweep(
    trace: Trace,
    rule: PathRule,
    k: int,
    stops: Sequence[StoppingRule],
    cost: CostModel,
    *,
    prefill_emits_token: bool = False,
) -> ShapeCalls:
    """The calls of each text with the stopping rule that takes the least seconds on other prompts (cross-fitted)."""
    prompts = Prompts(trace.texts)
    if prompts.count < FEW:
        raise SettingError(
            f"thresholds are swept over {prompts.count} prompts",
            limit=f"needs {FEW}: each is scored on other prompts than those it was chosen on",
            remedy=f"measure more prompts, or name a threshold with {argument('stops', '--stop')}",
        )
    for stop in stops:
        check_stops(rule, stop, trace.columns, trace.sampling)
    parallel = by_parallel_head(trace.provenance)
    shapes = [drafted(rule, Chain(k, stop=stop), parallel=parallel) for stop in stops]
    shared = Drafted(trace, rule, k, prefill_emits_token=prefill_emits_token)
    along, by_stop = zip(*(lengths_of_calls(shared, stop, trace.columns) for stop in stops), strict=True)
    part = prompts.folds(PARTS)

    def fastest(texts: NDArray[np.bool_]) -> int:
        pairs = zip(by_stop, shapes, strict=True)
        return int(np.argmin([_seconds(each, shape, texts, trace.lengths, cost) for each, shape in pairs]))

    chosen = np.array([fastest(part != number) for number in range(part.max() + 1)])
    groups = [(shapes[i], by_stop[i].of_texts(chosen[part] == i)) for i in np.unique(chosen).tolist()]
    of_row = np.repeat(chosen[part], trace.lengths)
    drafts = np.stack(along)[of_row, shared.rows] > 0
    best = shapes[fastest(np.ones(len(part), bool))]
    calls = sum_of(groups).text_calls(prefill_emits_token)
    first = by_text(np.where(drafts, shared.survival[:, 0], 0.0), trace.lengths)
    return ShapeCalls(best, best, calls, first, held_out=True, lengths=groups)


def _seconds(
    drafts: DraftedLengths, shape: Shape, texts: NDArray[np.bool_], lengths: Integers, cost: CostModel
) -> float:
    """Estimated time of some texts, by the calls that stop: too long, if anything, where the target is cut."""
    calls = drafts.calls[texts].sum()
    at_least = drafts.stopping[texts].sum(axis=0)
    at_least = np.clip(at_least, drafts.low[texts].sum(axis=0), drafts.high[texts].sum(axis=0))
    times = _stopped_seconds(cost, shape)
    late = _late_calls(cost, lengths[texts].sum(), calls, drafts.full[texts].sum(), shape.nodes)
    return float(_exactly(np.array([calls]), at_least[None])[0] @ times[:-1] + late * times[-1])
