"""Step laws that the tests of B3 and B3' share."""

from __future__ import annotations

from functools import cache

import numpy as np

from proofs_check.library.strategies import Floats

ROUNDING = 1e-10
"""Relative: a recursion of at most ten thousand positive terms of a thousand products each, and the exponentials."""


# Random trees below the bounds


@cache
def population(name: str) -> Floats:
    """Pmfs over 16 tokens of which every prefix draws one: the step law is then exact."""
    rng = np.random.default_rng(11)
    if name == "softmax":
        weights = np.exp(3 * rng.standard_normal((200, 16)))
    elif name == "sparse":
        weights = np.where(rng.random((200, 16)) < 0.2, rng.random((200, 16)), 0.0)
        weights[np.arange(200), rng.integers(16, size=200)] += 1
    elif name == "two regimes":
        weights = np.stack([np.append(0.98 * 15 / 0.02, np.ones(15)), np.ones(16)])
    else:
        raise KeyError(name)
    return weights / weights.sum(axis=1, keepdims=True)
