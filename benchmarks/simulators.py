"""The simulators, a row for each kernel: ours, a peer with the same law, and the part that nothing can leave out.

Peers are the same algorithms in numpy (all runs at once where they can be) or with ``heapq``, our dense kernel, and the
readable twins. Equality first: exact two-sample tests of what both count. Times are thread CPU
time, tables left out: a long run less a short one. Workers are timed by the wall clock, and count the same, number for
number.
"""

from __future__ import annotations

import heapq
import multiprocessing
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.context import BaseContext

import numpy as np
from _rows import Row, dispatch, language_logits, median_seconds, publish, softmax
from numpy.typing import NDArray
from scipy.stats import hypergeom

from simulations.counts import Tally
from simulations.draws import Alias, Stream, Words, alias, alias_draw, exponential, token_of, uniform, words
from simulations.experiments import PRELOADED
from simulations.experiments.collect import Failure, Stop, collect, process_pool, run_batch
from simulations.experiments.tasks import task
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.candidates import recursive_rejection
from simulations.kernels.gumbel_lists import gumbel_list, lazy_gumbel_list
from simulations.kernels.markov_decoding import LANES, lane_streams, token_calls
from simulations.kernels.races import dense_race, lazy_race
from simulations.kernels.random_pmf_trees import random_pmf_trees
from simulations.kernels.ranked_trees import raced_tree, ranked_tree
from simulations.models.pairs import CallCounts
from simulations.reference.decoding import DraftTree, Pair, batch_text, block_call, decoded
from simulations.simulators import decoding, positions  # noqa: F401  decoding registers what the workers do
from simulations.simulators.timing import numpy_race
from spectheory.drafting import Chain, KAry
from spectheory.kernels.compiling import compiled, compiled_in_any_order
from spectheory.processes import begin, fresh_processes, prepare

Floats, Counts = NDArray[np.float64], NDArray[np.int64]
ALARM = 1e-9
"""Chance of a false alarm, of the test of one outcome."""
RANKS, RACES, DEPTH, K, REPEATS = 4, 4, 4, 4, 7
LAW, SHAPE = np.array([0.6, 0.2, 0.1, 0.05]), KAry((4, 2, 2, 1))
PREFIXES, MAX_RANK = 1000, 16
STATES, LENGTH, SHORT = 512, 20_000, 40
"""Of chains; tokens of a text that is timed, and of one that is compared."""
WORKERS, TEXTS, BATCHES, WANTED = 2, 1_000_000, 24, 1.7
"""Texts of one batch: some 0.4 s of one core."""


