"""Means over pairs of pmfs, and which of them are too long to compute (R8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SettingError
from spectheory.intervals import CONFIDENCE, Interval, weakest

Floats = NDArray[np.float64]
MOST_WORK = 1 << 24
"""Entries that are worked through for one number: a second or two."""
_FEW_ODDS = 1 << 15
"""Entries that the merged odds of a pair are worth, however many tokens it has."""


def too_long(entries: int) -> bool:
    """Whether so many entries are more than are worked through for one number."""
    return entries > MOST_WORK


def repeats(entries: int) -> int:
    """How often so many entries may be worked through."""
    return MOST_WORK // entries


def exact_mean(values: Any) -> Interval:
    """The mean of exact values."""
    return Interval.exact(float(np.mean(values)))


def least_mean(bounds: Any) -> Interval:
    """The mean of lower bounds of a probability."""
    low = float(np.mean(bounds))
    return Interval(low, low, max(low, 1.0), "bound")


def interval_mean(found: Sequence[Interval]) -> Interval:
    """The mean of intervals, of the weakest kind."""
    low, best, high = (float(np.mean([getattr(one, end) for one in found])) for end in ("low", "best", "high"))
    return Interval(low, best, high, weakest(*(one.kind for one in found)))


def batch_mean(means: Sequence[float]) -> Interval:
    """The mean of independent estimates of a probability, 95% by Student."""
    from scipy.special import stdtrit

    best = float(np.mean(means))
    width = float(stdtrit(len(means) - 1, (1 + CONFIDENCE) / 2) * np.std(means, ddof=1)) / len(means) ** 0.5
    return Interval(max(best - width, 0.0), best, max(min(best + width, 1.0), best), "statistical")


def endless_entropy(
    entropy: Callable[[Floats, Floats], Interval], target: Floats, draft: Floats
) -> tuple[Interval | None, str]:
    """Mean H(R) of endless i.i.d. candidates, pair by pair, or why there is none."""
    pairs, tokens = target.shape
    if too_long(pairs * min(32 * tokens, _FEW_ODDS + 4 * tokens)):
        return None, f"no H(R): {pairs} x {tokens} tokens would take minutes"
    try:
        return interval_mean([entropy(p, q) for p, q in zip(target, draft, strict=True)]), ""
    except SettingError:
        return None, "no H(R): the draft lacks tokens of the target, whose rank is infinite"
