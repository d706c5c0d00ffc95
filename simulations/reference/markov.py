"""Target and draft as Markov chains, what a call outputs, and the loop that decodes a text call by call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream


@dataclass(frozen=True)
class Call:
    """What one call outputs: the accepted drafts and one recovered or bonus token."""

    tokens: tuple[int, ...]

    @property
    def accepted(self) -> int:
        """Accepted drafts: all tokens but the last."""
        return len(self.tokens) - 1


@dataclass(frozen=True)
class Pair:
    """Transition pmfs of target and draft, ``[V, V]``, or ``[T, V, V]`` with a matrix for each position."""

    target: Floats
    draft: Floats

    def p(self, n: int, last: int) -> Floats:
        """Target pmf ``[V]`` of the token at position n after the token `last`."""
        return _row(self.target, n, last)

    def q(self, n: int, last: int) -> Floats:
        """Draft pmf ``[V]`` of the token at position n after the token `last`."""
        return _row(self.draft, n, last)


def _row(chain: Floats, n: int, last: int) -> Floats:
    return chain[n, last] if chain.ndim == 3 else chain[last]


StreamCall = Callable[[Pair, int, int, int, Stream], Call]
"""One call: pair, position of the first draft, the token before it, number of drafts, stream."""


def decoded(call: StreamCall, pair: Pair, start: int, length: int, k: int, stream: Stream) -> Iterator[Call]:
    """The calls that decode `length` tokens after the token `start`; with m tokens to go they draft m - 1 at most."""
    n, last = 0, start
    while n < length:
        step = call(pair, n, last, min(k, length - n - 1), stream)
        yield step
        n, last = n + len(step.tokens), step.tokens[-1]