@dataclass(frozen=True)
class Kernel:
    """A kernel with its peer, which count outcomes of so many runs, and the limit; `units` are of a run of each."""

    work: str
    unit: str
    ours: Callable[[int], Counts]
    peer: Callable[[int], Counts]
    peer_is: str
    limit: Callable[[], object]
    limit_is: str
    checked: tuple[int, int]
    timed: tuple[int, int]
    units: tuple[float, float, float] = (1.0, 1.0, 1.0)
    time_alone: Callable[[int], object] | None = None
    """What is timed in place of `ours`."""

    def row(self) -> Row:
        """Compare, then time."""
        same_law(self.ours(self.checked[0]), self.peer(self.checked[1]))
        work, (runs, peers) = self.time_alone or self.ours, self.timed
        few = max(1, runs // 10)
        long, short = (median_seconds(partial(work, n), REPEATS) for n in (runs, few))
        times = (
            (long - short) / (runs - few) / self.units[0],
            median_seconds(partial(self.peer, peers), 3) / peers / self.units[1],
            median_seconds(self.limit, REPEATS) / self.units[2],
        )
        ours, peer, limit = (1e9 * seconds for seconds in times)
        same = "one law: exact two-sample tests of counts"
        return Row(self.work, f"ns per {self.unit}", ours, same, peer, self.peer_is, limit, self.limit_is)


def same_law(ours: Counts, peer: Counts) -> None:
    """Exact tests of two samples of independent runs: how many have each outcome or a lower one."""
    mine, other = np.cumsum(ours), np.cumsum(peer)
    law = hypergeom(mine[-1] + other[-1], mine + other, other[-1])
    assert np.minimum(law.cdf(other), law.sf(other - 1)).min() > ALARM / 2, (ours, peer)


# Limits


@compiled
def draws(table: Alias, runs: int, tokens: int, uniforms: int, exponentials: int, state: Words) -> float:
    """So many random numbers of each kind, in every run."""
    total = 0.0
    for _ in range(runs):
        for _ in range(tokens):
            total += token_of(table, state)
        for _ in range(uniforms):
            total += uniform(state)
        for _ in range(exponentials):
            total += exponential(state)
    return total


@compiled_in_any_order
def added(a: float, b: float) -> float:
    """A sum whose order is free."""
    return a + b


@compiled
def read_pairs(p: Floats, q: Floats, times: int) -> float:
    """A reading of both pmfs for each rejection that needs a new residual."""
    total = 0.0
    for i in range(times):
        share = i / times  # so that no reading is that of another
        for y in range(p.size):
            total = added(total, max(p[y] - share * q[y], 0.0))
    return total


@compiled
def plain_chain(table: Alias, state: Words, length: int) -> int:
    """Tokens of the target alone, 64 texts in turn."""
    lanes = state.shape[0]
    last, checked = np.zeros(lanes, np.int64), 0
    for _ in range(length):
        for lane in range(lanes):
            last[lane] = alias_draw(table.keep[last[lane]], table.other[last[lane]], uniform(state[lane]))
            checked += last[lane]
    return checked


# Peers


def numpy_rejection(p: Floats, q: Floats, replacement: bool, rng: np.random.Generator, trials: int) -> Counts:
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


def numpy_lists(p: Floats, q: Floats, rng: np.random.Generator, trials: int) -> Counts:
    """Misses and hits of Gumbel lists, a trial at a time."""
    hits = 0
    for _ in range(trials):
        clocks = rng.standard_exponential((RACES, p.size))
        hits += np.argmin(np.min(clocks / p, axis=0)) in np.argmin(clocks / q, axis=1)
    return np.array([trials - hits, hits])


def numpy_chains(p: Floats, q: Floats, rng: np.random.Generator, calls: int) -> Counts:
    """Accepted drafts of a chain of races."""
    counts = np.zeros(DEPTH + 1, dtype=np.int64)
    for _ in range(calls):
        accepted = 0
        for position in range(DEPTH + 1):
            clocks = rng.standard_exponential(p.size)
            if np.argmin(clocks / p) != np.argmin(clocks / q):
                break
            accepted += position < DEPTH  # the position behind the chain has no draft
        counts[accepted] += 1
    return counts


def numpy_walks(rng: np.random.Generator, calls: int) -> Counts:
    """Accepted drafts of the k-ary tree, all calls at once: node r of a depth is drafted if its rank is low enough."""
    ranks = np.searchsorted(np.cumsum(LAW), rng.random((calls, SHAPE.depth)), side="right")
    depths = np.cumprod(ranks < np.array(SHAPE.branching), axis=1).sum(axis=1)
    return np.bincount(depths, minlength=SHAPE.depth + 1)


def heap_trees(rows: Floats, rng: np.random.Generator, trees: int) -> Floats:
    """Totals of the best trees, from a heap of one child or sibling each; `rows` descend."""
    totals = np.zeros(trees)
    for tree in range(trees):
        row = rows[rng.integers(len(rows))]
        waiting = [(-row[0], 0, 0, 1.0, row)]
        for number in range(1, PREFIXES + 1):
            negative, _, place, above, row = heapq.heappop(waiting)
            totals[tree] -= negative
            fresh = rows[rng.integers(len(rows))]
            heapq.heappush(waiting, (negative * fresh[0], 2 * number, 0, -negative, fresh))
            if place + 1 < len(row):
                heapq.heappush(waiting, (-above * row[place + 1], 2 * number + 1, place + 1, above, row))
    return totals


def numpy_tokens(target: Floats, draft: Floats, rng: np.random.Generator, texts: int, calls: int) -> Counts:
    """Tokens of each text after so many calls of token verification, all texts in lockstep from state 0."""
    rows = np.arange(len(target))[:, None]

    def cumulative(weights: Floats) -> Floats:  # row x from x to x + 1, in one ascending array
        return (rows + np.minimum(np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True), 1.0)).ravel()

    p, q, excess = map(cumulative, (target, draft, np.maximum(target - draft, 0)))

    def draws(sums: Floats, last: Counts) -> Counts:
        places = np.searchsorted(sums, last + rng.random(last.size), side="right")
        return np.minimum(places - last * len(target), len(target) - 1)

    last, tokens = np.zeros((2, texts), dtype=np.int64)
    for _ in range(calls):
        alive = np.ones(texts, dtype=bool)
        for _ in range(K):
            drafts = draws(q, last)
            coins = rng.random(texts) * draft[last, drafts] < target[last, drafts]
            rejected = np.flatnonzero(alive & ~coins)
            alive &= coins
            last[alive] = drafts[alive]
            tokens += alive
            last[rejected] = draws(excess, last[rejected])
        last[alive] = draws(p, last[alive])
        tokens += 1
    return tokens


