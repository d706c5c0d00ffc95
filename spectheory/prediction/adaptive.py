r"""What adaptive draft lengths are worth for a pair: thresholds scored on other prompts, beside the limit (§11).

The limit is the most that any adaptive draft length could give: lengths chosen with the output known.
With tau the accepted drafts of a call that drafts up to K tokens, no call outputs more than tau + 1 tokens, and one
that accepts L drafts has drafted L or more. So the least time from position n to the end of a text is

.. math:: T(n) = E_\tau\Bigl[\min_{L \le \tau} t(L) + T(n + L + 1)\Bigr],
    \qquad t(L) = \min_{l \ge L} t_d(l) + t_p(l + 1),

with t_d and t_p the draft's and the target's share of a call on l drafts. No length that the draft, the text so far or
a learned model decides takes less on average over the same calls, whatever decides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory import kernels
from spectheory.cost import CostModel
from spectheory.cost.model import Ends, reads_besides
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
from spectheory.prediction.stopped import Drafted, DraftedLengths, check_stops, lengths_of_calls
from spectheory.trace import Trace
from spectheory.verification import Columns, PathRule
from spectheory.verification.by_start import missing, read_as


def least_seconds(
    survival: Floats, lengths: NDArray[np.int64], times: Floats, carried: Floats | None = None, *, first: int = 0
) -> Floats:
    """T at the first call of each text, ``[texts]`` (§11, exact; a lower bound on the time of every adaptive length).

    `survival` ``[N, K]`` is P(tau >= i) at each position, `times` ``[K + 1]`` what a call takes that drafts 0, ..., K
    tokens. `carried` ``[K + 1]`` is what accepting so many adds to the next call that drafts. Calls start after `first`
    tokens.

    Examples
    --------
    Every draft is accepted, and drafting costs a tenth: one call drafts all that is left.

    >>> least_seconds(np.ones((4, 3)), np.array([4]), 1 + 0.1 * np.arange(4)).round(12).tolist()
    [1.3]
    """
    k = survival.shape[1]
    least = np.minimum.accumulate(times[::-1])[::-1]
    if carried is None and kernels.pays(len(survival)):
        from spectheory.kernels.path_calls import least_times

        seconds = np.zeros(len(lengths))
        least_times(np.ascontiguousarray(survival), lengths, np.ascontiguousarray(least), first, seconds)
        return seconds
    more = np.zeros((k + 1, 1)) if carried is None else carried[:, None]
    order = np.argsort(-lengths, kind="stable")
    ends, sorted_lengths = np.cumsum(lengths)[order], lengths[order]
    ahead = np.zeros((int(lengths.max()) + 1, len(lengths)))  # by tokens left: none left, no time
    for left in range(1, len(ahead)):
        active = int(np.searchsorted(-sorted_lengths, -left, side="right"))
        after = np.maximum(left - 1 - np.arange(k + 1), 0)
        # Calls without drafts to the end of the text never pay what is carried.
        each = least[:, None] + np.minimum(more + ahead[after, :active], after[:, None] * times[0])
        best = np.minimum.accumulate(each, axis=0)
        reached = survival[ends[:active] - left].T
        ahead[left, :active] = best[0] + np.einsum("ia,ia->a", reached, np.diff(best, axis=0))
    seconds = np.empty(len(lengths))
    seconds[order] = ahead[np.maximum(sorted_lengths - first, 0), np.arange(len(lengths))]
    return seconds


def _clairvoyant_speedup(
    trace: Trace,
    rule: PathRule,
    k: int,
    cost: CostModel,
    errors: Sequence[Ends] = (),
    *,
    prefill_emits_token: bool = False,
) -> Interval:
    """Upper bound on the speed-up of every adaptive length of at most k drafts with this rule (95% over prompts).

    It is exact for the texts of the trace and these times; `errors` are those of the times, ``cost.errors()``.
    """
    survival = rule.path_survival(trace.columns, k)
    prompts, first = Prompts(trace.texts), int(prefill_emits_token)
    chain = drafted(rule, Chain(k), parallel=by_parallel_head(trace.provenance))

    def per_token(model: CostModel) -> Floats:
        """Plain steps over an output token's time, on all prompts and without each."""
        seconds = least_seconds(survival, trace.lengths, *call_seconds(model, chain), first=first)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(prompts.sum(trace.lengths - first) * model.target_step().best / prompts.sum(seconds))

    of_times = sum(deviation(*(float(per_token(end)[0]) for end in ends)) ** 2 for ends in errors)
    return interval(per_token(cost), prompts.sum(trace.lengths - first), other_variance=of_times)


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
    limit = _clairvoyant_speedup(trace, rule, k, cost, tuple(cost.errors()), **at)
    histories = tuple(_by_history(trace, rule, kind(most=k), cost, **at) for kind in POLICIES if _known_by(kind, trace))
    return AdaptiveWorth(rule, fixed, of_calls(trace, rule, swept, cost, **at), limit, histories=histories)


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
    drafts: DraftedLengths, shape: Shape, texts: NDArray[np.bool_], lengths: NDArray[np.int64], cost: CostModel
) -> float:
    """Estimated time of some texts, by the calls that stop: too long, if anything, where the target is cut."""
    calls = drafts.calls[texts].sum()
    at_least = drafts.stopping[texts].sum(axis=0)
    at_least = np.clip(at_least, drafts.low[texts].sum(axis=0), drafts.high[texts].sum(axis=0))
    times = _stopped_seconds(cost, shape)
    late = _late_calls(cost, lengths[texts].sum(), calls, drafts.full[texts].sum(), shape.nodes)
    return float(_exactly(np.array([calls]), at_least[None])[0] @ times[:-1] + late * times[-1])
