"""Tokens per call and the time of a call, joined to a speed-up (C2).

Where the draft decides its length (§11), drafted tokens and speed-up are estimates cut at certain bounds.
Ranges join both estimates. Prompts of a small sample seldom show the heaviest weights: then the estimate by calls that
go on is too low and that by calls that stop too high, so the two span what is missing. One of them alone held the truth
in half of the samples at worst (``benchmarks/interval_coverage.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel
from spectheory.cost.model import Ends, reads_besides
from spectheory.distributions import Floats
from spectheory.drafting import Copied, Shape
from spectheory.intervals import Interval, Kind
from spectheory.prediction.over_prompts import Prompts, deviation, interval, ratio, reach
from spectheory.prediction.shape_calls import ShapeCalls
from spectheory.prediction.stopped import DraftedLengths

Times = Callable[[CostModel], Floats]
"""Seconds of the kinds of calls that occur."""


def speedup(
    prompts: Prompts,
    shape_calls: ShapeCalls,
    decoded: NDArray[np.int64],
    prefilled: int,
    cost: CostModel,
    errors: Sequence[Ends],
) -> Interval | None:
    r"""Speed-up over plain decoding (C2; 95% interval over prompts and latencies together); None without a call.

    .. math:: \text{tokens} \cdot \frac{t_\text{target}(1)}{\sum_j \text{calls of kind } j \cdot t(j)}

    This is decoding alone: a token that the prompt's own pass emits, and that pass, count on neither side. So `decoded`
    ``[texts]`` are the tokens of each text without those of the prompt's pass, and `prefilled` counts the calls of each
    text that are the prompt's pass. `errors` are the independent errors of the times, ``cost.errors()``.
    """
    tokens, calls = prompts.sum(decoded), prompts.sum(shape_calls.calls.expected - prefilled)
    if calls[0] <= 0:
        return None
    if shape_calls.by_drafted is None:
        return speedup_of_chain(tokens, calls, prompts.sum(shape_calls.calls.full), shape_calls.shape, cost, errors)
    k, longest = shape_calls.shape.nodes, int(np.flatnonzero(shape_calls.by_drafted.sum(axis=0)).max(initial=0))
    kinds = [prompts.sum(column) for column in shape_calls.by_drafted.T[: longest + 1]]
    schedule = shape_calls.shape.schedule
    assert isinstance(schedule, Copied)
    copies = [shape_calls.shape.by(schedule.only(copied, k)) for copied in range(longest + 1)]
    timed = _Timed.by(cost, errors, lambda model: _best_of(model.call(copied) for copied in copies))
    return _speedup_of_kinds(tokens, np.sum(kinds, axis=0), kinds, longest, timed)


def speedup_of_chain(
    tokens: Floats, calls: Floats, full: Floats, shape: Shape, cost: CostModel, errors: Sequence[Ends]
) -> Interval:
    """The same from sums over prompts ``[1 + prompts]``, where every call drafts the shape.

    `full` counts the calls after a full acceptance, where the draft's first pass is on two tokens. A head's first pass
    is on accepted + 1 tokens: its mean time is taken between those on the fewest and the most. Where the time is linear
    in tokens it is exact but for what a text's last call accepts, which counts as read; else it is an estimate.
    """
    most = reads_besides(cost, shape.depth, 1)
    late = _late_calls(cost, tokens, calls, full, shape.depth)
    timed = _Timed.by(cost, errors, lambda model: _best_of(model.call(shape, more) for more in (0, most)))
    return _speedup_of_kinds(tokens, calls, [calls - late, late], shape.depth, timed)


def _late_calls(cost: CostModel, tokens: Floats, calls: Floats, full: Floats, depth: int) -> Floats:
    """How many calls with the longest first draft pass read as much as all `calls` do, whose drafts are `depth` deep.

    With the shortest they read one token each.
    """
    return np.clip(reads_besides(cost, (tokens - calls) / depth, full), 0.0, calls)


@dataclass(frozen=True)
class _Timed:
    """Seconds of a plain step ``[1 + 2 errors]`` and of the kinds of calls ``[1 + 2 errors, kinds]``.

    The first row is the best known, then each independent error has both ends of its 95% interval. The last `besides`
    columns are no calls, but what some calls take besides.
    """

    steps: Floats
    kinds: Floats
    besides: int = 0

    @classmethod
    def by(cls, cost: CostModel, errors: Sequence[Ends], times: Times, besides: int = 0) -> _Timed:
        """What a cost model says, with its errors."""
        models = [cost, *(end for ends in errors for end in ends)]
        steps = np.array([model.target_step().best for model in models])
        return cls(steps, np.stack([times(model) for model in models]), besides)

    @property
    def ends(self) -> Floats:
        """The longest and the shortest call."""
        calls = self.kinds[0, : self.kinds.shape[1] - self.besides]
        return np.array([calls.max(), calls.min()])

    def variance(self, kinds: Sequence[float]) -> float:
        """That of the logarithm of the time that so many calls of each kind take, in plain steps."""
        ends = (self.kinds[1:] @ np.array(kinds)) / self.steps[1:]
        return sum(deviation(low, high) ** 2 for low, high in ends.reshape(-1, 2).tolist())


def _speedup_of_kinds(tokens: Floats, calls: Floats, kinds: Sequence[Floats], longest: int, timed: _Timed) -> Interval:
    """Speed-up from sums over prompts ``[1 + prompts]``. Latencies are independent of the prompts, so variances add.

    `kinds` are the numbers of calls of each kind of `timed`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = tokens * timed.steps[0] / (timed.kinds[0] @ np.stack(kinds))
    of_times = timed.variance([float(kind[0]) for kind in kinds])
    # A call outputs one token at least, and one more than it drafts at most; what it takes is known up to its error.
    least, most = timed.steps[0] / timed.ends * [1, longest + 1]
    error = np.exp(reach(np.inf) * np.sqrt(of_times))
    limits = (float(least / error), float(most * error))
    return interval(values, calls, limits=limits, other_variance=of_times)


