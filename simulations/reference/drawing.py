"""One token from a pmf: by its alias table, or by inversion."""

from __future__ import annotations

import numpy as np

from simulations.draws.alias import Floats, alias, drawn
from simulations.draws.streams import Stream


def from_table(pmf: Floats, stream: Stream) -> int:
    """One token by the alias table of a pmf."""
    return int(drawn(*alias(pmf), stream.uniform()))


def inverted(pmf: Floats, stream: Stream) -> int:
    """One token by inversion of the cumulative weights, which need not sum to one."""
    cumulative = np.cumsum(pmf)
    return int(np.searchsorted(cumulative, stream.uniform() * cumulative[-1], side="right"))


def inverted_in_order(weights: Floats, order: list[int], stream: Stream) -> int:
    """One token by inversion of weights that need not sum to one, tokens in the given order."""
    share, passed = stream.uniform() * float(weights.sum()), 0.0
    for token in order:
        passed += float(weights[token])
        if passed > share:
            return token
    raise AssertionError("there is nothing to draw from")
