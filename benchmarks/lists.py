"""Simulated lists and trees of candidates: nanoseconds per entry, trial, call or prefix, V = 4,096 unless said.

The peers are the same algorithms in numpy, all trials at once where they can be, and ``heapq`` for the best trees.
Agreement is asserted first: two means differ by at most six times the largest standard deviation they can have, those
of the trees six times their own. The limit is what must be done, nothing else: a uniform for every clock of a race, the
uniforms and the look-up of one candidate, one reading of both pmfs per rejection where candidates are distinct, the
uniforms and look-ups of the ranks; for trees one sort of the weights found. Gumbel lists that are drawn output first
have the dense kernel as their peer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from itertools import chain

import numpy as np
from _rows import Row
from _timing import language_logits, median_seconds, nanoseconds, run, softmax
from numpy.typing import NDArray

from simulations.draws.alias import alias, drawn
from simulations.draws.streams import uniform, words
from simulations.kernels.gumbel_list import gumbel_list
from simulations.kernels.lazy_gumbel_list import lazy_gumbel_list
from simulations.kernels.random_pmf_trees import random_pmf_trees
from simulations.kernels.ranked_trees import raced_tree, ranked_tree
from simulations.kernels.recursive_rejection import recursive_rejection
from spectheory.drafting import Chain, KAry
from spectheory.kernels.compiling import compiled, compiled_in_any_order

Floats = NDArray[np.float64]

VOCABULARY, RANKS, RACES, DEPTH = 4096, 4, 4, 4
TRIALS, DENSE, CALLS, TREES, PREFIXES = 20_000, 400, 200_000, 20, 1000
REPEATS = 7
LARGE, MANY, WANTED = (VOCABULARY, 200_000), 100_000, 5000.0
"""Vocabularies and trials of Gumbel lists drawn output first, and the milliseconds that were set for all."""
LAW = np.array([0.6, 0.2, 0.1, 0.05])
SHAPE = KAry((4, 2, 2, 1))
APART = 6.0
"""Standard deviations that two honest samples do not lie apart."""


@compiled
def draw_uniforms(count: int, state: NDArray[np.uint64]) -> float:
    """The limit of a dense race: a uniform per clock."""
    total = 0.0
    for _ in range(count):
        total += uniform(state)
    return total


@compiled
def draw_tokens(keep: Floats, other: NDArray[np.int32], count: int, coins: int, state: NDArray[np.uint64]) -> float:
    """The limit of rejections and walks: table look-ups, and a uniform for each coin."""
    total = 0.0
    for _ in range(count):
        total += drawn(keep, other, uniform(state))
        for _ in range(coins):
            total += uniform(state)
    return total


@compiled_in_any_order
def added(a: float, b: float) -> float:
    """A sum whose order is free."""
    return a + b


@compiled
def read_pairs(p: Floats, q: Floats, times: int) -> float:
    """The limit of rejections that need a new residual: one reading of both pmfs each."""
    total = 0.0
    for i in range(times):
        share = i / times  # so that no reading is that of another
        for y in range(p.size):
            total = added(total, max(p[y] - share * q[y], 0.0))
    return total


def numpy_rejection(
    p: Floats, q: Floats, replacement: bool, trials: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Ranks of recursive rejection, one trial after another; the first candidates are drawn in one go."""
    ranks = np.zeros(RANKS + 1, dtype=np.int64)
    firsts = np.searchsorted(np.cumsum(q), rng.random(trials) * q.sum(), side="right")
    for token in firsts:
        target, draft, rank = p, q, 0
        while rng.random() * draft[token] >= target[token]:
            rank += 1
            if rank == RANKS:
                break
            target = np.maximum(target - draft, 0)
            target = target / target.sum()
            if not replacement:
                draft = draft.copy()
                draft[token] = 0
                draft /= draft.sum()
            running = np.cumsum(draft)
            token = np.searchsorted(running, rng.random() * running[-1], side="right")
        ranks[rank] += 1
    return ranks


def numpy_lists(p: Floats, q: Floats, trials: int, rng: np.random.Generator) -> int:
    """Hits of Gumbel lists, a trial at a time."""
    hits = 0
    for _ in range(trials):
        clocks = rng.standard_exponential((RACES, p.size))
        hits += np.argmin(np.min(clocks / p, axis=0)) in np.argmin(clocks / q, axis=1)
    return hits


def numpy_races(p: Floats, q: Floats, calls: int, rng: np.random.Generator) -> int:
    """Accepted drafts of a chain of races."""
    accepted = 0
    for _ in range(calls):
        for _ in range(DEPTH + 1):
            clocks = rng.standard_exponential(p.size)
            if np.argmin(clocks / p) != np.argmin(clocks / q):
                break
            accepted += 1
        else:
            accepted -= 1  # the position behind the chain was no draft
    return accepted


