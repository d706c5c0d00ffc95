"""Tokens per call and the time of a call, over prompts drawn again for both together (C2)."""

from __future__ import annotations

import numpy as np

from spectheory.cost import CostModel
from spectheory.drafting import Copied
from spectheory.intervals import Interval, weakest
from spectheory.resampling import PromptSums
from spectheory.shape_calls import ShapeCalls

_ENDS = ("low", "best", "high")


def add_call_sums(sums: PromptSums, name: str, found: ShapeCalls, cost: CostModel | None, prefilled: int) -> None:
    """Sums of calls and, where their drafts vary in length, of their times by each end of the latencies' intervals.

    `prefilled` counts the calls of each text that are the prompt's own pass.
    """
    sums.add(f"verifying {name}", found.calls.expected - prefilled)
    sums.add(f"full {name}", found.calls.full)
    if cost and found.by_drafted is not None:
        times = _times(found, cost)
        for end in _ENDS:
            seconds = np.array([getattr(time, end) for time in times])
            sums.add(f"time {name} {end}", found.by_drafted[:, : len(times)] @ seconds)


def speedup(sums: PromptSums, name: str, found: ShapeCalls, cost: CostModel) -> Interval | None:
    r"""Speed-up over plain decoding from the sums ``decoded`` and those of :func:`add_call_sums` (C2; 95% interval).

    .. math:: \text{tokens} \cdot \frac{t_\text{target}(1)}{\sum_j \text{calls that draft } j \cdot t(j)}

    Prompts are drawn again for tokens, calls and what each of them drafts together; the ends of the latencies'
    intervals multiply the ends. Decoding alone: a token that the prompt's own pass emits, and that pass, count on
    neither side.

    Returns
    -------
    Interval or None
        None without a call.
    """
    verifying = f"verifying {name}"
    if sums.total(verifying) <= 0:
        return None
    if found.by_drafted is None:
        per_call = sums.ratio("decoded", verifying, limits=(1.0, found.shape.depth + 1.0))
        return cost.speedup(per_call, found.shape, sums.total(f"full {name}") / sums.total(verifying))
    step, times = cost.target_step(), _times(found, cost)
    by_end = {}
    for end in _ENDS:
        seconds = np.array([getattr(time, end) for time in times])
        # A call that drafts j tokens outputs one at least, and j + 1 at most.
        limits = float((1 / seconds).min()), float((np.arange(1, len(times) + 1) / seconds).max())
        by_end[end] = sums.ratio("decoded", f"time {name} {end}", limits=limits)
    return Interval(
        step.low * by_end["high"].low,
        step.best * by_end["best"].best,
        step.high * by_end["low"].high,
        weakest(step.kind, by_end["best"].kind, *(time.kind for time in times)),
    )


def _times(found: ShapeCalls, cost: CostModel) -> list[Interval]:
    """The time of a call that copies 0, 1, ... tokens, up to the longest draft that occurs."""
    assert found.by_drafted is not None
    k, occur = found.shape.nodes, np.flatnonzero(found.by_drafted.sum(axis=0))
    certain = np.eye(k + 1)[: occur.max(initial=0) + 1]
    return [cost.call(Copied(k, tuple(shares))) for shares in certain.tolist()]
