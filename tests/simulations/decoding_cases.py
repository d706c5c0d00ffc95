"""Chains and counts that the tests of decoding share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from proofs_check.algorithms import enumeration
from proofs_check.library.strategies import Floats
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.markov_decoding import (
    token_calls,
)
from simulations.models.chains import CallCounts, Counts
from simulations.reference.markov import Pair

ALARM = 1e-10


LOG = math.log(2 / ALARM)


Kernel = Callable[..., CallCounts]


KERNELS: dict[str, Kernel] = {"token": token_calls, "block": block_calls}


def strays(total: float, expected: float, variance: float, largest: float) -> bool:
    """Whether a sum of independent terms of that total variance, each within `largest` of its mean, is too far off."""
    slack = largest * LOG / 3
    return abs(total - expected) > slack + math.sqrt(slack**2 + 2 * variance * LOG)


def straying_shares(counts: Counts, trials: int, shares: Floats) -> list[int]:
    """Cells whose counts are too far from their probabilities."""
    return [
        i
        for i, (count, share) in enumerate(zip(counts, shares, strict=True))
        if strays(int(count), trials * share, trials * share * (1 - share), 1.0)
    ]


# The kernels are their twins


def made_up(tokens: int, steps: int, seed: int) -> Pair:
    """A pair whose draft is off by a factor here and there; either lacks a token now and then."""
    rng = np.random.default_rng(seed)
    shape = (steps, tokens, tokens) if steps else (tokens, tokens)
    target = rng.dirichlet(np.full(tokens, 0.7), size=shape[:-1])
    draft = target * np.exp(1.5 * rng.standard_normal(shape))
    for chain in (target, draft):
        chain[rng.random(shape) < 0.1] = 0
        chain[..., -1] += 1e-3
    return Pair(*(chain / chain.sum(axis=-1, keepdims=True) for chain in (target, draft)))


def everywhere(p: Sequence[float], q: Sequence[float]) -> Pair:
    """A pair whose pmfs are the same everywhere."""
    return Pair(np.tile(p, (len(p), 1)), np.tile(q, (len(q), 1)))


EDGES = {
    "equal": everywhere([0.3, 0.7], [0.3, 0.7]),
    "disjoint": everywhere([0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]),
    "one-hot": everywhere([0, 1, 0], [0, 1, 0]),
    "one-hot apart": everywhere([0, 1, 0], [1, 0, 0]),
    "the draft lacks tokens": everywhere([0.2, 0.3, 0.5], [0.2, 0.8, 0.0]),
    "the target lacks tokens": everywhere([0.2, 0.8, 0.0], [0.2, 0.3, 0.5]),
    "one token": everywhere([1.0], [1.0]),
    "p/q of 1e305": everywhere([0.5, 0.5], [1.0, 1e-306]),
    "q/p of 1e305": everywhere([1.0, 1e-306], [0.5, 0.5]),
    "equal ratios": everywhere([0.2, 0.2, 0.3, 0.3], [0.1, 0.1, 0.4, 0.4]),
}


SIZES = [(2, 0, 1, 1), (3, 0, 2, 9), (5, 8, 3, 8), (4, 6, 9, 6), (9, 0, 4, 30)]
"""Tokens, steps (0: stationary), drafts per call, length."""


def runs() -> Iterator[tuple[Pair, int, int, int]]:
    """Pair, k, length, seed: some hundreds."""
    for seed in range(40):
        for tokens, steps, k, length in SIZES:
            yield made_up(tokens, steps, seed), k, length, seed
    for seed, pair in product(range(5), EDGES.values()):
        yield pair, 3, 10, seed


def uniform_start(pair: Pair) -> Floats:
    return np.full(pair.target.shape[-1], 1 / pair.target.shape[-1])


def tenths_chain(seed: int, tokens: int, steps: int) -> tuple[list[list[list[Fraction]]], Floats]:
    """Non-stationary rows of tenths, zeros among them, in fractions and in floats."""
    weights = np.random.default_rng(seed).multinomial(10, np.full(tokens, 1 / tokens), size=(steps, tokens))
    return [[[Fraction(int(w), 10) for w in row] for row in step] for step in weights], weights / 10


def model(chain: list[list[list[Fraction]]]) -> enumeration.Model:
    """The chain as a function of the prefix, after token 0."""
    return lambda prefix: tuple(chain[len(prefix)][prefix[-1] if prefix else 0])


# Rejections along long texts, against Y1 and Y3

HORIZON, REJECTED_TEXTS = 50, 200_000
"""A position's rejections are known to 0.008, those of a text to 0.06 of 16.4."""
