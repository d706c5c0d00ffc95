"""The races at one position, readably: the exponential race with all clocks and target first, the Poisson race.

Fed the same stream as the kernels of the same names they give the same outputs and ranks, race for race.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.draws.alias import alias, drawn
from simulations.draws.streams import Stream

Floats = NDArray[np.float64]

AHEAD = 256
"""Tokens that the lazy race draws at a time."""


class Raced(NamedTuple):
    """What one race gives.

    Attributes
    ----------
    output : int
        The winner of the target's race.
    rank : int or None
        Its place in the draft's list; None if the draft cannot draw it.
    """

    output: int
    rank: int | None


def counted(races: Iterable[Raced], tokens: int, max_rank: int) -> NDArray[np.int64]:
    """Counts by output, ``[V, max_rank + 2]``: no rank at 0, rank r at r, higher ranks at the end.

    Examples
    --------
    >>> counted([Raced(0, 1), Raced(1, None), Raced(1, 7)], tokens=2, max_rank=2).tolist()
    [[0, 1, 0, 0], [1, 0, 0, 1]]
    """
    counts = np.zeros((tokens, max_rank + 2), dtype=np.int64)
    for output, rank in races:
        counts[output, 0 if rank is None else min(rank, max_rank + 1)] += 1
    return counts


def dense_race(target: Floats, draft: Floats, stream: Stream) -> Raced:
    """One exponential race with a clock for every token (``kobus2025``).

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> same = np.array([0.5, 0.5])
    >>> dense_race(same, same, Stream(words(1))).rank
    1
    """
    clocks = [stream.exponential() for _ in target]
    in_target, in_draft = (
        [clock / mass if mass > 0 else math.inf for clock, mass in zip(clocks, pmf, strict=True)]
        for pmf in (target, draft)
    )
    output = int(np.argmin(in_target))
    order = np.argsort(in_draft, kind="stable")
    return Raced(output, int(np.flatnonzero(order == output)[0]) + 1 if draft[output] > 0 else None)


class LazyRace:
    """Exponential races, target first: exactly the draft arrivals that matter.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> same = np.array([0.5, 0.5])
    >>> LazyRace(same, same, Stream(words(1))).run(max_rank=2).rank
    1
    """

    def __init__(self, target: Floats, draft: Floats, stream: Stream) -> None:
        self.target, self.draft, self.stream = target, draft, stream
        self.winners, self.candidates = self._drawn_ahead(target), self._drawn_ahead(draft)

    def run(self, max_rank: int) -> Raced:
        """Run one race; a rank beyond `max_rank` is only known to be beyond."""
        winner = next(self.winners)
        if self.draft[winner] == 0:
            return Raced(winner, None)
        ratio = self.target[winner] / self.draft[winner]
        arrival, enough = self.stream.exponential() * ratio, len(self.target) / 8
        watched = arrival if arrival <= enough else 0.0
        if arrival > enough > max_rank:
            watched = enough
        before: set[int] = set()
        for token in self._arrivals(watched):
            # An arrival at time t would win the target's race at t / r_y; it did not: that was after u.
            lost = 1 - self.target[token] / self.draft[token] / ratio
            if lost > 0 and self.stream.uniform() < lost:
                before.add(token)
            if len(before) == max_rank:
                return Raced(winner, max_rank + 1)
        if watched < arrival:
            before |= self._seen_within(arrival - watched, ratio)
        return Raced(winner, 1 + len(before))

    def _drawn_ahead(self, pmf: Floats) -> Iterator[int]:
        table = alias(pmf)
        while True:
            yield from [drawn(table.keep, table.other, self.stream.uniform()) for _ in range(AHEAD)]

    def _arrivals(self, until: float) -> Iterator[int]:
        """The tokens of the draft's Poisson process up to a time."""
        time = self.stream.exponential()
        while time <= until:
            yield next(self.candidates)
            time += self.stream.exponential()

    def _seen_within(self, time: float, ratio: float) -> set[int]:
        """Tokens with an arrival in that time that lost the target's race, by one coin each."""
        rates = self.draft - self.target / ratio
        return {y for y, rate in enumerate(rates) if self.stream.uniform() < -math.expm1(-time * max(rate, 0.0))}


class PoissonRace:
    """The Poisson race with replacement, arrival by arrival (``li2018``).

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> same = np.array([0.5, 0.5])
    >>> PoissonRace(same, same, Stream(words(1))).run().rank
    1
    """

    def __init__(self, target: Floats, draft: Floats, stream: Stream) -> None:
        self.stream, self.candidates = stream, alias(draft)
        self.ratios = [p / q if q > 0 else math.inf for p, q in zip(target, draft, strict=True)]
        self.largest = max(ratio for ratio in self.ratios if ratio < math.inf)
        unseen = np.where(draft > 0, 0.0, target)
        self.mass = float(unseen.sum())
        self.unseen = alias(unseen) if self.mass > 0 else None

    def run(self) -> Raced:
        """Run one race."""
        time, index = 0.0, 0
        best, least = Raced(-1, None), math.inf
        if self.unseen is not None:
            least = self.stream.exponential() / self.mass
            best = Raced(drawn(self.unseen.keep, self.unseen.other, self.stream.uniform()), None)
        while (time := time + self.stream.exponential()) <= least * self.largest:
            index += 1
            token = drawn(self.candidates.keep, self.candidates.other, self.stream.uniform())
            score = time / self.ratios[token] if self.ratios[token] > 0 else math.inf
            if score < least:
                best, least = Raced(token, index), score
        return best
