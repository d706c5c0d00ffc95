"""Each prompt alike: the mean over prompts of their own tokens per call, and the range of prompts to come.

Tokens per call pool the calls of all prompts, as an engine's counters do, so a few long texts may decide them. The mean
here has each prompt once. Its 95% interval is for the mean over all prompts of this kind; a 95% *prediction* interval
is for the mean over N new ones, and for N = 1 for a single prompt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.prediction.best_tree import ShapeRequest
from spectheory.prediction.over_prompts import Prompts, interval, left_out, reach
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.trace import Trace
from spectheory.verification import PathRule

LARGEST = 0.01
"""Share of the prompts, at least one, that are called the largest."""
HEAVY = 0.1
"""Share of all tokens above which the largest prompts are a heavy tail: pooled intervals are then too short."""
_TIMES = 5.0
"""A heavy tail is also so many times what as many equal prompts would hold, or few prompts would always have one."""


@dataclass(frozen=True)
class PerPrompt:
    """Tokens per call with each prompt once: `mean` has its 95% interval over prompts, `new` is for `prompts` new ones.

    `mean` is an estimate of unknown error with one prompt; the others are None if they were not asked for.
    """

    wanted: ShapeRequest
    mean: Interval
    new: Interval | None = None
    prompts: int | None = None


def per_prompt(
    trace: Trace,
    rule: PathRule,
    shapes: Sequence[ShapeRequest],
    *,
    new: int | None = None,
    prefill_emits_token: bool = False,
) -> Iterator[PerPrompt]:
    r"""The mean over prompts of each one's own tokens per call, by shape; with `new` the range of so many new prompts.

    With n prompts, mean m and standard deviation s, the mean over N new ones is in
    :math:`m \pm t_{n-1} s \sqrt{1/n + 1/N}` with probability .95 (statistical, exact for normal values;
    docs/intervals.md has its measured coverage).

    Raises
    ------
    SettingError
        If a range of new prompts is asked for and there are fewer than two to learn from.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> from spectheory.verification import TokenVerification
    >>> alike, never = ([-1.0] * 40, [-1.0] * 40), ([-1.0] * 4, [-9.0] * 4)
    >>> trace = Trace.from_log_probabilities([alike, never])
    >>> (answer,) = per_prompt(trace, TokenVerification(), [Chain(1)], new=1)
    >>> round(answer.mean.best, 3), answer.new
    (1.5, Interval(low=1.0, best=1.5001258020007135, high=2.0, kind='statistical'))
    """
    prompts = Prompts(trace.texts)
    if new is not None and prompts.count < 2:
        raise SettingError(
            f"new prompts are asked for from {prompts.count} prompt", limit="needs 2 or more", remedy="measure more"
        )
    for shape_calls in calls_by_shape(trace, rule, shapes, prefill_emits_token=prefill_emits_token):
        limits = (1.0, shape_calls.shape.depth + 1.0)
        tokens, calls = (sums[0] - sums[1:] for sums in map(prompts.sum, (trace.lengths, shape_calls.calls.expected)))
        per_call = tokens / calls
        sums = left_out(per_call), left_out(np.ones(len(per_call)))
        with np.errstate(invalid="ignore"):
            mean = interval(sums[0] / sums[1], sums[1], limits=limits, logarithmic=False)
        yield PerPrompt(shape_calls.wanted, mean, _of_new(per_call, new, limits) if new else None, new)


def _of_new(per_call: NDArray[np.float64], new: int, limits: tuple[float, float]) -> Interval:
    mean = float(per_call.mean())
    half = reach(len(per_call) - 1) * float(per_call.std(ddof=1)) * math.sqrt(1 / len(per_call) + 1 / new)
    return Interval(min(max(mean - half, limits[0]), mean), mean, max(min(mean + half, limits[1]), mean), "statistical")


@dataclass(frozen=True)
class Largest:
    """The longest 1% of the prompts, at least one, and the `share` of all tokens that these `prompts` of `of` hold."""

    prompts: int
    of: int
    share: float

    @classmethod
    def of_trace(cls, trace: Trace) -> Largest:
        """Those of a trace."""
        prompts = Prompts(trace.texts)
        sums = prompts.sum(trace.lengths)
        most = math.ceil(LARGEST * prompts.count)
        return cls(most, prompts.count, float(np.sort(sums[0] - sums[1:])[-most:].sum() / sums[0]))

    @property
    def heavy(self) -> bool:
        """Whether so few prompts decide about the pooled tokens per call."""
        return self.share > max(HEAVY, _TIMES * self.prompts / self.of)
