"""Prompts of the tiny models, and a model read anew for every prefix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simulations.reference.trees import PmfAfter

torch = pytest.importorskip("torch")

PROMPTS = ((3, 1, 4), (1, 5, 9, 2, 6), (5, 2))


def pmf_of(network: Any) -> PmfAfter:
    """The pmf after the tokens of a text."""

    def after(tokens: Sequence[int]) -> NDArray[np.float64]:
        with torch.inference_mode():
            logits = network(input_ids=torch.tensor([list(tokens)])).logits[0, -1]
        return torch.softmax(logits.double(), dim=-1).numpy()

    return after