def numpy_walks(calls: int, rng: np.random.Generator) -> int:
    """Accepted drafts of the k-ary tree, all calls at once: node r of a depth is drafted if its rank is low enough."""
    ranks = np.searchsorted(np.cumsum(LAW), rng.random((calls, len(SHAPE.branching))), side="right")
    return int(np.sum(np.cumprod(ranks < np.array(SHAPE.branching), axis=1)))


def heap_trees(rows: Floats, trees: int, rng: np.random.Generator) -> list[float]:
    """Totals of the best trees, from a heap of one child or sibling each; `rows` descend."""
    totals = []
    for _ in range(trees):
        row = rows[rng.integers(len(rows))]
        waiting = [(-row[0], 0, 0, 1.0, row)]
        total = 0.0
        for number in range(1, PREFIXES + 1):
            negative, _, place, above, row = heapq.heappop(waiting)
            total -= negative
            fresh = rows[rng.integers(len(rows))]
            heapq.heappush(waiting, (negative * fresh[0], 2 * number, 0, -negative, fresh))
            if place + 1 < len(row):
                heapq.heappush(waiting, (-above * row[place + 1], 2 * number + 1, place + 1, above, row))
        totals.append(float(total))
    return totals


def agree(ours: Floats, peer: Floats) -> None:
    """Means of two samples of independent trials."""
    error = np.sqrt(np.var(ours) / ours.size + np.var(peer) / peer.size)
    assert abs(np.mean(ours) - np.mean(peer)) <= APART * error, (np.mean(ours), np.mean(peer), error)


def agree_shares(ours: float, ours_of: int, peer: float, peer_of: int, most: int = 1) -> None:
    """Two sums over trials that add from 0 to `most` each: their spread is at most half of that."""
    assert abs(ours / ours_of - peer / peer_of) <= APART * most / 2 * np.sqrt(1 / ours_of + 1 / peer_of)


def row(work: str, ours: tuple[Callable[[int], object], int], peer: tuple[Callable[[int], object], int],
        limit: tuple[Callable[[int], object], int]) -> Row:  # fmt: skip
    """Nanoseconds per unit: each is work and how many units it does."""
    times = [nanoseconds(do, [0], units, REPEATS) for do, units in (ours, peer, limit)]
    name, _, unit = work.partition(": ")
    own, other, least = times
    same = "means within six deviations"
    return Row(name, f"ns per {unit}", own, same, other, "numpy or heapq", least, "what must be drawn, read or sorted")


def candidates(p: Floats, q: Floats, rng: np.random.Generator) -> list[Row]:
    """Recursive rejection, per trial."""
    table, rows = alias(q), []
    for name, replacement, trials in (("i.i.d.", True, TRIALS * 20), ("distinct", False, TRIALS)):
        peer_trials = TRIALS // 20

        def ours(_: int, trials: int = trials, kind: bool = replacement) -> NDArray[np.int64]:
            return recursive_rejection(p, q, RANKS, trials, state=words(1), replacement=kind)

        def peer(_: int, trials: int = peer_trials, kind: bool = replacement) -> NDArray[np.int64]:
            return numpy_rejection(p, q, kind, trials, rng)

        found, other = ours(0).sum(axis=1), peer(0)
        for rank in range(RANKS + 1):
            agree_shares(float(found[rank]), trials, float(other[rank]), peer_trials)
        rejections = int(found @ np.arange(RANKS + 1))
        floor = (
            (lambda _: draw_tokens(table.keep, table.other, TRIALS * 20, 1, words(1)), TRIALS * 20)
            if replacement
            else (lambda _, times=rejections: read_pairs(p, q, times), trials)
        )
        rows.append(
            row(f"recursive rejection, {name}, {RANKS} ranks: trial", (ours, trials), (peer, peer_trials), floor)
        )
    return rows


