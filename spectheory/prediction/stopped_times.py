"""Drafted tokens per call and speed-up where the draft decides its length: estimates cut at certain bounds (§11).

Ranges join both estimates. Prompts of a small sample seldom show the heaviest weights: then the estimate by calls that
go on is too low and that by calls that stop too high, so the two span what is missing. One of them alone held the truth
in half of the samples at worst (``benchmarks/interval_coverage.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel
from spectheory.cost.model import Ends
from spectheory.drafting import Shape
from spectheory.intervals import Interval, Kind
from spectheory.prediction.call_times import Timed
from spectheory.prediction.drafted_lengths import DraftedLengths
from spectheory.prediction.over_prompts import Prompts, interval, ratio

Floats = NDArray[np.float64]
ROUNDING = 1e-12
"""Relative: certain bounds that differ by less are equal."""
ESTIMATES = ("going", "stopping")


def drafted_per_call(prompts: Prompts, found: DraftedLengths, k: int) -> Interval:
    """Drafted tokens per call (95% over prompts, the error of the likelihood ratios included).

    Its kind is ``bound`` where both ends are those of the certain bounds.
    """
    calls = prompts.sum(found.calls)

    def of(name: str) -> Interval:
        return ratio(prompts.sum(getattr(found, name).sum(axis=1)), calls, limits=(0.0, float(k)))

    return _cut([of(name) for name in ESTIMATES], of("low"), of("high"))


def stopped_speedup(
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
    found = sum_of(groups)
    calls = prompts.sum(found.calls)
    k = groups[0][0].nodes
    late = np.clip((tokens - calls) / k if cost.reads_accepted else prompts.sum(found.full), 0.0, calls)

    def times(model: CostModel, calls_of: Callable[[Floats], Floats] = np.asarray) -> Floats:
        each = [stopped_seconds(model, shape) for shape, _ in groups]
        return np.concatenate([*(calls_of(one[:-1]) for one in each), each[0][-1:]])

    def of(name: str, calls_of: Callable[[Floats], Floats] = np.asarray) -> Interval:
        exact = np.concatenate([exactly(group.calls, getattr(group, name)) for _, group in groups], axis=1)
        kinds = np.stack([*(prompts.sum(kind) for kind in exact.T), late])
        return _per_token(tokens, calls, kinds, Timed.by(cost, errors, lambda model: times(model, calls_of)), k + 1)

    # A call that drafts more takes no less in one bound, and no more in the other.
    low = of("low", lambda of_calls: np.minimum.accumulate(of_calls[::-1])[::-1])
    per_token = _cut([of(name) for name in ESTIMATES], low, of("high", np.maximum.accumulate))
    return Interval(1 / per_token.high, 1 / per_token.best, 1 / per_token.low, per_token.kind)


def sum_of(groups: Sequence[tuple[Shape, DraftedLengths]]) -> DraftedLengths:
    """The calls of all texts."""
    return reduce(add, (found for _, found in groups))


def _per_token(tokens: Floats, calls: Floats, kinds: Floats, timed: Timed, lengths: int) -> Interval:
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


def exactly(calls: Floats, at_least: Floats) -> Floats:
    """Calls that draft exactly 0, ..., k tokens, ``[texts, k + 1]``, from those that draft 1, ..., k or more."""
    return -np.diff(np.concatenate([calls[:, None], at_least, np.zeros((len(calls), 1))], axis=1), axis=1)


def stopped_seconds(cost: CostModel, shape: Shape) -> Floats:
    """Time of a call that drafts 0, ..., k tokens, then what one after a full acceptance takes besides, ``[k + 2]``."""
    times = [cost.call(shape.cut(drafted)).best for drafted in range(shape.nodes + 1)]
    more = float(shape.nodes) if cost.reads_accepted else 1.0
    return np.array([*times, cost.call(shape.cut(shape.nodes), more).best - times[-1]])


def _cut(estimates: Sequence[Interval], low: Interval, high: Interval) -> Interval:
    """The range of the estimates inside the certain bounds, whose own ranges are over prompts."""
    middle = float(np.mean([each.best for each in estimates]))
    best = min(max(middle, low.best), high.best)
    if np.isclose(low.best, high.best, rtol=ROUNDING, atol=0):  # the texts settle it
        return Interval.exact(best) if low.low == high.high else low
    if "estimate" in {each.kind for each in estimates}:  # one prompt says nothing of the error
        return Interval(low.best, best, high.best, "bound")
    least, most = min(each.low for each in estimates), max(each.high for each in estimates)
    kind: Kind = "bound" if least <= low.low and most >= high.high else "statistical"
    return Interval(min(max(least, low.low), best), best, max(min(most, high.high), best), kind)