# Kernels


def candidates(p: Floats, q: Floats, rng: np.random.Generator) -> Iterator[Kernel]:
    """Lists and trees of candidates at V = 4,096."""
    table, size, stream = alias(q), f"V = {p.size:,}", words(1)
    for name, replacement, trials in (("i.i.d.", True, 400_000), ("distinct", False, 20_000)):

        def ours(n: int, kind: bool = replacement) -> Counts:
            return recursive_rejection(p, q, RANKS, n, state=words(1), replacement=kind).sum(axis=1)

        rejections = int(ours(trials) @ np.arange(RANKS + 1))
        limit = partial(draws, table, trials, 1, 1, 0, stream), "a token and a coin"
        if not replacement:
            limit = partial(read_pairs, p, q, rejections), "reading both pmfs for each rejection"
        work, peer = (
            f"recursive rejection, {name}, {RANKS} ranks, {size}",
            partial(numpy_rejection, p, q, replacement, rng),
        )
        yield Kernel(work, "trial", ours, peer, "numpy", *limit, (trials, 1000), (trials, 1000), (1, 1, trials))
    uniforms = partial(draws, table, 400 * p.size, 0, 1, 0, stream), "a uniform for each clock"
    lists, peer = partial(hits, gumbel_list, p, q, 2), partial(numpy_lists, p, q, rng)
    work, units = f"Gumbel lists, {RACES} races, {size}", (RACES * p.size, RACES * p.size, 400 * p.size)
    yield Kernel(work, "clock", lists, peer, "numpy", *uniforms, (10_000, 10_000), (400, 80), units)

    def chained(n: int) -> Counts:
        return raced_tree(Chain(DEPTH), p, q, n, state=words(3)).accepted

    counts, peer = chained(2000), partial(numpy_chains, p, q, rng)
    clocks = (counts @ np.arange(DEPTH + 1) / counts.sum() + 1) * p.size
    work, units = f"raced chain of {DEPTH}, {size}", (clocks, clocks, 400 * p.size)
    yield Kernel(work, "clock", chained, peer, "numpy", *uniforms, (2000, 2000), (400, 80), units)
    ranks, calls = alias(np.append(LAW, 1 - LAW.sum())), 200_000

    def walked(n: int) -> Counts:
        return ranked_tree(SHAPE, LAW, n, state=words(4)).accepted

    reads, peer = round(calls + walked(calls) @ np.arange(SHAPE.depth + 1)), partial(numpy_walks, rng)
    limit, both = (partial(draws, ranks, reads, 1, 0, 0, stream), "its ranks"), (calls, calls)
    yield Kernel("k-ary tree 4x2x2x1", "call", walked, peer, "numpy", *limit, both, both, (1, 1, calls))


def hits(kernel: Callable[..., Counts], p: Floats, q: Floats, seed: int, n: int) -> Counts:
    """Misses and hits of a list kernel."""
    counts = kernel(p, q, RACES, n, state=words(seed)).sum(axis=1)
    return np.array([counts[0], counts[1:].sum()])


def best_trees(rng: np.random.Generator) -> Kernel:
    """The heaviest prefixes of random trees, per prefix; totals are counted between their pooled quantiles."""
    rows = np.sort(rng.dirichlet(np.full(1000, 0.05), size=500))[:, ::-1]
    weights = rng.random((20, PREFIXES))

    def grown(n: int) -> Floats:
        return random_pmf_trees(rows, [PREFIXES], n, state=words(5))[:, 0]

    edges = np.quantile(np.concatenate([grown(1000), heap_trees(rows, rng, 200)]), np.linspace(0.125, 0.875, 7))

    def counted(totals: Floats) -> Counts:
        return np.bincount(np.searchsorted(edges, totals), minlength=len(edges) + 1)

    def by_heap(n: int) -> Counts:
        return counted(heap_trees(rows, rng, n))

    limit, units = partial(np.sort, weights, axis=1), (PREFIXES, PREFIXES, weights.size)
    how = by_heap, "heapq", limit, "a sort of weights", (1000, 200), (200, 20), units
    return Kernel(f"{PREFIXES} heaviest prefixes", "prefix", lambda n: counted(grown(n)), *how)


