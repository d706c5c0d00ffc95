"""What the entries of a validation's answer mean: its version, its limits, the parts of a miss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

SCHEMA = 1
"""Version of ``validation.json``."""
FALSE_ALARMS = 1e-3
"""A validation in which every expectation is right reports a disagreement this often at most."""
WITHIN = 3.0
"""Standard deviations that a right prediction leaves in 0.27% of comparisons."""
JUDGE, FILTERS_JUDGE = JUDGES = ("assisted", "assisted-filters")
"""transformers' assisted generation, which is token verification; the same with its own filters."""
PARTS = {
    "texts": "the texts are others than the trace's",
    "acceptance": "calls counted against those expected of these very texts",
    "cut": "calls as made against those predicted: fewer drafts where a text ends or a draft has no more, full "
    "acceptances",
    "drafting": "draft passes as timed against the table",
    "verifying": "verifying passes as timed against the table",
    "overhead": "a call outside the passes (drawing, verifying, moving caches), against the loop in the table",
    "plain": "plain decoding outside its passes: the same for the denominator",
}
"""The parts of the budget and what each holds against what."""


def median_miss(misses: Sequence[Mapping[str, float]]) -> float | None:
    """Median of |measured / predicted - 1|, in per cent."""
    sizes = [100 * abs(math.expm1(one["best"] / 100)) for one in misses]
    return float(np.median(sizes)) if sizes else None


def shape_name(record: Mapping[str, Any]) -> str:
    """A chain by its length, a k-ary tree by its branching; other shapes as they are written."""
    return str(record["shape"]).removeprefix("chain ").removeprefix("k-ary ")


def pair_name(answer: Mapping[str, Any]) -> str:
    """Target and draft by name."""
    models = answer["provenance"]
    return f"{models['target']['name']} with {models['draft']['name']}"
