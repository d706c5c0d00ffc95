"""The races at one position, V = 131,072, and how many dense races the tables of the lazy one cost.

An entry is a thousandth of a race: the times are microseconds per race.

The peer is numpy, a clock for every token and the rank of the output (or our dense race, where the row says so). The
limit of a dense race is drawing its V exponentials one by one, that of a lazy one drawing its winner and its time.
Ranks up to 16 are told apart unless the row says all.
"""

from __future__ import annotations

import math

import numpy as np
from _rows import Row
from _timing import language_logits, nanoseconds, run, softmax
from scipy.stats import hypergeom

from simulations.draws.alias import Tokens, alias, drawn
from simulations.draws.streams import Words, exponential, uniform, words
from simulations.kernels.dense_race import dense_race
from simulations.kernels.lazy_race import lazy_race
from spectheory.kernels.compiling import compiled

VOCABULARY, MAX_RANK = 131_072, 16
DENSE, LAZY = 40, 400_000
"""Races timed at a time."""
RACE = 1_000
"""Entries of a race."""
CHECKED = 4_000
"""Dense races that the agreement is tested with."""
ALARM = 1e-9
STARVED = 0.01
"""Share of the target whose p/q is 1e10 in the pair with heavy ratios."""

Pair = tuple[np.ndarray, np.ndarray]


def pairs() -> dict[str, Pair]:
    """Targets of logits 3 x normal, drafts of the same with noise; and one with tokens that the draft forgot."""
    ((target, noisy),) = language_logits(VOCABULARY, 1)
    made = {f"noise {noise}": (softmax(target), softmax(target + noise * (noisy - target))) for noise in (0.5, 1.0)}
    p, q = softmax(target), made["noise 0.5"][1].copy()
    shuffled = np.random.default_rng(1).permutation(VOCABULARY)
    forgotten = shuffled[np.cumsum(p[shuffled]) <= STARVED]
    q[forgotten] = p[forgotten] / 1e10
    return made | {"p/q 1e10": (p, q / q.sum())}


def numpy_race(pair: Pair, rng: np.random.Generator, memory: np.ndarray) -> int:
    """The rank of the output of one dense race, in memory ``[2, V]``: fresh pages would cost more than the race."""
    p, q = pair
    clocks, arrivals = memory
    rng.standard_exponential(out=clocks)
    output = np.argmin(np.divide(clocks, p, out=arrivals))
    np.divide(clocks, q, out=arrivals)
    return int(np.count_nonzero(arrivals <= arrivals[output]))


@compiled
def exponentials(state: Words, found: np.ndarray) -> None:
    """V exponentials of a stream."""
    for i in range(found.size):
        found[i] = exponential(state)


@compiled
def winners(keep: np.ndarray, other: Tokens, state: Words, races: int) -> float:
    """Winners and their times, nothing else."""
    total = 0.0
    for _ in range(races):
        total += drawn(keep, other, uniform(state)) * exponential(state)
    return total


def check(pair: Pair) -> None:
    """Numpy, dense and lazy races have one law: exact two-sample tests of every rank."""
    rng, memory = np.random.default_rng(2), np.empty((2, VOCABULARY))
    ranks = np.minimum([numpy_race(pair, rng, memory) for _ in range(CHECKED // 10)], MAX_RANK + 1)
    lazy = lazy_race(*pair, trials=LAZY, state=words(2), max_rank=MAX_RANK)
    dense = dense_race(*pair, trials=CHECKED, state=words(3), max_rank=MAX_RANK)
    for counts in (dense, np.bincount(ranks, minlength=MAX_RANK + 2)):
        law = hypergeom(LAZY + counts.sum(), lazy + counts, counts.sum())
        assert np.minimum(law.cdf(counts), law.sf(counts - 1)).min() > ALARM / 2


def dense_time(pair: Pair, max_rank: int) -> float:
    """Microseconds of one of our dense races."""
    state = words(4)
    return nanoseconds(
        lambda pair: dense_race(*pair, trials=DENSE, state=state, max_rank=max_rank), [pair], DENSE * RACE, 7
    )


def lazy_times(pair: Pair, max_rank: int) -> tuple[float, float]:
    """Microseconds of the tables, and of one lazy race."""
    state = words(5)
    tables = nanoseconds(lambda pair: lazy_race(*pair, trials=1, state=state, max_rank=max_rank), [pair], RACE, 7)
    whole = nanoseconds(lambda pair: lazy_race(*pair, trials=LAZY, state=state, max_rank=max_rank), [pair], RACE, 7)
    return tables, (whole - tables) / LAZY


def race_row(work: str, ours: float, peer: tuple[float, str], limit: tuple[float, str]) -> Row:
    """Microseconds of a race; peer and limit are their time and what they are."""
    return Row(work, "us per race", ours, "one law: exact tests of every rank", *peer, *limit)


def measure() -> list[Row]:
    """Check agreement, then time."""
    rows: list[Row] = []
    state, rng, memory = words(6), np.random.default_rng(3), np.empty((2, VOCABULARY))
    drawing = nanoseconds(lambda found: exponentials(state, found), [memory[0]], RACE)
    for name, pair in pairs().items():
        check(pair)
        table = alias(pair[0])
        least = nanoseconds(lambda table: winners(*table, state, LAZY), [table], LAZY * RACE)
        numpy_time = nanoseconds(lambda pair: numpy_race(pair, rng, memory), [pair], RACE, 41)
        dense = dense_time(pair, MAX_RANK)
        tables, lazy = lazy_times(pair, MAX_RANK)
        uncapped = lazy_times(pair, VOCABULARY)[1]
        pays = math.ceil(tables / dense)
        of_numpy, of_dense = (numpy_time, "numpy, dense"), (dense, "ours, dense")
        drawn_clocks, drawn_winner = (drawing, "drawing the exponentials"), (least, "drawing winner and time")
        if name != "p/q 1e10":
            rows.append(race_row(f"{name}: dense, one draft", dense_time(pair, 1), of_numpy, drawn_clocks))
        rows += [
            race_row(f"{name}: dense", dense, of_numpy, drawn_clocks),
            race_row(f"{name}: lazy", lazy, of_numpy, drawn_winner),
            race_row(f"{name}: lazy", lazy, of_dense, drawn_winner),
            race_row(f"{name}: lazy, all ranks", uncapped, of_dense, drawn_winner),
            race_row(f"{name}: tables ({pays} dense races)", tables, of_dense, (dense, "one dense race")),
        ]
    return rows


if __name__ == "__main__":
    run(f"The race simulated at one position, V = {VOCABULARY:,}", measure)
