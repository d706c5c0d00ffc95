"""Tokens per call and the time of a call, joined to a speed-up (C2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel
from spectheory.cost.model import Ends
from spectheory.drafting import Copied, Shape
from spectheory.intervals import Interval
from spectheory.prediction.over_prompts import Prompts, deviation, interval, reach
from spectheory.prediction.shape_calls import ShapeCalls

Floats = NDArray[np.float64]
Times = Callable[[CostModel], Floats]
"""Seconds of the kinds of calls that occur."""


def speedup(
    prompts: Prompts,
    found: ShapeCalls,
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
    tokens, calls = prompts.sum(decoded), prompts.sum(found.calls.expected - prefilled)
    if calls[0] <= 0:
        return None
    if found.by_drafted is None:
        return speedup_of_chain(tokens, calls, prompts.sum(found.calls.full), found.shape, cost, errors)
    k, longest = found.shape.nodes, int(np.flatnonzero(found.by_drafted.sum(axis=0)).max(initial=0))
    kinds = [prompts.sum(column) for column in found.by_drafted.T[: longest + 1]]
    copies = [found.shape.by(Copied(tuple(shares))) for shares in np.eye(k + 1)[: longest + 1].tolist()]
    timed = Timed.by(cost, errors, lambda model: best_of(model.call(copied) for copied in copies))
    return joined(tokens, np.sum(kinds, axis=0), kinds, longest, timed)


def speedup_of_chain(
    tokens: Floats, calls: Floats, full: Floats, shape: Shape, cost: CostModel, errors: Sequence[Ends]
) -> Interval:
    """The same from sums over prompts ``[1 + prompts]``, where every call drafts the shape.

    `full` counts the calls after a full acceptance, where the draft's first pass is on two tokens. A head's first pass
    is on accepted + 1 tokens: its mean time is taken between those on the fewest and the most. Where the time is linear
    in tokens it is exact but for what a text's last call accepts, which counts as read; else it is an estimate.
    """
    late, most = ((tokens - calls) / shape.depth, shape.depth) if cost.reads_accepted else (full, 1)
    late = np.clip(late, 0.0, calls)
    timed = Timed.by(cost, errors, lambda model: best_of(model.call(shape, more) for more in (0.0, float(most))))
    return joined(tokens, calls, [calls - late, late], shape.depth, timed)


@dataclass(frozen=True)
class Timed:
    """Seconds of a plain step ``[1 + 2 errors]`` and of the kinds of calls ``[1 + 2 errors, kinds]``.

    The first row is the best known, then each independent error has both ends of its 95% interval. The last `besides`
    columns are no calls, but what some calls take besides.
    """

    steps: Floats
    kinds: Floats
    besides: int = 0

    @classmethod
    def by(cls, cost: CostModel, errors: Sequence[Ends], times: Times, besides: int = 0) -> Timed:
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


def joined(tokens: Floats, calls: Floats, kinds: Sequence[Floats], longest: int, timed: Timed) -> Interval:
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


def best_of(times: Iterable[Interval]) -> Floats:
    """Their best values."""
    return np.array([time.best for time in times])
