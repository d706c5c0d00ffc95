"""Token and block verification on Markov chains: a call of k drafts, and drafting to the horizon."""

from __future__ import annotations

import numpy as np

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream
from simulations.reference.drawing import from_table, inverted_in_order
from simulations.reference.markov import Call, Pair


def token_call(pair: Pair, n: int, last: int, k: int, stream: Stream) -> Call:
    """Token verification (leviathan2023, chen2023) by the joint law of its output and its coin."""
    tokens: list[int] = []
    while True:
        at, before = n + len(tokens), tokens[-1] if tokens else last
        token, accepted = output_and_mark(pair.p(at, before), pair.q(at, before), stream)
        tokens.append(token)
        if not accepted or len(tokens) == k + 1:
            return Call(tuple(tokens))


def output_and_mark(p: Floats, q: Floats, stream: Stream) -> tuple[int, bool]:
    """Output and mark: outcome 2x is token x recovered, mass (p - q)+, 2x + 1 token x accepted, mass min(p, q)."""
    recovered, accepted = np.maximum(p - q, 0.0), np.minimum(p, q)
    masses = np.stack([recovered, accepted], axis=1).ravel()
    possible = np.flatnonzero(masses)
    cell = int(possible[from_table(masses[possible], stream)])
    return cell // 2, cell % 2 == 1


def block_call(pair: Pair, n: int, last: int, k: int, stream: Stream) -> Call:
    """Block verification (sun2024block, Algorithm 2); the marks are drawn from the deepest on until one comes up."""
    path, running = [last], [1.0]
    for i in range(k):
        p, q = pair.p(n + i, path[i]), pair.q(n + i, path[i])
        token = from_table(q, stream)
        path.append(token)
        running.append(min(1.0, running[i] * float(p[token]) / float(q[token])))
    accepted = next((i for i in range(k, 0, -1) if _marked(pair, n, path, running, i, stream)), 0)
    p, q = pair.p(n + accepted, path[accepted]), pair.q(n + accepted, path[accepted])
    if accepted == k:
        return Call((*path[1:], from_table(p, stream)))
    excess = np.maximum(running[accepted] * p - q, 0.0)
    return Call((*path[1 : accepted + 1], inverted_in_order(excess, by_falling_ratio(p, q), stream)))


def _marked(pair: Pair, n: int, path: list[int], running: list[float], depth: int, stream: Stream) -> bool:
    """Whether a depth comes up: probability w at the last one, before it S/(S + 1 - w), 0 where both vanish."""
    w, u = running[depth], stream.uniform()
    if depth == len(path) - 1:
        return u < w
    excess = float(np.maximum(w * pair.p(n + depth, path[depth]) - pair.q(n + depth, path[depth]), 0.0).sum())
    return u * (excess + 1 - w) < excess


def by_falling_ratio(p: Floats, q: Floats) -> list[int]:
    """Tokens by falling p/q, the lowest index first where equal."""

    def ratio(x: int) -> float:
        if p[x] == 0:
            return 0.0
        return float(p[x]) / float(q[x]) if q[x] > 0 else float("inf")

    return sorted(range(len(p)), key=lambda x: -ratio(x))


def horizon_text(pair: Pair, start: int, length: int, stream: Stream) -> list[int]:
    """Positions rejected by token verification whose every round drafts to the horizon (yin2024)."""
    rejected, last = [], start
    for n in range(length):
        last, accepted = output_and_mark(pair.p(n, last), pair.q(n, last), stream)
        if not accepted:
            rejected.append(n)
    return rejected
