"""Decoding on Markov chains: nanoseconds per output token, one core, tables built beforehand.

The peers are the same algorithm in numpy (4,096 texts in lockstep, draws by one search in the cumulative sums of all
rows) and in plain Python (cumulative sums as lists, bisection). The limit is a chain of the target alone: one alias
draw per token, 64 texts in turn; of the target's contexts for n-grams. For block verification, n-grams and the batch
the peers are their readable twins.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import accumulate

import numpy as np
from _rows import Row
from _timing import language_logits, nanoseconds, run

from simulations.draws.alias import alias, drawn
from simulations.draws.streams import Stream, uniform, words
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.block_decoding import _block_calls, block_tables
from simulations.kernels.markov_decoding import LANES, _prepared, calls_of_rows, lane_streams, token_calls
from simulations.kernels.ngram_decoding import ngram_calls, ngram_tables
from simulations.models.chains import CallCounts, checked_chains
from simulations.models.ngram import BYTES, byte_tokens, text_of, text_parameters
from simulations.models.ngram_models import automaton, contexts_of, ngram
from simulations.reference.batch import batch_text
from simulations.reference.decoding import block_call, token_call
from simulations.reference.drawing import from_table
from simulations.reference.markov import Pair, decoded
from simulations.reference.ngram import prefix_text
from spectheory.kernels.compiling import compiled

STATES, K = (64, 256, 512), 4
TEXTS, LENGTH = 64, 20_000
SIDE_BY_SIDE = 4096
UNIT = "ns per token"
AGREE = 0.01
"""Tokens per call of two simulations of some hundred thousand calls, each known to 0.2%."""

Chain = np.ndarray


def chains(states: int) -> tuple[Chain, Chain, Chain]:
    """A pair whose rows are like those of language models, and a uniform start."""
    rows = language_logits(states, states)
    target, draft = (np.exp([pair[side] for pair in rows]) for side in range(2))
    return *(m / m.sum(axis=1, keepdims=True) for m in (target, draft)), np.full(states, 1 / states)


# Peers


def cumulative(rows: Chain) -> Chain:
    """Sums along every row, row x from x to x + 1, in one ascending array."""
    sums = np.cumsum(rows, axis=1)
    total = np.where(sums[:, -1:] > 0, sums[:, -1:], 1.0)
    return (np.arange(len(rows))[:, None] + np.minimum(sums / total, 1.0)).ravel()


class InNumpy:
    """Token verification of many texts in lockstep."""

    def __init__(self, target: Chain, draft: Chain) -> None:
        self.p, self.q, self.states = target, draft, len(target)
        excess = np.maximum(target - draft, 0)
        self.sums = {name: cumulative(rows) for name, rows in (("p", target), ("q", draft), ("excess", excess))}
        self.rng = np.random.default_rng(1)

    def draws(self, name: str, last: Chain) -> Chain:
        """One token after each of `last`."""
        found = np.searchsorted(self.sums[name], last + self.rng.random(last.size), side="right")
        return np.minimum(found - last * self.states, self.states - 1)

    def calls(self, count: int) -> float:
        """Tokens per call over `count` calls of every text."""
        last, tokens = np.zeros(SIDE_BY_SIDE, dtype=np.int64), 0
        for _ in range(count):
            alive = np.ones(SIDE_BY_SIDE, dtype=bool)
            for _ in range(K):
                drafts = self.draws("q", last)
                coins = self.rng.random(SIDE_BY_SIDE) * self.q[last, drafts] < self.p[last, drafts]
                rejected = np.flatnonzero(alive & ~coins)
                alive &= coins
                last[alive] = drafts[alive]
                tokens += int(alive.sum())
                last[rejected] = self.draws("excess", last[rejected])
            last[alive] = self.draws("p", last[alive])
            tokens += SIDE_BY_SIDE
        return tokens / (count * SIDE_BY_SIDE)


class InPython:
    """Token verification of one text with lists."""

    def __init__(self, target: Chain, draft: Chain) -> None:
        self.p, self.q = target.tolist(), draft.tolist()
        excess = np.maximum(target - draft, 0).tolist()
        self.sums = {
            n: [list(accumulate(row)) for row in m] for n, m in zip("pqe", (self.p, self.q, excess), strict=True)
        }
        self.random = random.Random(1).random

    def draw(self, name: str, last: int) -> int:
        """One token."""
        sums = self.sums[name][last]
        return min(bisect_right(sums, self.random() * sums[-1]), len(sums) - 1)

    def calls(self, count: int) -> float:
        """Tokens per call."""
        last = tokens = 0
        for _ in range(count):
            name = "p"
            for _ in range(K):
                token = self.draw("q", last)
                if self.random() * self.q[last][token] >= self.p[last][token]:
                    name = "e"
                    break
                last = token
                tokens += 1
            last = self.draw(name, last)
            tokens += 1
        return tokens / count


@compiled
def plain_chain(keep: Chain, other: Chain, state: Chain, length: int) -> int:
    """The limit: tokens of the target alone."""
    lanes = state.shape[0]
    last, checked = np.zeros(lanes, np.int64), 0
    for _ in range(length):
        for lane in range(lanes):
            last[lane] = drawn(keep[last[lane]], other[last[lane]], uniform(state[lane]))
            checked += last[lane]
    return checked


@compiled
def plain_automaton(keep: Chain, other: Chain, following: Chain, state: Chain, length: int) -> int:
    """The limit for n-grams: tokens of the target alone, with the context that follows."""
    lanes = state.shape[0]
    last, checked = np.zeros(lanes, np.int64), 0
    for _ in range(length):
        for lane in range(lanes):
            last[lane] = following[last[lane], drawn(keep[last[lane]], other[last[lane]], uniform(state[lane]))]
            checked += last[lane]
    return checked


# Rows


def check_twins(pair: tuple[Chain, Chain, Chain]) -> None:
    """The kernel's texts are its twin's."""
    for seed in range(3):
        stream = Stream(lane_streams(words(seed), 1)[:, 0])
        steps = decoded(token_call, Pair(*pair[:2]), from_table(pair[2], stream), 40, K, stream)
        counts = token_calls(*pair, length=40, k=K, texts=1, state=words(seed))
        assert counts.accepted.tolist() == np.bincount([s.accepted for s in steps], minlength=K + 1).tolist()


def token_rows(states: int) -> list[Row]:
    """Token verification against both peers."""
    pair = chains(states)
    check_twins(pair)
    counts = token_calls(*pair, length=LENGTH, k=K, texts=TEXTS, state=words(1))
    per_call = TEXTS * LENGTH / counts.accepted.sum()
    in_numpy, in_python = InNumpy(*pair[:2]), InPython(*pair[:2])
    for found in (in_numpy.calls(100), in_python.calls(100_000)):
        assert abs(found / per_call - 1) < AGREE, "tokens per call agree"
    rows, start, lanes = _prepared(*pair, LENGTH, TEXTS, words(1))
    table, streams = alias(pair[0]), np.ascontiguousarray(lanes.T)

    def ours(_: None) -> None:
        calls_of_rows(rows, start, lanes, length=LENGTH, k=K, texts=TEXTS)

    tokens = TEXTS * LENGTH
    time = nanoseconds(ours, [None], tokens, 9)
    limit = nanoseconds(lambda _: plain_chain(*table, streams, tokens // LANES), [None], tokens, 9)
    peers: dict[str, tuple[Callable[[int], float], int, int]] = {
        "numpy": (in_numpy.calls, 30, SIDE_BY_SIDE),
        "plain Python": (in_python.calls, 20_000, 1),
    }
    result: list[Row] = []
    for name, (work, count, texts) in peers.items():
        peer = nanoseconds(work, [count], int(count * texts * per_call), 5)
        same, chain = "tokens per call to 1%", "a plain chain"
        result.append(
            Row(
                f"token, {states} states",
                UNIT,
                time,
                same,
                peer,
                name,
                limit,
                chain,
                at={"states": states},
                curve="token",
            )
        )
    return result


def twin_row(work: str, ours: float, peer: float, limit: float) -> Row:
    """Ours against the readable twin."""
    return Row(work, UNIT, ours, "call by call, or to six deviations", peer, "twin", limit, "a plain chain")


def block_row(states: int) -> Row:
    """Block verification against its twin."""
    pair = chains(states)
    checked = checked_chains(*pair, length=LENGTH)
    tables, start, state, table = block_tables(checked), alias(pair[2]), words(1), alias(pair[0])
    stream = Stream(words(2))
    seen = [s.accepted for s in decoded(block_call, Pair(*pair[:2]), 0, 2000, K, stream)]

    def ours(_: None, texts: int = 8) -> np.ndarray:
        counts = CallCounts.none(k=K, length=LENGTH)
        _block_calls(tables, *start, state, LENGTH, texts, counts.accepted, counts.texts)
        return counts.accepted

    accepted = ours(None) @ np.arange(K + 1) / ours(None).sum()
    assert abs(np.mean(seen) - accepted) < 6 * np.std(seen) / len(seen) ** 0.5
    twin = partial(decoded, block_call, Pair(*pair[:2]), 0, 500, K)
    return twin_row(
        f"block, {states} states",
        nanoseconds(ours, [None], 8 * LENGTH, 9),
        nanoseconds(lambda _: list(twin(stream)), [None], 500, 3),
        nanoseconds(lambda _: plain_chain(*table, words(3)[None], 8 * LENGTH), [None], 8 * LENGTH, 9),
    )


def ngram_row(module: str = "argparse", order: int = 3, draft_order: int = 2) -> Row:
    """N-gram models of a module's bytes against their twin."""
    text = byte_tokens(text_of(text_parameters(module)))
    models = [ngram(text, BYTES, order=n) for n in (order, draft_order)]
    pair, contexts, stream = automaton(*models), contexts_of(*models), Stream(lane_streams(words(4), 1)[:, 0])
    start = contexts[from_table(pair.initial, stream)]
    pmfs = [model.pmf for model in models]
    seen = [step.accepted for step in prefix_text(*pmfs, start, 500, K, stream)]
    found = ngram_calls(*pair, length=500, k=K, texts=1, state=words(4))
    assert found.accepted.tolist() == np.bincount(seen, minlength=K + 1).tolist()
    tables, lanes = ngram_tables(*pair), lane_streams(words(5), LANES)
    table, streams, tokens = alias(pair.target), np.ascontiguousarray(lanes.T), TEXTS * LENGTH
    return twin_row(
        f"{order}-grams by {draft_order}-grams, {len(contexts)} contexts",
        nanoseconds(lambda _: calls_of_rows(*tables, lanes, length=LENGTH, k=K, texts=TEXTS), [None], tokens, 9),
        nanoseconds(lambda _: list(prefix_text(*pmfs, start, 500, K, stream)), [None], 500, 3),
        nanoseconds(lambda _: plain_automaton(*table, pair.following, streams, tokens // LANES), [None], tokens, 9),
    )


def batch_row(horizon: int = 50, drafts: int = 4, texts: int = 20_000) -> Row:
    """The batch on yin2024's chains against its twin; tables included."""
    rng = np.random.RandomState(10)
    draft, target = (m / m.sum(axis=-1, keepdims=True) for m in (rng.rand(horizon, 7, 7) for _ in range(2)))
    start, stream, table = np.full(7, 1 / 7), Stream(words(1)), alias(target[0])
    found = batch_rejections(target, draft, start, length=horizon, drafts=drafts, texts=1, state=words(1))
    twin = partial(batch_text, Pair(target, draft))
    rejected = twin(from_table(start, stream), horizon, drafts, stream)
    assert np.flatnonzero(found.positions).tolist() == rejected
    work = partial(batch_rejections, target, draft, start, length=horizon, drafts=drafts, texts=texts)
    return twin_row(
        f"batch of {drafts}, 7 states",
        nanoseconds(lambda state: work(state=state), [words(2)], texts * horizon, 5),
        nanoseconds(lambda _: twin(0, horizon, drafts, stream), [None], horizon, 5),
        nanoseconds(lambda _: plain_chain(*table, words(3)[None], 10**6), [None], 10**6, 5),
    )


def measure() -> list[Row]:
    """Check, then time."""
    token = (row for states in STATES for row in token_rows(states))
    return [*token, block_row(64), block_row(512), ngram_row(), ngram_row(order=4), batch_row()]


if __name__ == "__main__":
    run("Speculative decoding over Markov chains and n-gram models", measure)
