"""What the readable algorithms draw: from a :class:`~simulations.draws.Stream`, or all outcomes one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from simulations.draws import Floats

Outcome = TypeVar("Outcome")


class Draws(Protocol):
    """Where an algorithm takes its tokens, coins and clocks from; weights ``[V]`` need not sum to one."""

    def token(self, weights: Floats) -> int:
        """A token with probability proportional to its weight."""

    def inverted(self, weights: Floats, order: Any = None) -> int:
        """The same by inversion, tokens in the given order."""

    def coin(self, chance: float) -> bool:
        """Whether a coin of that probability shows heads; of probability 1 if it is above 1."""

    def exponential(self) -> float:
        """An Exp(1) time."""


def exact_law(algorithm: Callable[[Draws], Outcome]) -> dict[Outcome, float]:
    """Every outcome of an algorithm without clocks, with its probability: it is run for every way its draws can go.

    Examples
    --------
    >>> exact_law(lambda draws: draws.coin(0.75) + draws.token(np.array([1.0, 0.0, 1.0])))
    {0: 0.125, 2: 0.125, 1: 0.375, 3: 0.375}
    """
    law: dict[Outcome, float] = {}
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        draws = _Script(waiting.pop())
        outcome = algorithm(draws)
        law[outcome] = law.get(outcome, 0.0) + draws.chance
        waiting += draws.others
    return law


class _Script:
    """Draws that follow a script, then take the first possible outcome and note the others."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self.script, self.chance = script, 1.0
        self.past: tuple[int, ...] = ()
        self.others: list[tuple[int, ...]] = []

    def token(self, weights: Floats) -> int:
        possible = [int(token) for token in np.flatnonzero(weights)]
        if len(self.past) < len(self.script):
            token = self.script[len(self.past)]
        else:
            token = possible[0]
            self.others += [(*self.past, other) for other in possible[1:]]
        self.past = (*self.past, token)
        self.chance *= float(weights[token] / weights.sum())
        return token

    def inverted(self, weights: Floats, order: Any = None) -> int:
        return self.token(weights)

    def coin(self, chance: float) -> bool:
        heads = min(float(chance), 1.0)
        return self.token(np.array([1 - heads, heads])) == 1

    def exponential(self) -> float:
        raise TypeError("a clock has too many outcomes to list")
