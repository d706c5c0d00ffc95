"""Models and trees that the tests of draft trees along a text share."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from proofs_check.algorithms.enumeration import Model, Pmf, Prefix
from spectheory import drafting

Floats = NDArray[np.float64]

Path = tuple[int, ...]

Tree = frozenset[Path]

ROUNDING = 1e-12
"""The library against fractions: some twenty operations on numbers near one, each within 1e-16."""


# Models whose pmf at every prefix has its own small integer weights: nothing is stationary or Markov


def chain(seed: str, tokens: int, zeros: bool = False) -> Model:
    @cache
    def model(prefix: Prefix) -> Pmf:
        rng = random.Random(f"{seed} {prefix}")
        weights = [rng.randint(0 if zeros else 1, 5) for _ in range(tokens)]
        if sum(weights) == 0:
            weights[rng.randrange(tokens)] = 1
        return tuple(Fraction(weight, sum(weights)) for weight in weights)

    return model


TREES: dict[str, Tree] = {
    "batch 2": frozenset({(1,), (2,)}),
    "k-ary 2x1": frozenset({(1,), (2,), (1, 1), (2, 1)}),
    "uneven": frozenset({(1,), (2,), (1, 1), (1, 2)}),
    "chain": frozenset({(1,), (1, 1), (1, 1, 1)}),
    "leaves at all depths": frozenset({(1,), (2,), (1, 1), (1, 2), (1, 1, 1)}),
    "ranks left out": frozenset({(2,), (2, 1), (2, 1, 2), (2, 2)}),
}


def library_tree(tree: Tree) -> drafting.Tree:
    return drafting.Tree.from_paths(list(tree))
