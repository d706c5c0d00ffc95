"""Drafted tokens per call and speed-up where the draft decides its length: estimates cut at certain bounds (§11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel
from spectheory.cost.model import Ends
from spectheory.drafting import Stopped
from spectheory.intervals import Interval, Kind
from spectheory.prediction.call_times import Timed, joined
from spectheory.prediction.drafted_lengths import DraftedLengths
from spectheory.prediction.over_prompts import Prompts, ratio

Floats = NDArray[np.float64]


def drafted_per_call(prompts: Prompts, found: DraftedLengths, k: int, *, inside: bool) -> Interval:
    """Drafted tokens per call (95% over prompts, the error of the likelihood ratios included).

    `inside` says that the target can output all drafts; the estimate then has the right mean. Otherwise the range joins
    a lower and an upper estimate. Its kind is ``bound`` where both ends are those of the certain bounds.
    """
    calls = prompts.sum(found.calls)

    def of(at_least: Floats) -> Interval:
        return ratio(prompts.sum(at_least.sum(axis=1)), calls, limits=(0.0, float(k)))

    return _cut(_estimates(found, inside, of), of(found.low), of(found.high))


def stopped_speedup(
    prompts: Prompts,
    found: DraftedLengths,
    shape: Stopped,
    tokens: Floats,
    cost: CostModel,
    errors: Sequence[Ends],
    *,
    inside: bool,
) -> Interval:
    r"""Speed-up over plain decoding (C2, §11; 95% over prompts and latencies, the error of likelihood ratios included).

    A call that drafted L tokens takes the draft passes that it made and a target pass on L + 1 tokens. `tokens`
    ``[1 + prompts]`` are sums over prompts, `inside` as in :func:`drafted_per_call`.
    """
    calls = prompts.sum(found.calls)
    late = np.clip((tokens - calls) / shape.depth if cost.reads_accepted else prompts.sum(found.full), 0.0, calls)
    timed = Timed.by(cost, errors, lambda model: stopped_seconds(model, shape))

    def of(at_least: Floats, times: Timed = timed) -> Interval:
        kinds = [prompts.sum(kind) for kind in exactly(found.calls, at_least).T]
        return joined(tokens, calls, [*kinds, late], shape.k, times)

    # A call that drafts more takes no less in one bound, and no more in the other.
    dearest, cheapest = timed.kinds.copy(), timed.kinds.copy()
    dearest[:, :-1] = np.maximum.accumulate(timed.kinds[:, :-1], axis=1)
    cheapest[:, :-1] = np.minimum.accumulate(timed.kinds[:, -2::-1], axis=1)[:, ::-1]
    low, high = of(found.high, replace(timed, kinds=dearest)), of(found.low, replace(timed, kinds=cheapest))
    return _cut(_estimates(found, inside, of), low, high)


def exactly(calls: Floats, at_least: Floats) -> Floats:
    """Calls that draft exactly 0, ..., k tokens, ``[texts, k + 1]``, from those that draft 1, ..., k or more."""
    return -np.diff(np.concatenate([calls[:, None], at_least, np.zeros((len(calls), 1))], axis=1), axis=1)


def stopped_seconds(cost: CostModel, shape: Stopped) -> Floats:
    """Time of a call that drafts 0, ..., k tokens, then what one after a full acceptance takes besides, ``[k + 2]``."""
    times = [cost.call(shape.cut(drafted)).best for drafted in range(shape.k + 1)]
    more = float(shape.depth) if cost.reads_accepted else 1.0
    return np.array([*times, cost.call(shape.cut(shape.k), more).best - times[-1]])


def _estimates(found: DraftedLengths, inside: bool, of: Callable[[Floats], Interval]) -> list[Interval]:
    """That with the right mean, or a lower and an upper one."""
    return [of(found.stopping)] if inside else [of(found.going), of(found.stopping)]


def _cut(estimates: Sequence[Interval], low: Interval, high: Interval) -> Interval:
    """The range of the estimates inside the certain bounds, whose own ranges are over prompts."""
    middle = float(np.mean([each.best for each in estimates]))
    best = min(max(middle, low.best), high.best)
    if "estimate" in {each.kind for each in estimates}:  # one prompt says nothing of the error
        return Interval(low.best, best, high.best, "bound")
    least, most = min(each.low for each in estimates), max(each.high for each in estimates)
    kind: Kind = "bound" if least < low.low and most > high.high else "statistical"
    return Interval(min(max(least, low.low), best), best, max(min(most, high.high), best), kind)
