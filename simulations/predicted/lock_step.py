"""Rounds of lock-step batches of texts, from the law of a text's calls (§7, §12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simulations.counts.quantities import Mean
from simulations.models.recipes import chains_of
from simulations.predicted.markov_calls import markov_call_law
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.drafting import Chain
from spectheory.verification import TokenVerification


@predicts("lock-step")
def lock_step(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """E[max] of a batch."""
    length, tree = parameters["length"], Chain(parameters["k"]).tree()
    law = markov_call_law(TokenVerification(), *chains_of(parameters), length=length, tree=tree)
    longer = 1 - np.cumsum(law)[:-1] ** parameters["batch"]  # P(max > t), t = 0, 1, ...
    quantity = Mean("rounds", -(-length // (parameters["k"] + 1)), length)
    mean, square = float(longer.sum()), float((2 * np.arange(length) + 1) @ longer)
    yield Predicted("rounds per batch", "§12-lock-step", quantity, mean, variance=max(square - mean**2, 0.0))