def _best_of(times: Iterable[Interval]) -> Floats:
    """Their best values."""
    return np.array([time.best for time in times])


ROUNDING = 1e-12
"""Relative: certain bounds that differ by less are equal."""
ESTIMATES = ("going", "stopping")


def drafted_per_call(prompts: Prompts, drafts: DraftedLengths, k: int) -> Interval:
    """Drafted tokens per call (95% over prompts, the error of the likelihood ratios included).

    Its kind is ``bound`` where both ends are those of the certain bounds.
    """
    calls = prompts.sum(drafts.calls)

    def of(name: str) -> Interval:
        return ratio(prompts.sum(getattr(drafts, name).sum(axis=1)), calls, limits=(0.0, float(k)))

    return _cut([of(name) for name in ESTIMATES], of("low"), of("high"))


def _stopped_speedup(
    prompts: Prompts,
    groups: Sequence[tuple[Shape, DraftedLengths]],
    tokens: Floats,
    cost: CostModel,
    errors: Sequence[Ends],
) -> Interval:
    r"""Speed-up over plain decoding (C2, §11; 95% over prompts and latencies, the error of likelihood ratios included).

    A call that drafted L tokens takes the draft passes that it made and a target pass on L + 1 tokens. `groups` are
    texts with the shapes of their calls; `tokens` ``[1 + prompts]`` are sums over prompts.
    """
    drafts = sum_of(groups)
    calls = prompts.sum(drafts.calls)
    k = groups[0][0].nodes
    late = _late_calls(cost, tokens, calls, prompts.sum(drafts.full), k)

    def times(model: CostModel, calls_of: Callable[[Floats], Floats] = np.asarray) -> Floats:
        each = [_stopped_seconds(model, shape) for shape, _ in groups]
        return np.concatenate([*(calls_of(one[:-1]) for one in each), each[0][-1:]])

    def of(name: str, calls_of: Callable[[Floats], Floats] = np.asarray) -> Interval:
        exact = np.concatenate([_exactly(group.calls, getattr(group, name)) for _, group in groups], axis=1)
        kinds = np.stack([*(prompts.sum(kind) for kind in exact.T), late])
        return _per_token(tokens, calls, kinds, _Timed.by(cost, errors, lambda model: times(model, calls_of)), k + 1)

    # A call that drafts more takes no less in one bound, and no more in the other.
    low = of("low", lambda of_calls: np.minimum.accumulate(of_calls[::-1])[::-1])
    per_token = _cut([of(name) for name in ESTIMATES], low, of("high", np.maximum.accumulate))
    return Interval(1 / per_token.high, 1 / per_token.best, 1 / per_token.low, per_token.kind)