def lazily(rng: np.random.Generator) -> Iterator[Kernel]:
    """Races whose output is drawn first, against those that draw every clock."""
    p, q = pmfs(200_000)
    ways, many = (partial(hits, lazy_gumbel_list, p, q, 6), partial(hits, gumbel_list, p, q, 7)), 100_000
    limit = partial(draws, alias(q), many * RACES, 1, 1, 0, words(1)), "a token and a uniform for each race"
    work = f"Gumbel lists, output first, {RACES} races, V = {p.size:,}"
    yield Kernel(work, "trial", *ways, "our dense kernel", *limit, (many, 1000), (many, 20), (1, 1, many))
    p, q = pmfs(131_072)

    def raced(kernel: Callable[..., Counts], seed: int, n: int) -> Counts:
        return kernel(p, q, trials=n, state=words(seed), max_rank=MAX_RANK)

    peer, size, table = (partial(raced, numpy_race, 8), "numpy"), f"V = {p.size:,}", alias(p)
    work, limit = f"race, a clock for every token, {size}", partial(draws, table, p.size, 0, 0, 1, words(6))
    yield Kernel(
        work, "race", partial(raced, dense_race, 3), *peer, limit, "their exponentials", (4000, 2000), (40, 41)
    )
    work, many, limit = f"race, output first, {size}", 400_000, partial(draws, table, 400_000, 1, 0, 1, words(6))
    how = limit, "a token and its time", (many, 2000), (many, 400), (1, 1, many)
    yield Kernel(work, "race", partial(raced, lazy_race, 2), *peer, *how)


def markov(rng: np.random.Generator) -> Iterator[Kernel]:
    """Decoding on Markov chains, per token; what is compared are calls of whole texts, which are independent."""
    rows = language_logits(STATES, STATES)
    target, draft = (np.array([softmax(pair[side]) for pair in rows]) for side in range(2))
    start, streams = np.eye(STATES)[0], np.ascontiguousarray(lane_streams(words(3), LANES).T)
    chain = partial(plain_chain, alias(target), streams, LENGTH), "a plain chain"
    at, calls = SHORT // 2, SHORT // 5

    def whole(kernel: Callable[..., CallCounts], n: int, length: int = LENGTH) -> CallCounts:
        return kernel(target, draft, start, length=length, k=K, texts=n, state=words(1))

    def done(n: int) -> Counts:  # texts with `at` tokens after so many calls, and without
        texts = whole(token_calls, n, at).texts
        return np.array([texts[: calls + 1].sum(), texts[calls + 1 :].sum()])

    def done_in_numpy(n: int) -> Counts:
        tokens = numpy_tokens(target, draft, rng, n, calls)
        return np.bincount(tokens < at, minlength=2)

    units = LENGTH, numpy_tokens(target, draft, rng, 4096, calls).mean(), LENGTH * LANES
    how = (20_000, 4096), (640, 4096), units, partial(whole, token_calls)
    yield Kernel(f"token verification, {STATES} states", "token", done, done_in_numpy, "numpy", *chain, *how)
    stream = Stream(words(2))

    def by_twin(n: int) -> Counts:
        pair, tree = Pair(target, draft), DraftTree((1,) * depth for depth in range(1, K + 1))
        call_counts = [sum(1 for _ in decoded(block_call, tree, pair, 0, SHORT, stream)) for _ in range(n)]
        return np.bincount(call_counts, minlength=SHORT + 1)

    how = (4000, 400), (8, 20), (LENGTH, SHORT, LENGTH * LANES), partial(whole, block_calls)
    peer = by_twin, "readable twin", *chain
    work = f"block verification, {STATES} states"
    yield Kernel(work, "token", lambda n: whole(block_calls, n, SHORT).texts, *peer, *how)
    made = np.random.RandomState(10)  # the chains of yin2024
    drafts, targets = (m / m.sum(axis=-1, keepdims=True) for m in (made.rand(50, 7, 7) for _ in range(2)))

    def batches(n: int) -> Counts:
        return batch_rejections(targets, drafts, np.eye(7)[0], length=50, drafts=4, texts=n, state=words(2)).texts

    def batches_by_twin(n: int) -> Counts:
        rejections = [len(batch_text(Pair(targets, drafts), 0, 50, 4, stream)) for _ in range(n)]
        return np.bincount(rejections, minlength=51)

    chain = partial(plain_chain, alias(targets[0]), streams, LENGTH), "a plain chain"
    how = "readable twin", *chain, (20_000, 2000), (20_000, 20), (50, 50, LENGTH * LANES)
    yield Kernel("batch of 4 drafts, 7 states", "token", batches, batches_by_twin, *how)