def races(p: Floats, q: Floats, rng: np.random.Generator) -> list[Row]:
    """Dense races, per clock."""
    hits = int(gumbel_list(p, q, RACES, DENSE * 5, state=words(2))[1:].sum())
    agree_shares(hits, DENSE * 5, numpy_lists(p, q, DENSE * 5, rng), DENSE * 5)
    clocks = DENSE * RACES * p.size
    floor = (lambda _: draw_uniforms(DENSE * p.size, words(1)), DENSE * p.size)
    lists = row(
        f"Gumbel lists, {RACES} races: clock",
        (lambda _: gumbel_list(p, q, RACES, DENSE, state=words(2)), clocks),
        (lambda _: numpy_lists(p, q, DENSE // 5, rng), clocks // 5),
        floor,
    )
    accepted = raced_tree(Chain(DEPTH), p, q, DENSE * 5, state=words(3)).accepted
    mean = float(np.sum(accepted * np.arange(DEPTH + 1)))
    agree_shares(mean, DENSE * 5, numpy_races(p, q, DENSE * 5, rng), DENSE * 5, DEPTH)
    clocks = round((mean / (DENSE * 5) + 1) * DENSE * p.size)
    chained = row(
        f"raced chain of {DEPTH}: clock",
        (lambda _: raced_tree(Chain(DEPTH), p, q, DENSE, state=words(3)), clocks),
        (lambda _: numpy_races(p, q, DENSE // 5, rng), clocks // 5),
        floor,
    )
    return [lists, chained]


def lazy_lists() -> list[Row]:
    """Gumbel lists drawn output first, per trial, over V; then 100,000 of them with their tables, in milliseconds."""
    rows = []
    for tokens in LARGE:
        ((target, draft),) = language_logits(tokens, 1)
        p, q = softmax(target), softmax(draft)
        few = max(20, DENSE * VOCABULARY // tokens)
        ours, dense = lazy_gumbel_list(p, q, RACES, MANY, state=words(6)), gumbel_list(p, q, RACES, few, state=words(7))
        for hit in range(3):
            agree_shares(float(ours[hit].sum()), MANY, float(dense[hit].sum()), few)
        table = alias(q)
        tables, whole = (
            median_seconds(partial(lazy_gumbel_list, p, q, RACES, trials, state=words(6)), REPEATS)
            for trials in (1, MANY)
        )
        peer = nanoseconds(lambda _, p=p, q=q, few=few: gumbel_list(p, q, RACES, few, state=words(7)), [0], few, 3)
        least = nanoseconds(lambda _, t=table: draw_tokens(*t, MANY * RACES, 1, words(1)), [0], MANY, REPEATS)
        name, same = f"Gumbel lists, output first, {RACES} races, V = {tokens:,}", "means within six deviations"
        rows.append(
            Row(
                name, "ns per trial", (whole - tables) / MANY * 1e9, same, peer, "our dense kernel", least,
                "a token and a uniform for each race", at={"V": tokens},
            )
        )  # fmt: skip
        rows.append(Row(f"{MANY:,} of them and their tables, V = {tokens:,}", "ms", whole * 1e3, same, wanted=WANTED))
    return rows


def walks(rng: np.random.Generator) -> Row:
    """ERSD with a given rank law, per call."""
    accepted = ranked_tree(SHAPE, LAW, CALLS, state=words(4)).accepted
    mean = float(np.sum(accepted * np.arange(SHAPE.depth + 1)))
    agree_shares(mean, CALLS, numpy_walks(CALLS, rng), CALLS, SHAPE.depth)
    reads = round(mean + CALLS)
    table = alias(np.append(LAW, 1 - LAW.sum()))
    return row(
        "k-ary tree 4x2x2x1: call",
        (lambda _: ranked_tree(SHAPE, LAW, CALLS, state=words(4)), CALLS),
        (lambda _: numpy_walks(CALLS, rng), CALLS),
        (lambda _: draw_tokens(table.keep, table.other, reads, 0, words(1)), CALLS),
    )


def best_trees(rng: np.random.Generator) -> Row:
    """The heaviest prefixes of random trees, per prefix."""
    rows = np.sort(rng.dirichlet(np.full(1000, 0.05), size=500))[:, ::-1]
    found = random_pmf_trees(rows, [PREFIXES], TREES * 10, state=words(5))[:, 0]
    agree(found, np.array(list(chain(heap_trees(rows, TREES * 2, rng)))))
    weights = rng.random((TREES, PREFIXES))
    return row(
        f"{PREFIXES} heaviest prefixes: prefix",
        (lambda _: random_pmf_trees(rows, [PREFIXES], TREES * 10, state=words(5)), TREES * 10 * PREFIXES),
        (lambda _: heap_trees(rows, TREES, rng), TREES * PREFIXES),
        (lambda _: np.sort(weights, axis=1), TREES * PREFIXES),
    )


def measure() -> list[Row]:
    """Check agreement, then time."""
    rng = np.random.default_rng(0)
    ((target, draft),) = language_logits(VOCABULARY, 1)
    p, q = softmax(target), softmax(draft)
    return [*candidates(p, q, rng), *races(p, q, rng), *lazy_lists(), walks(rng), best_trees(rng)]


if __name__ == "__main__":
    run(f"Simulated lists and trees of candidates, V = {VOCABULARY:,}", measure)