def sum_of(groups: Sequence[tuple[Shape, DraftedLengths]]) -> DraftedLengths:
    """The calls of all texts."""
    return reduce(add, (drafts for _, drafts in groups))


def _per_token(tokens: Floats, calls: Floats, kinds: Floats, timed: _Timed, lengths: int) -> Interval:
    """Plain steps that an output token takes, from numbers of calls of each kind ``[kinds, 1 + prompts]``.

    Estimates may be of either sign: without prompts that they rest on, or with few of them.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = timed.kinds[0] @ kinds / (tokens * timed.steps[0])
    of_times = timed.variance(_possible(kinds[:, 0], lengths))
    logarithmic = bool(np.all(values > 0))
    scale = 1.0 if logarithmic else float(values[0]) ** 2
    return interval(values, calls, logarithmic=logarithmic, other_variance=of_times * scale)


def _possible(kinds: Floats, lengths: int) -> list[float]:
    """The nearest numbers of calls of each kind that are not negative; the last kind is none of calls."""
    calls = kinds[:-1].reshape(-1, lengths)
    at_least = np.cumsum(calls[:, ::-1], axis=1)[:, ::-1]
    at_least = np.minimum.accumulate(np.clip(at_least, 0.0, at_least[:, :1]), axis=1)
    return [*(-np.diff(at_least, append=0.0, axis=1)).ravel().tolist(), float(kinds[-1])]


def _exactly(calls: Floats, at_least: Floats) -> Floats:
    """Calls that draft exactly 0, ..., k tokens, ``[texts, k + 1]``, from those that draft 1, ..., k or more."""
    return -np.diff(np.concatenate([calls[:, None], at_least, np.zeros((len(calls), 1))], axis=1), axis=1)


def _stopped_seconds(cost: CostModel, shape: Shape) -> Floats:
    """Time of a call that drafts 0, ..., k tokens, then what the longest first pass takes besides, ``[k + 2]``."""
    times = [cost.call(shape.cut(drafted)).best for drafted in range(shape.nodes + 1)]
    longest = cost.call(shape.cut(shape.nodes), reads_besides(cost, shape.nodes, 1)).best
    return np.array([*times, longest - times[-1]])


def _cut(estimates: Sequence[Interval], low: Interval, high: Interval) -> Interval:
    """The range of the estimates inside the certain bounds, whose own ranges are over prompts."""
    middle = float(np.mean([each.best for each in estimates]))
    best = min(max(middle, low.best), high.best)
    if np.isclose(low.best, high.best, rtol=ROUNDING, atol=0):  # the texts settle it
        return Interval.exact(best) if low.low == high.high and low.kind != "estimate" else low
    if "estimate" in {each.kind for each in estimates}:  # one prompt says nothing of the error
        return Interval(low.best, best, high.best, "bound")
    least, most = min(each.low for each in estimates), max(each.high for each in estimates)
    kind: Kind = "bound" if least <= low.low and most >= high.high else "statistical"
    return Interval(min(max(least, low.low), best), best, max(min(most, high.high), best), kind)
