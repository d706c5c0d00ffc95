"""Drafted tokens of stopped chains (§11): counted against their estimate by likelihood ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from spectheory.intervals import CONFIDENCE, Interval
from spectheory.measure.validation.runs import Run

_ROUNDING = 1e-6
"""Of sums of some hundred calls."""


def drafted_tokens(runs: Sequence[Run]) -> dict[str, Any]:
    """Drafts per call of a setting, counted and expected of the same texts; `inside` says whether the two agree.

    Counted minus estimated drafts of a prompt have mean 0. The interval is that of Student's law over prompts, 95%,
    around the two estimates, which differ most where the draft may leave what the target can output; it is cut to the
    certain bounds. Ratios have heavy tails, so the coverage is approximate, and nothing is decided by it.
    """
    known = [(run.drafted, run.expected.drafted) for run in runs if run.expected and run.expected.drafted]
    counted, bounds = np.array([n for n, _ in known], dtype=float), np.array([of for _, of in known])
    calls = sum(run.count for run in runs)
    low, going, stopping, high = bounds.sum(axis=0)
    off = counted - bounds[:, 1:3].mean(axis=1)
    room = stdtrit(len(off) - 1, (1 + CONFIDENCE) / 2) * math.sqrt(len(off)) * float(off.std(ddof=1))
    ends = max(low, min(going, stopping) - room), min(high, max(going, stopping) + room)
    best = min(max((going + stopping) / 2, ends[0]), ends[1])
    found = Interval(ends[0] / calls, best / calls, ends[1] / calls, "statistical")
    total = float(counted.sum())
    return {
        "counted": total / calls,
        "expected": found.as_dict(),
        "certain": [low / calls, high / calls],
        "inside": bool(ends[0] - _ROUNDING <= total <= ends[1] + _ROUNDING),
    }
