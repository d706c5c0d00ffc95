"""Families of random pmfs, from flat to nearly certain, at which the branching bounds are compared.

A family is a fixed population of pmfs, drawn once by a fixed seed; every prefix draws one of them. The law of a step
and its moments are then known exactly, so that a comparison has no sampling error but that of the simulated trees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SettingError

CAPACITIES = (1, 4, 16, 64, 256, 1024, 4096)
"""Numbers P of draft nodes at which they are compared."""

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]
"""Draws n pmfs on V tokens, unnormalised: generator, n, V."""


def _softmax(rng: np.random.Generator, n: int, tokens: int, spread: float) -> Floats:
    logits = spread * rng.standard_normal((n, tokens))
    return np.exp(logits - logits.max(axis=1, keepdims=True))


def _zipf(rng: np.random.Generator, n: int, tokens: int) -> Floats:
    """Powers of the rank with exponents uniform on [0.5, 3]."""
    return np.arange(1, tokens + 1) ** -rng.uniform(0.5, 3, (n, 1))


def _two_kinds(rng: np.random.Generator, n: int, tokens: int) -> Floats:
    """One token with 0.99 in four fifths of the contexts, uniform in the others."""
    certain = rng.random((n, 1)) < 0.8
    first = np.arange(tokens) == 0
    return np.where(certain, np.where(first, 0.99, 0.01 / (tokens - 1)), np.full(tokens, 1 / tokens))


MIXED = "nearly certain (80%) or flat"
"""Its trees differ most, so that it takes more of them."""

FAMILIES: dict[str, Draw] = {
    "Dirichlet, α = 1": lambda rng, n, tokens: rng.dirichlet(np.ones(tokens), n),
    "Dirichlet, α = 0.05": lambda rng, n, tokens: rng.dirichlet(np.full(tokens, 0.05), n),
    "softmax of normal logits, sd 2": lambda rng, n, tokens: _softmax(rng, n, tokens, 2.0),
    "softmax of normal logits, sd 5": lambda rng, n, tokens: _softmax(rng, n, tokens, 5.0),
    "Zipf, exponent 0.5 to 3": _zipf,
    MIXED: _two_kinds,
}
"""What a language model's pmfs are like lies among them: some contexts certain, some wide open."""


@lru_cache(maxsize=8)
def population(name: str, pmfs: int, tokens: int) -> Floats:
    """The pmfs of a family, ``[pmfs, tokens]``; the same in every run."""
    if name not in FAMILIES:
        raise SettingError(f"the family is {name!r}", limit=f"there are {', '.join(FAMILIES)}", remedy="name one")
    weights = FAMILIES[name](np.random.default_rng(list(FAMILIES).index(name)), pmfs, tokens)
    return weights / weights.sum(axis=1, keepdims=True)
