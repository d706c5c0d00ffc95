"""Trees of a drafter with imperfect knowledge: what they give, and what they lose to the target's own (B8)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from simulations.counts.quantities import Mean
from simulations.verdicts.predictions import Predicted, predicts


@predicts("draft-trees")
def draft_trees(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The identity, both sides of the loss, and B6, which bounds every tree that does not see the sampling."""
    for capacity, threshold in zip(parameters["capacities"], parameters["thresholds"], strict=True):
        at = f"P = {capacity}"
        yield Predicted(f"depth of the text less p(T_q), {at}", "B8", Mean(f"depth less drafted P={capacity}"), 0.0)
        yield Predicted(f"loss, {at}", "B8", Mean(f"loss P={capacity}"), 0.0, "lower bound")
        yield Predicted(f"loss less bound, {at}", "B8", Mean(f"loss less bound P={capacity}"), 0.0, "upper bound")
        rest = capacity * math.exp(-threshold)
        says = f"p(T_q) less the text's part of the bound, {at}"
        yield Predicted(says, "B6", Mean(f"drafted less text P={capacity}"), rest, "upper bound")
