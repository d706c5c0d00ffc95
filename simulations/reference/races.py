"""The races: dense, target first and Poisson at one position; along a text, with clocks that are kept.

A rank is the output's place in the draft's race, None if the draft cannot draw it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from simulations.draws.alias import Floats, alias, drawn
from simulations.draws.streams import Stream
from simulations.reference.candidates import Judged
from simulations.reference.markov import Call, Pair, StreamCall

AHEAD = 256
"""Tokens that the lazy race draws at a time."""


def dense_race(target: Floats, draft: Floats, stream: Stream) -> Judged:
    """One exponential race with a clock for every token (kobus2025)."""
    clocks = [stream.exponential() for _ in target]
    output = finish(clocks, target)[0]
    place = finish(clocks, draft).index(output) + 1
    return Judged(place if draft[output] > 0 else None, output)


def arrivals(clocks: list[float], pmf: Floats) -> list[float]:
    """When each token's clock, divided by its probability, rings; never for a token of probability 0."""
    return [float(clock / mass) if mass > 0 else math.inf for clock, mass in zip(clocks, pmf, strict=True)]


def finish(clocks: list[float], pmf: Floats) -> list[int]:
    """Tokens in the order of their arrivals."""
    order: list[int] = np.argsort(arrivals(clocks, pmf), kind="stable").tolist()
    return order


def kept_race(clocks: Floats) -> StreamCall:
    """Calls of the race whose clocks ``[T, V]`` belong to the positions of a text and are kept from call to call."""

    def call(pair: Pair, n: int, last: int, k: int, stream: Stream) -> Call:
        tokens = [last]
        for depth, clock in enumerate(clocks[n : n + k + 1].tolist()):
            output = finish(clock, pair.p(n + depth, tokens[-1]))[0]
            drafted = finish(clock, pair.q(n + depth, tokens[-1]))[0]
            tokens.append(output)
            if drafted != output:
                break
        return Call(tuple(tokens[1:]))

    return call


class LazyRace:
    """Exponential races, target first: exactly the draft arrivals that matter."""

    def __init__(self, target: Floats, draft: Floats, stream: Stream) -> None:
        self.target, self.draft, self.stream = target, draft, stream
        self.winners, self.candidates = self._drawn_ahead(target), self._drawn_ahead(draft)

    def run(self, max_rank: int) -> Judged:
        """Run one race; a rank beyond `max_rank` is only known to be beyond."""
        winner = next(self.winners)
        if self.draft[winner] == 0:
            return Judged(None, winner)
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
                return Judged(max_rank + 1, winner)
        if watched < arrival:
            before |= self._seen_within(arrival - watched, ratio)
        return Judged(1 + len(before), winner)

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
    """The Poisson race with replacement, arrival by arrival (li2018)."""

    def __init__(self, target: Floats, draft: Floats, stream: Stream) -> None:
        self.stream, self.candidates = stream, alias(draft)
        self.ratios = [p / q if q > 0 else math.inf for p, q in zip(target, draft, strict=True)]
        self.largest = max(ratio for ratio in self.ratios if ratio < math.inf)
        unseen = np.where(draft > 0, 0.0, target)
        self.mass = float(unseen.sum())
        self.unseen = alias(unseen) if self.mass > 0 else None

    def run(self) -> Judged:
        """Run one race."""
        time, index = 0.0, 0
        best, least = Judged(None, -1), math.inf
        if self.unseen is not None:
            least = self.stream.exponential() / self.mass
            best = Judged(None, drawn(*self.unseen, self.stream.uniform()))
        while (time := time + self.stream.exponential()) <= least * self.largest:
            index += 1
            token = drawn(*self.candidates, self.stream.uniform())
            score = time / self.ratios[token] if self.ratios[token] > 0 else math.inf
            if score < least:
                best, least = Judged(index, token), score
        return best
