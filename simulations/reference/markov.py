"""Slow, readable simulators of the algorithms as written: the twin of every fast kernel.

A model is a Markov chain: transition pmfs ``[V, V]``, or ``[T, V, V]`` with one matrix per position. A text starts
after a given token. Nothing here uses a closed form of :mod:`spectheory`; agreement with it is evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Call:
    """What one call outputs.

    Attributes
    ----------
    tokens : tuple of int
        The accepted drafts and one recovered or bonus token.
    """

    tokens: tuple[int, ...]

    @property
    def accepted(self) -> int:
        """Accepted drafts: all tokens but the last."""
        return len(self.tokens) - 1


@dataclass(frozen=True)
class Decoded:
    """A decoded text and the accepted drafts of each call.

    Attributes
    ----------
    tokens : tuple of int
        The text.
    accepted : tuple of int
        Accepted drafts, one entry per call.
    """

    tokens: tuple[int, ...]
    accepted: tuple[int, ...]

    @property
    def calls(self) -> int:
        """Target calls the text took."""
        return len(self.accepted)


@dataclass(frozen=True)
class Pair:
    """Target and draft as Markov chains over one vocabulary.

    Attributes
    ----------
    target, draft : array ``[V, V]`` or ``[T, V, V]``
        Transition pmfs; row x is the pmf of the token after x, at position n if there are T matrices.
    """

    target: Floats
    draft: Floats

    def p(self, n: int, last: int) -> Floats:
        """Target pmf ``[V]`` of the token at position n after the token `last`."""
        return _row(self.target, n, last)

    def q(self, n: int, last: int) -> Floats:
        """Draft pmf ``[V]`` of the token at position n after the token `last`."""
        return _row(self.draft, n, last)


class CallRule(Protocol):
    """One call: k drafts after the token `last`, the first of them at position n."""

    def __call__(self, pair: Pair, n: int, last: int, k: int, *, rng: np.random.Generator) -> Call:
        """Run the call."""


def _row(chain: Floats, n: int, last: int) -> Floats:
    return chain[n, last] if chain.ndim == 3 else chain[last]


def draw(pmf: Floats, *, rng: np.random.Generator) -> int:
    """One token from a pmf, by inversion.

    Examples
    --------
    >>> draw(np.array([0.0, 1.0]), rng=np.random.default_rng(1))
    1
    """
    cumulative = np.cumsum(pmf)
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))


def draw_excess(minuend: Floats, subtrahend: Floats, *, rng: np.random.Generator) -> int:
    """One token from norm (minuend - subtrahend)+, the law of the recovered token.

    Examples
    --------
    >>> draw_excess(np.array([0.5, 0.5]), np.array([0.9, 0.1]), rng=np.random.default_rng(1))
    1
    """
    return draw(np.maximum(minuend - subtrahend, 0.0), rng=rng)


def draft_tokens(pair: Pair, n: int, last: int, k: int, *, rng: np.random.Generator) -> list[int]:
    """`last` and the k tokens that the draft puts after it, the first of them at position n."""
    tokens = [last]
    for i in range(k):
        tokens.append(draw(pair.q(n + i, tokens[-1]), rng=rng))
    return tokens


def token_verification(pair: Pair, n: int, last: int, k: int, *, rng: np.random.Generator) -> Call:
    """Token verification (leviathan2023, chen2023): accept one by one with probability min(1, p/q).

    Examples
    --------
    >>> same = Pair(np.full((2, 2), 0.5), np.full((2, 2), 0.5))
    >>> token_verification(same, 0, 0, 3, rng=np.random.default_rng(1)).accepted
    3
    """
    path = draft_tokens(pair, n, last, k, rng=rng)
    for i in range(k):
        p, q = pair.p(n + i, path[i]), pair.q(n + i, path[i])
        token = path[i + 1]
        if rng.random() * q[token] >= p[token]:
            return Call((*path[1 : i + 1], draw_excess(p, q, rng=rng)))
    return Call((*path[1:], draw(pair.p(n + k, path[k]), rng=rng)))


def block_verification(pair: Pair, n: int, last: int, k: int, *, rng: np.random.Generator) -> Call:
    """Block verification (sun2024block, Algorithm 2): the deepest depth whose coin comes up is accepted.

    Examples
    --------
    >>> same = Pair(np.full((2, 2), 0.5), np.full((2, 2), 0.5))
    >>> block_verification(same, 0, 0, 3, rng=np.random.default_rng(1)).accepted
    3
    """
    path = draft_tokens(pair, n, last, k, rng=rng)
    running, accepted, weight = 1.0, 0, 1.0
    for i in range(1, k + 1):
        p, q = pair.p(n + i - 1, path[i - 1]), pair.q(n + i - 1, path[i - 1])
        running = min(1.0, running * p[path[i]] / q[path[i]])
        if rng.random() < (running if i == k else _mark(pair, n + i, path[i], running)):
            accepted, weight = i, running
    p = pair.p(n + accepted, path[accepted])
    if accepted == k:
        return Call((*path[1:], draw(p, rng=rng)))
    excess = draw_excess(weight * p, pair.q(n + accepted, path[accepted]), rng=rng)
    return Call((*path[1 : accepted + 1], excess))


def _mark(pair: Pair, n: int, last: int, running: float) -> float:
    """Probability S/(S + 1 - p) of marking a depth before the last; 0 where both vanish."""
    excess = float(np.maximum(running * pair.p(n, last) - pair.q(n, last), 0.0).sum())
    return excess / (excess + 1 - running) if excess > 0 else 0.0


def race_verification(pair: Pair, n: int, last: int, k: int, *, rng: np.random.Generator) -> Call:
    """Exponential race (kobus2025), dense: fresh clocks for every token at every position of the call.

    Examples
    --------
    >>> same = Pair(np.full((2, 2), 0.5), np.full((2, 2), 0.5))
    >>> race_verification(same, 0, 0, 3, rng=np.random.default_rng(1)).accepted
    3
    """
    clocks = rng.exponential(size=(k + 1, pair.target.shape[-1]))
    return race_with_clocks(pair, n, last, clocks)


def race_with_clocks(pair: Pair, n: int, last: int, clocks: Floats) -> Call:
    """The race decided by given clocks ``[k + 1, V]``, row i for the position n + i."""
    tokens: list[int] = []
    for i, clock in enumerate(clocks):
        before = tokens[-1] if tokens else last
        tokens.append(winner(clock, pair.p(n + i, before)))
        if i == len(clocks) - 1 or winner(clock, pair.q(n + i, before)) != tokens[-1]:
            break
    return Call(tuple(tokens))


def winner(clock: Floats, pmf: Floats) -> int:
    """The token whose clock, divided by its probability, rings first.

    Examples
    --------
    >>> winner(np.array([1.0, 1.5]), np.array([0.3, 0.7]))
    1
    """
    with np.errstate(divide="ignore"):
        return int(np.argmin(clock / pmf))


@dataclass(frozen=True)
class KeptRace:
    """The race whose clocks belong to the positions of the text and are kept from call to call.

    Attributes
    ----------
    clocks : array ``[T, V]``
        One Exp(1) clock per position and token, T at least the length of the text.
    """

    clocks: Floats

    def __call__(self, pair: Pair, n: int, last: int, k: int, *, rng: np.random.Generator) -> Call:
        """Run one call; `rng` is not used."""
        return race_with_clocks(pair, n, last, self.clocks[n : n + k + 1])


def independent_match(pair: Pair, n: int, last: int, k: int, *, rng: np.random.Generator) -> Call:
    """Draft and output drawn independently at every position, accepted while they are equal (A4)."""
    path = draft_tokens(pair, n, last, k, rng=rng)
    for i in range(k):
        output = draw(pair.p(n + i, path[i]), rng=rng)
        if output != path[i + 1]:
            return Call((*path[1 : i + 1], output))
    return Call((*path[1:], draw(pair.p(n + k, path[k]), rng=rng)))


def decode(
    call: CallRule, pair: Pair, *, start: int, length: int, k: int, rng: np.random.Generator, spare: int = 1
) -> Decoded:
    """Decode `length` tokens after the token `start`, call by call.

    With m tokens to go a call drafts at most m - spare of them; spare = 1 never outputs a surplus token.

    Examples
    --------
    >>> same = Pair(np.full((2, 2), 0.5), np.full((2, 2), 0.5))
    >>> decode(token_verification, same, start=0, length=7, k=2, rng=np.random.default_rng(1)).accepted
    (2, 2, 0)
    """
    tokens: list[int] = [start]
    accepted = []
    while len(tokens) <= length:
        n = len(tokens) - 1
        step = call(pair, n, tokens[-1], min(k, length - n - spare), rng=rng)
        tokens += step.tokens
        accepted.append(step.accepted)
    return Decoded(tuple(tokens[1 : length + 1]), tuple(accepted))


def markov_text(chain: Floats, *, start: int, length: int, rng: np.random.Generator) -> list[int]:
    """`length` tokens drawn from a chain after the token `start`.

    Examples
    --------
    >>> markov_text(np.eye(2), start=1, length=3, rng=np.random.default_rng(1))
    [1, 1, 1]
    """
    tokens = [start]
    for n in range(length):
        tokens.append(draw(_row(chain, n, tokens[-1]), rng=rng))
    return tokens[1:]


RULES: dict[str, Callable[..., Call]] = {
    "token": token_verification,
    "block": block_verification,
    "race": race_verification,
    "independent": independent_match,
}
"""Simulators by the name of the rule they simulate."""
