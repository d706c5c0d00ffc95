"""Several candidates at one position: recursive rejection (R3), k-SEQ (R5) and Gumbel lists (R6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream
from simulations.reference.drawing import from_table, inverted


class Judged(NamedTuple):
    """The rank of the accepted candidate, from 1, or None if none was accepted; and the output."""

    rank: int | None
    token: int


class Tried(NamedTuple):
    """A candidate, the probability of accepting it, the coin, whether it is accepted, and the residual if it is not."""

    token: int
    chance: float
    coin: float
    accepted: bool
    residual: Floats


def iid_tries(p: Floats, q: Floats, candidates: int, stream: Stream) -> Iterator[Tried]:
    """The candidates of recursive rejection one by one, up to the first that is accepted."""
    for _ in range(candidates):
        token = from_table(q, stream)
        coin = stream.uniform()
        residual = np.maximum(p - q, 0)
        accepted = bool(coin < p[token] / q[token] or not residual.any())
        rest = residual if accepted else residual / residual.sum()
        yield Tried(token, min(float(p[token] / q[token]), 1.0), coin, accepted, rest)
        if accepted:
            return
        p = rest


def iid_rejection(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """Recursive rejection of i.i.d. candidates (miao2024specinfer)."""
    for rank, tried in enumerate(iid_tries(p, q, candidates, stream), start=1):
        if tried.accepted:
            return Judged(rank, tried.token)
        p = tried.residual
    return Judged(None, from_table(p, stream))


def distinct_rejection(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """Recursive rejection of distinct candidates (chen2024sequoia): what is rejected is taken out of the draft."""
    rejected: list[int] = []
    for rank in range(1, candidates + 1):
        token = inverted(q, stream) if rejected else from_table(q, stream)
        coin = stream.uniform()
        residual = np.maximum(p - q, 0)
        if coin < p[token] / q[token] or not residual.any():
            return Judged(rank, token)
        rejected.append(token)
        p, q = residual / residual.sum(), _without(q, rejected)
    return Judged(None, inverted(p, stream))


def _without(q: Floats, rejected: list[int]) -> Floats:
    """The draft without the rejected tokens; uniform over the others when it has nothing left."""
    shorter = np.array(q)
    shorter[rejected] = 0
    if not shorter.any():
        shorter = np.ones_like(q)
        shorter[rejected] = 0
    return shorter / shorter.sum()


def kseq(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """k-SEQ (sun2023spectr): candidates in a row, the target scaled down by the rho that leaves it lossless."""
    rho = _rho(p, q, candidates)
    for rank in range(1, candidates + 1):
        token = from_table(q, stream)
        if stream.uniform() < p[token] / (rho * q[token]):
            return Judged(rank, token)
    rest = np.maximum(p - rho * q, 0)
    return Judged(None, from_table(rest / rest.sum(), stream)) if rest.any() else Judged(candidates, token)


def _rho(p: Floats, q: Floats, candidates: int) -> float:
    """Where the candidates accept as much as they may: 1 - (1 - beta)^k = rho beta."""

    def more_than_allowed(rho: float) -> float:
        beta = np.minimum(q, p / rho).sum()
        return float(1 - (1 - beta) ** candidates - rho * beta)

    if more_than_allowed(1.0) <= 0:
        return 1.0
    return float(brentq(more_than_allowed, 1.0, candidates, xtol=1e-15))


class Listed(NamedTuple):
    """The drafts, one from each race; the output, and the race it comes from, counted from 0."""

    drafts: tuple[int, ...]
    output: int
    source: int


def lazy_gumbel_list(p: Floats, q: Floats, k: int, stream: Stream) -> tuple[int, int]:
    """The output of Gumbel list sampling, drawn first, and its hit: 2 by its own race, 1 by another, 0 by none."""
    output = from_table(p, stream)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratios = p / q
    if ratios[output] == np.inf:
        return output, 0
    earliest = stream.exponential() / k

    def draft(until: float) -> int:
        """The first arrival of a race after what its token's clocks have already lasted; the output if none comes."""
        now = stream.exponential()
        while now < until:
            token = from_table(q, stream)
            if now > earliest * ratios[token]:
                return token
            now += stream.exponential()
        return output

    if draft(earliest * ratios[output]) == output:
        return output, 2
    return output, int(any(draft(np.inf) == output for _ in range(k - 1)))


def gumbel_list(p: Floats, q: Floats, k: int, stream: Stream) -> Listed:
    """Gumbel list sampling (rowan2025): k races, a draft from each, one output from all of them."""
    clocks = np.array([[stream.exponential() for _ in p] for _ in range(k)])
    with np.errstate(divide="ignore", over="ignore"):
        by_target, by_draft = clocks / p, clocks / q
    output = int(np.argmin(by_target.min(axis=0)))
    drafts = tuple(int(token) for token in np.argmin(by_draft, axis=1))
    return Listed(drafts, output, int(np.argmin(by_target[:, output])))
