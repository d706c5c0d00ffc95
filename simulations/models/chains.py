"""Pairs of Markov chains, checked, and the counts of texts decoded on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.draws.streams import Words
from spectheory.distributions import validate_pair, validate_pmf
from spectheory.errors import SettingError, ShapeError

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Chains:
    """Target and draft as Markov chains over one vocabulary, checked.

    - ``target``, ``draft``, ``[S, V, V]``: entry ``[n, x, y]`` is the probability of y after x at position n; S = 1
      serves every position.
    - ``initial``, ``[V]``: pmf of the token before the first position, which is not counted.
    """

    target: Floats
    draft: Floats
    initial: Floats


@dataclass(frozen=True)
class RejectionCounts:
    """Texts with a rejection at each position ``[T]``, and texts by their number of rejections ``[T + 1]``."""

    positions: Counts
    texts: Counts

    def __add__(self, other: RejectionCounts) -> RejectionCounts:
        return RejectionCounts(self.positions + other.positions, self.texts + other.texts)


@dataclass(frozen=True)
class CallCounts:
    """Calls by their accepted drafts, ``[k + 1]``, and texts by their number of calls, ``[length + 1]``."""

    accepted: Counts
    texts: Counts


def checked_chains(target: Any, draft: Any, initial: Any, *, length: int) -> Chains:
    """Check a pair of chains and the pmf of the first token.

    - ``target``, ``draft``, ``[V, V]`` or ``[T, V, V]``: row-stochastic; with a step axis, one matrix for each of the
      `length` positions.
    - ``initial``, ``[V]``: pmf of the token before the first position.
    """
    pair = validate_pair(np.asarray(target, dtype=np.float64), np.asarray(draft, dtype=np.float64))
    start = np.ascontiguousarray(validate_pmf(np.asarray(initial, dtype=np.float64), "initial"))
    for name, chain in zip(("target", "draft"), pair, strict=False):
        if chain.ndim not in (2, 3) or chain.shape[-2] != chain.shape[-1]:
            raise ShapeError(
                f"{name} has shape {chain.shape}",
                limit="must be [V, V] or [T, V, V]",
                remedy="row x is the pmf of the token after x",
            )
        if chain.ndim == 3 and chain.shape[0] != length:
            raise ShapeError(
                f"{name} has {chain.shape[0]} steps",
                limit=f"the texts have {length} tokens",
                remedy="give one matrix per position, or one for all",
            )
    if start.shape != pair[0].shape[-1:]:
        raise ShapeError(
            f"initial has shape {start.shape}",
            limit=f"must be [{pair[0].shape[-1]}], the tokens of the chains",
            remedy="give the pmf of the token before the first position",
        )
    shape = np.broadcast_shapes((1, *start.shape, *start.shape), pair[0].shape, pair[1].shape)
    p, q = (np.ascontiguousarray(np.broadcast_to(chain, shape)) for chain in pair[:2])
    return Chains(p, q, start)


def checked_stream(state: Words) -> Words:
    """Check that an array is the state of a stream."""
    if not (isinstance(state, np.ndarray) and state.dtype == np.uint64 and state.shape == (4,) and state.any()):
        raise SettingError("state is no stream", limit="four 64-bit words, not all 0", remedy="use streams.words(seed)")
    return state
