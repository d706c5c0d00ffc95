"""Several candidates at one position, as the papers state it: recursive rejection (R3) and Gumbel lists (R6)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.draws.alias import alias, drawn
from simulations.draws.streams import Stream

Floats = NDArray[np.float64]


class Judged(NamedTuple):
    """What came of the candidates.

    Attributes
    ----------
    rank : int
        Which candidate was accepted, from 1; None if none was.
    token : int
        The output.
    """

    rank: int | None
    token: int


def iid_rejection(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """Recursive rejection of i.i.d. candidates (miao2024specinfer).

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> iid_rejection(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 3, Stream(words(1)))
    Judged(rank=None, token=1)
    """
    for rank in range(1, candidates + 1):
        token = _drawn(q, stream)
        coin = stream.uniform()
        residual = np.maximum(p - q, 0)
        if coin < p[token] / q[token] or not residual.any():
            return Judged(rank, token)
        p = residual / residual.sum()
    return Judged(None, _drawn(p, stream))


def distinct_rejection(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """Recursive rejection of distinct candidates (chen2024sequoia): what is rejected is taken out of the draft.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> distinct_rejection(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 3, Stream(words(1)))
    Judged(rank=2, token=1)
    """
    rejected: list[int] = []
    for rank in range(1, candidates + 1):
        token = _inverted(q, stream) if rejected else _drawn(q, stream)
        coin = stream.uniform()
        residual = np.maximum(p - q, 0)
        if coin < p[token] / q[token] or not residual.any():
            return Judged(rank, token)
        rejected.append(token)
        p, q = residual / residual.sum(), _without(q, rejected)
    return Judged(None, _inverted(p, stream))


def _without(q: Floats, rejected: list[int]) -> Floats:
    """The draft without the rejected tokens; uniform over the others when it has nothing left."""
    shorter = np.array(q)
    shorter[rejected] = 0
    if not shorter.any():
        shorter = np.ones_like(q)
        shorter[rejected] = 0
    return shorter / shorter.sum()


def _drawn(pmf: Floats, stream: Stream) -> int:
    table = alias(pmf)
    return int(drawn(table.keep, table.other, stream.uniform()))


def _inverted(pmf: Floats, stream: Stream) -> int:
    cumulative = np.cumsum(pmf)
    return int(np.searchsorted(cumulative, stream.uniform() * cumulative[-1], side="right"))


class Listed(NamedTuple):
    """A list of drafts and the output.

    Attributes
    ----------
    drafts : tuple of int
        One from each race.
    output : int
        The output.
    source : int
        The race it comes from, counted from 0.
    """

    drafts: tuple[int, ...]
    output: int
    source: int


def gumbel_list(p: Floats, q: Floats, k: int, stream: Stream) -> Listed:
    """Gumbel list sampling (rowan2025): k races, a draft from each, one output from all of them.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> gumbel_list(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 2, Stream(words(1))).drafts
    (0, 0)
    """
    clocks = np.array([[stream.exponential() for _ in p] for _ in range(k)])
    with np.errstate(divide="ignore", over="ignore"):
        by_target, by_draft = clocks / p, clocks / q
    output = int(np.argmin(by_target.min(axis=0)))
    drafts = tuple(int(token) for token in np.argmin(by_draft, axis=1))
    return Listed(drafts, output, int(np.argmin(by_target[:, output])))
