"""Chains that the tests of decoding share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from proofs_check.algorithms import enumeration
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.markov_decoding import token_calls
from simulations.models.pairs import CallCounts
from simulations.reference.decoding import DraftTree, Pair
from tests.simulations.laws import Floats

KERNELS: dict[str, Callable[..., CallCounts]] = {"token": token_calls, "block": block_calls}


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


def uniform_start(pair: Pair) -> Floats:
    return np.full(pair.target.shape[-1], 1 / pair.target.shape[-1])


def chain_of(k: int) -> DraftTree:
    return DraftTree((1,) * depth for depth in range(1, k + 1))


def tenths_chain(seed: int, tokens: int, steps: int) -> tuple[list[list[list[Fraction]]], Floats]:
    """Non-stationary rows of tenths, zeros among them, in fractions and in floats."""
    weights = np.random.default_rng(seed).multinomial(10, np.full(tokens, 1 / tokens), size=(steps, tokens))
    return [[[Fraction(int(w), 10) for w in row] for row in step] for step in weights], weights / 10


def model(chain: list[list[list[Fraction]]]) -> enumeration.Model:
    """The chain as a function of the prefix, after token 0."""
    return lambda prefix: tuple(chain[len(prefix)][prefix[-1] if prefix else 0])
