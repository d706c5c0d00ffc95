"""Over-acceptance at one position, trial by trial (Y5; yin2024)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream
from simulations.reference.drawing import from_table


class Output(NamedTuple):
    """A token, and whether it was recovered after a rejection."""

    token: int
    recovered: bool


def over_accepted(p: Floats, q: Floats, accept: Floats, recovery: str, stream: Stream) -> Output:
    """One draft, accepted with the probability stated for its token; else recovered from (p - q)+ or from p."""
    token = from_table(q, stream)
    if stream.uniform() < accept[token]:
        return Output(token, recovered=False)
    residual = np.maximum(p - q, 0.0)
    law = p if recovery == "target" or not residual.any() else residual / residual.sum()
    return Output(from_table(law, stream), recovered=True)