def pmfs(tokens: int) -> tuple[Floats, Floats]:
    """Target and draft as language models have them."""
    ((target, draft),) = language_logits(tokens, 1)
    return softmax(target), softmax(draft)


# Workers


def pool_start() -> Iterator[Row]:
    """Seconds until each worker of a pool has finished a batch: forked from a process with the kernels, or not."""
    began = time.perf_counter()
    prepare(PRELOADED)
    forked, spawned = fresh_processes(PRELOADED), multiprocessing.get_context("spawn")
    ours = first_batches(forked)
    first = time.perf_counter() - began
    assert ours == first_batches(spawned), "however workers start, they count the same"
    ways = (partial(first_batches, forked), partial(first_batches, spawned), interpreters)
    seconds, peer, limit = (statistics.median(each) for each in zip(*(map(wall, ways) for _ in range(5)), strict=True))
    others = "both count the same", peer, "an interpreter for each worker", limit, "two bare interpreters"
    yield Row(f"first pool of {WORKERS} workers, with their first batches", "s", first, *others)
    yield Row("a pool while modules are loaded", "s", seconds, *others)


def first_batches(context: BaseContext) -> list[Tally | Failure]:
    """A batch for each worker of a pool that starts and ends here."""
    work = task("gumbel-list", {"target": [0.5, 0.3, 0.2], "draft": [0.2, 0.3, 0.5], "k": 2}, seed=1, trials=1000)
    with ProcessPoolExecutor(WORKERS, mp_context=context, initializer=begin) as pool:
        return list(pool.map(run_batch, [work] * WORKERS, range(WORKERS), [positions.__name__] * WORKERS))


def interpreters() -> None:
    """As many interpreters that do nothing, at once."""
    for each in [subprocess.Popen([sys.executable, "-c", "pass"]) for _ in range(WORKERS)]:
        each.wait()


def wall(work: Callable[[], object]) -> float:
    """Wall-clock seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def two_workers() -> Iterator[Row]:
    """One worker and two in turn, in warm pools; two cores are at most twice as fast."""
    times: dict[int, list[float]] = {1: [], WORKERS: []}
    runs = [(workers, collected(workers)) for _ in range(3) for workers in times]
    assert all(tally == runs[0][1][1] for _, (_, tally) in runs), "one worker and two count the same"
    for workers, (seconds, _) in runs:
        times[workers].append(seconds)
    one, two = map(statistics.median, times.values())
    same, work, limit = "one worker and two count the same", f"{BATCHES * TEXTS:,} texts", one / WORKERS
    yield Row(f"one worker, {work}", "s", one, same, at={"workers": 1}, curve="simulations")
    others = one, "one worker", limit, "half of that", one / WANTED
    yield Row(f"two workers, {work}", "s", two, same, *others, {"workers": WORKERS}, "simulations")


def collected(workers: int) -> tuple[float, Tally]:
    """Wall-clock time of a run in a fresh pool that is warm, and what it counted."""
    kind, chains = "token", {"chains": "yin2024", "length": 50, "k": 4}
    warm, work = task(kind, chains, seed=2, trials=TEXTS // 20), task(kind, chains, seed=1, trials=TEXTS)
    with process_pool(workers) as pool:
        collect([warm], stop=Stop(trials=8 * workers * warm.trials), executor=pool)
        began = time.perf_counter()
        results = collect([work], stop=Stop(trials=BATCHES * work.trials), executor=pool)
        return time.perf_counter() - began, results[work]


def measure() -> Iterator[Row]:
    """Check and time, one after the other."""
    rng = np.random.default_rng(0)
    workers = list(pool_start())  # before a pool is prepared
    kernels = (*candidates(*pmfs(4096), rng), best_trees(rng), *lazily(rng), *markov(rng))
    yield from (kernel.row() for kernel in kernels)
    yield from (*workers, *two_workers())


if __name__ == "__main__":
    script = __file__
    del __file__  # each worker would import it
    publish(script, "Simulators", list(measure()), f"numpy used {dispatch()}.")
