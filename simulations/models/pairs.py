"""Pmfs of single positions and pairs of Markov chains, checked; chains named by a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.draws import Counts, Floats, Words
from spectheory.distributions import validate_pair, validate_pmf
from spectheory.errors import SettingError, ShapeError

MOST_OUTPUTS = 4096
"""Largest vocabulary whose outputs are counted and compared one by one: each is a number of every saved batch."""


def one_pair(target: Any, draft: Any) -> tuple[Floats, Floats]:
    """Check the pmfs ``[V]`` of one position."""
    p, q, _ = validate_pair(np.asarray(target, dtype=np.float64), np.asarray(draft, dtype=np.float64))
    if p.ndim != 1 or q.ndim != 1:
        raise ShapeError(
            f"target {p.shape} and draft {q.shape}", limit="needs [V], one position", remedy="simulate row by row"
        )
    return np.ascontiguousarray(p), np.ascontiguousarray(q)


def paired_rows(target: Any, draft: Any) -> tuple[Floats, Floats]:
    """Check pairs of pmfs ``[n, V]``; a single pair ``[V]`` becomes one row, and one row serves many."""
    p, q, _ = validate_pair(np.asarray(target, dtype=np.float64), np.asarray(draft, dtype=np.float64))
    shape = np.broadcast_shapes((1, p.shape[-1]), p.shape, q.shape)
    _check_rows(shape)
    return np.ascontiguousarray(np.broadcast_to(p, shape)), np.ascontiguousarray(np.broadcast_to(q, shape))


def pmf_rows(pmfs: Any) -> Floats:
    """Check a family of pmfs ``[n, V]``; a single pmf ``[V]`` becomes one row."""
    rows = np.atleast_2d(validate_pmf(np.asarray(pmfs, dtype=np.float64), "pmfs"))
    _check_rows(rows.shape)
    return np.ascontiguousarray(rows)


def _check_rows(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] == 0:
        raise ShapeError(f"the pmfs have shape {shape}", limit="needs [n, V], n >= 1", remedy="one pmf a row")


def by_output(counts: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """The counts of each token ``[V]`` as a part of a tally; none beyond :data:`MOST_OUTPUTS`."""
    return {"output": counts} if counts.size <= MOST_OUTPUTS else {}


def whole_number(name: str, value: int) -> int:
    """Check a number of trials, ranks or nodes.

    Examples
    --------
    >>> whole_number("trials", 0)
    Traceback (most recent call last):
    spectheory.errors.SettingError: trials is 0: must be a whole number >= 1; nothing can be counted below 1
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise SettingError(
            f"{name} is {value!r}", limit="must be a whole number >= 1", remedy="nothing can be counted below 1"
        )
    return int(value)


# Markov chains, and the counts of texts decoded on them


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


class RejectionCounts(NamedTuple):
    """Texts with a rejection at each position ``[T]``, and texts by their number of rejections ``[T + 1]``."""

    positions: Counts
    texts: Counts


class CallCounts(NamedTuple):
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


# Chains named by a recipe in a task's parameters: a task stays small, matrices are made where they are used


PAPER_TOKENS, PAPER_SEED = 7, 10


class Pair(NamedTuple):
    """Target and draft as transition pmfs ``[V, V]`` or ``[T, V, V]``, and the pmf ``[V]`` of the token before."""

    target: Floats
    draft: Floats
    initial: Floats


@cache
def paper_chains(length: int) -> Pair:
    """The chains of yin2024: seven tokens, uniform matrices normalised by rows, the draft's drawn first."""
    rng = np.random.RandomState(PAPER_SEED)  # the paper's generator
    shape = (length, PAPER_TOKENS, PAPER_TOKENS)
    draft, target = (m / m.sum(axis=-1, keepdims=True) for m in (rng.rand(*shape), rng.rand(*shape)))
    return Pair(target, draft, np.full(PAPER_TOKENS, 1 / PAPER_TOKENS))


def chains_of(parameters: Mapping[str, Any]) -> Pair:
    """The chains a task asks for: ``target``, ``draft`` and ``initial``, or ``{"chains": "yin2024", "length": T}``."""
    recipe = parameters.get("chains")
    if recipe is None:
        return Pair(*(np.asarray(parameters[name], dtype=np.float64) for name in ("target", "draft", "initial")))
    if recipe != "yin2024":
        raise SettingError(f"chains are {recipe!r}", limit="the recipe known is 'yin2024'", remedy="give the matrices")
    return paper_chains(parameters["length"])
