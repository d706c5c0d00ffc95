"""Best trees of a language model: B6, which assumes nothing of its text, as a bound on a difference of means.

The thresholds are fixed beforehand, so that E[X] - E[sum over i of (1 - e^(S_i - t))+] <= P e^-t is a statement about
means of samples, and nothing in it is estimated. B2' of the measured moments is an idealised value, not a prediction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from simulations.counts.quantities import Mean
from simulations.verdicts.predictions import Predicted, predicts


@predicts("model-trees")
def model_trees(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """B6 at every capacity, and that the surprisal of what is sampled is the entropy in the mean."""
    for capacity, threshold in zip(parameters["capacities"], parameters["thresholds"], strict=True):
        rest = capacity * math.exp(-threshold)
        says = f"E[X] less the text's part of the bound, P = {capacity}"
        yield Predicted(says, "B6", Mean(f"P={capacity} less text"), rest, "upper bound")
    yield Predicted("mean surprisal less mean entropy", "many-to-one", Mean("surprisal less entropy"), 0.0)
