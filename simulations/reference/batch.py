"""Batches of drafts on Markov chains, round by round (yin2024, Algorithm 4)."""

from __future__ import annotations

import numpy as np

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream
from simulations.reference.drawing import from_table, inverted_in_order
from simulations.reference.markov import Pair


def batch_round(
    pair: Pair, n: int, last: int, length: int, drafts: int, stream: Stream, *, printed: bool = False
) -> tuple[list[int], bool]:
    """One round from position n on: its output tokens, and whether the last of them was recovered.

    First tokens are tried one after the other (as printed: the first alone), the accepted draft goes to the horizon.
    """
    token, recovered = verified(pair.p(n, last), pair.q(n, last), 1 if printed else drafts, stream)
    tokens = [token]
    while not recovered and n + len(tokens) < length:
        at = n + len(tokens)
        token, recovered = verified(pair.p(at, token), pair.q(at, token), 1, stream)
        tokens.append(token)
    return tokens, recovered


def verified(p: Floats, q: Floats, drafts: int, stream: Stream) -> tuple[int, bool]:
    """Recursive rejection of i.i.d. drafts at one position: the output token, and whether it was recovered."""
    residual = p
    for _ in range(drafts):
        token = from_table(q, stream)
        if stream.uniform() * q[token] < residual[token]:
            return token, False
        excess = np.maximum(residual - q, 0.0)
        residual = excess / excess.sum()
    return inverted_in_order(residual, list(range(len(p))), stream), True


def batch_text(pair: Pair, start: int, length: int, drafts: int, stream: Stream, *, printed: bool = False) -> list[int]:
    """Positions of a text whose token was recovered."""
    rejected, n, last = [], 0, start
    while n < length:
        tokens, recovered = batch_round(pair, n, last, length, drafts, stream, printed=printed)
        n, last = n + len(tokens), tokens[-1]
        if recovered:
            rejected.append(n - 1)
    return rejected
