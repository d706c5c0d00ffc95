"""Every rule that decides at one position, as its paper writes it.

All take target pmf, draft pmf, the number of candidates that may be tried, and what to draw from.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from simulations.draws import Floats
from simulations.reference.drawing import Draws


class Judged(NamedTuple):
    """The rank of the accepted candidate, from 1, or None if none was accepted; and the output."""

    rank: int | None
    token: int


# Candidates that are judged by coins


def token(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """Token verification (leviathan2023, chen2023): recursive rejection of at most one candidate."""
    return iid_rejection(p, q, min(candidates, 1), draws)


def iid_rejection(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """Recursive rejection of i.i.d. candidates (miao2024specinfer)."""
    for rank in range(1, candidates + 1):
        token = draws.token(q)
        residual = np.maximum(p - q, 0)
        if draws.coin(p[token] / q[token]) or not residual.any():
            return Judged(rank, token)
        p = residual / residual.sum()
    return Judged(None, draws.token(p))


def distinct_rejection(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """Recursive rejection of distinct candidates (chen2024sequoia): what is rejected is taken out of the draft."""
    rejected: list[int] = []
    for rank in range(1, candidates + 1):
        token = draws.inverted(q) if rejected else draws.token(q)
        residual = np.maximum(p - q, 0)
        if draws.coin(p[token] / q[token]) or not residual.any():
            return Judged(rank, token)
        rejected.append(token)
        p, q = residual / residual.sum(), _without(q, rejected)
    return Judged(None, draws.inverted(p))


def _without(q: Floats, rejected: list[int]) -> Floats:
    """The draft without the rejected tokens; uniform over the others when it has nothing left."""
    shorter = np.array(q)
    shorter[rejected] = 0
    if not shorter.any():
        shorter = np.ones_like(q)
        shorter[rejected] = 0
    return shorter / shorter.sum()


def kseq(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """k-SEQ (sun2023spectr): candidates in a row, the target scaled down by the rho that leaves it lossless."""
    rho = _rho(p, q, candidates)
    for rank in range(1, candidates + 1):
        token = draws.token(q)
        if draws.coin(p[token] / (rho * q[token])):
            return Judged(rank, token)
    rest = np.maximum(p - rho * q, 0)
    return Judged(None, draws.token(rest)) if rest.any() else Judged(candidates, token)


def _rho(p: Floats, q: Floats, candidates: int) -> float:
    """Where the candidates accept as much as they may: 1 - (1 - beta)^k = rho beta."""

    def more_than_allowed(rho: float) -> float:
        beta = np.minimum(q, p / rho).sum()
        return float(1 - (1 - beta) ** candidates - rho * beta)

    if more_than_allowed(1.0) <= 0:
        return 1.0
    return float(brentq(more_than_allowed, 1.0, candidates + 1.0, xtol=1e-15))  # rho is at most k


def over_accepted(p: Floats, q: Floats, accept: Floats, recovery: str, draws: Draws) -> Judged:
    """One draft, accepted with the probability stated for its token, else recovered from (p - q)+ or p (yin2024)."""
    token = draws.token(q)
    if draws.coin(accept[token]):
        return Judged(1, token)
    residual = np.maximum(p - q, 0.0)
    return Judged(None, draws.token(p if recovery == "target" or not residual.any() else residual))


# Drafts that are compared with the output


def independent(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """A sampled draft against a sampled output, drawn independently."""
    draft = draws.token(q)
    return _match(draft, draws.token(p))


def argmax(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """The draft's most probable token against a sampled output; ties: the lowest index."""
    return _match(int(np.argmax(q)), draws.token(p))


def greedy(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """The draft's most probable token against the target's, which is the output; nothing is drawn."""
    return _match(int(np.argmax(q)), int(np.argmax(p)))


def _match(draft: int, output: int) -> Judged:
    return Judged(1 if draft == output else None, output)


def topk(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """A sampled output's place among the draft's tokens by falling probability; ties: the lowest index first."""
    output = draws.token(p)
    return Judged(1 + np.argsort(-q, kind="stable").tolist().index(output), output)


# Races; the rank is the output's place in the draft's race, None if the draft cannot draw it


def arrivals(clocks: list[float], pmf: Floats) -> list[float]:
    """When each token's clock, divided by its probability, rings; never for a token of probability 0."""
    return [clock / mass if mass > 0 else math.inf for clock, mass in zip(clocks, pmf.tolist(), strict=True)]


def finish(clocks: list[float], pmf: Floats) -> list[int]:
    """Tokens in the order of their arrivals."""
    order: list[int] = np.argsort(arrivals(clocks, pmf), kind="stable").tolist()
    return order


def race(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """One exponential race with a clock for every token (kobus2025)."""
    clocks = [draws.exponential() for _ in p]
    output = finish(clocks, p)[0]
    place = finish(clocks, q).index(output) + 1
    return Judged(place if q[output] > 0 else None, output)


def poisson_race(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """The Poisson race with replacement, arrival by arrival (li2018); what the draft lacks races by itself."""
    unreachable = np.where(q > 0, 0.0, p)
    ratios = [a / b if b > 0 else 0.0 for a, b in zip(p.tolist(), q.tolist(), strict=True)]
    best, least = Judged(None, -1), math.inf
    if unreachable.any():
        least = draws.exponential() / float(unreachable.sum())
        best = Judged(None, draws.token(unreachable))
    index, time = 0, draws.exponential()
    while time <= least * max(ratios):  # no later arrival can win
        index += 1
        token = draws.token(q)
        if ratios[token] > 0 and time / ratios[token] < least:
            best, least = Judged(index, token), time / ratios[token]
        time += draws.exponential()
    return best


class Listed(NamedTuple):
    """The drafts, one from each race; the output, and the race it comes from, counted from 0."""

    drafts: tuple[int, ...]
    output: int
    source: int


def gumbel_list(p: Floats, q: Floats, k: int, draws: Draws) -> Listed:
    """Gumbel list sampling (rowan2025): k races, a draft from each, one output from all of them."""
    clocks = np.array([[draws.exponential() for _ in p] for _ in range(k)])
    with np.errstate(divide="ignore", over="ignore"):
        by_target, by_draft = clocks / p, clocks / q
    output = int(np.argmin(by_target.min(axis=0)))
    drafts = tuple(int(token) for token in np.argmin(by_draft, axis=1))
    return Listed(drafts, output, int(np.argmin(by_target[:, output])))
