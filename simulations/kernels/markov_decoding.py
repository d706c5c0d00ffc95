"""Token verification on Markov chains, one draw per token.

A table per state draws output and mark at once (:mod:`simulations.draws.acceptance`); the bonus token is a draw whose
mark is not read. A text is a chain of dependent loads; many texts in turn hide the wait for memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simulations.draws.acceptance import Rows, acceptance_law, acceptance_rows
from simulations.draws.alias import Alias, Floats, Tokens, alias, drawn
from simulations.draws.streams import Words, next_word, words
from simulations.models.chains import CallCounts, Counts, RejectionCounts, checked_chains, checked_stream
from simulations.models.positions import whole_number
from spectheory.kernels.compiling import compiled

LANES = 64
"""Texts decoded in turn, each lane with its own stream; text t belongs to lane t mod 64."""


def lane_streams(state: Words, lanes: int) -> Words:
    """Streams ``[4, lanes]``, a column for each lane: children of a seed of four words drawn from `state`."""
    seed = 0
    for _ in range(4):
        seed = (seed << 64) | int(next_word(state))
    return np.stack([words(seed, lane) for lane in range(lanes)], axis=1)


def token_calls(target: Any, draft: Any, initial: Any, *, length: int, k: int, texts: int, state: Words) -> CallCounts:
    """Calls of token verification, over whole texts.

    Each call drafts k tokens, fewer where the text ends: with m tokens to go at most m - 1, so that its recovered or
    bonus token is the last.

    Lane i draws from its own stream (:func:`lane_streams`): the token before each of its texts, then one uniform per
    token.

    Returns CallCounts: calls by accepted drafts, texts by calls.

    Examples
    --------
    >>> same = np.full((2, 2), 0.5)
    >>> counts = token_calls(same, same, [1, 0], length=7, k=2, texts=100, state=words(1))
    >>> counts.accepted, counts.texts
    (array([100,   0, 200]), array([  0,   0,   0, 100,   0,   0,   0,   0]))
    """
    drafts = whole_number("k", k)
    rows, start, lanes = _prepared(target, draft, initial, length, texts, state)
    return calls_of_rows(rows, start, lanes, length=length, k=drafts, texts=texts)


def calls_of_rows(rows: Rows, start: Alias, lanes: Words, *, length: int, k: int, texts: int) -> CallCounts:
    """Calls of token verification by tables whose outcomes are twice the next state, plus one if accepted."""
    accepted, by_calls = np.zeros((lanes.shape[1], k + 1), np.int64), np.zeros(length + 1, np.int64)
    _token_calls(rows, *start, lanes, length, texts, accepted, by_calls)
    return CallCounts(accepted.sum(axis=0), by_calls)


def horizon_rejections(
    target: Any, draft: Any, initial: Any, *, length: int, texts: int, state: Words
) -> RejectionCounts:
    """Rejections of token verification whose every round drafts to the horizon (yin2024).

    Every position has a draft and none a bonus token; a text takes 1 + (rejections before its last token) calls.
    Parameters, errors and order of draws are those of :func:`token_calls`, whose texts these are.

    Examples
    --------
    >>> apart = horizon_rejections(np.eye(2), np.eye(2)[::-1], [1, 0], length=3, texts=5, state=words(1))
    >>> apart.positions, apart.texts
    (array([5, 5, 5]), array([0, 0, 0, 5]))
    """
    rows, start, lanes = _prepared(target, draft, initial, length, texts, state)
    counts = RejectionCounts(np.zeros(length, np.int64), np.zeros(length + 1, np.int64))
    _horizon_rejections(rows, *start, lanes, length, texts, counts.positions, counts.texts)
    return counts


def _prepared(
    target: Any, draft: Any, initial: Any, length: int, texts: int, state: Words
) -> tuple[Rows, Alias, Words]:
    """The tables of every state, the table of the first token, and a stream per lane."""
    runs = whole_number("texts", texts)
    chains = checked_chains(target, draft, initial, length=whole_number("length", length))
    rows = acceptance_rows(acceptance_law(chains.target, chains.draft))
    return rows, alias(chains.initial), lane_streams(checked_stream(state), min(LANES, runs))


@compiled
def _outcome(rows: Rows, state: int, u: float) -> int:
    """The outcome that a uniform draws, by sums and shifts alone: a coin that decides a branch is guessed wrongly."""
    begin = rows.begin[np.uint64(state)]
    scaled = u * (rows.begin[np.uint64(state + 1)] - begin)
    whole = int(scaled)
    column = rows.columns[np.uint64(begin + whole)]
    kept = (int((scaled - whole) * (1.0 / rows.unit)) - (column >> (2 * rows.bits))) >> 63
    return (column >> (rows.bits & kept)) & ((1 << rows.bits) - 1)


@compiled
def _uniforms(streams: Words, u: Floats) -> None:
    """The next uniform of every lane, :func:`simulations.draws.streams.uniform` written so that it runs on vectors."""
    first, second, third, fourth = streams[0], streams[1], streams[2], streams[3]
    for lane in range(u.size):
        a, b, c, d = first[lane], second[lane], third[lane], fourth[lane]
        total = a + d
        word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
        c ^= a
        d ^= b
        first[lane], second[lane] = a ^ d, b ^ c
        third[lane] = c ^ (b << np.uint64(17))
        fourth[lane] = (d << np.uint64(45)) | (d >> np.uint64(19))
        u[lane] = float(word >> np.uint64(11)) * 2.0**-53


@compiled
def _token_calls(
    rows: Rows, keep: Floats, other: Tokens, streams: Words, length: int, texts: int, counts: Counts, by_calls: Counts
) -> None:
    lanes, k = counts.shape[0], counts.shape[1] - 1
    last, depth, u = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64), np.zeros(lanes)
    before = np.zeros(lanes, np.int64)
    step = keep.size if rows.begin.size > keep.size + 1 else 0
    for first in range(0, texts, lanes):
        active = min(lanes, texts - first)
        _uniforms(streams, u)
        for lane in range(active):
            last[lane] = drawn(keep, other, u[lane])
        for n in range(length):
            at_end = int(n == length - 1)
            _uniforms(streams, u)  # apart from the loads, so that many of these are under way at once
            for lane in range(active):
                outcome = _outcome(rows, n * step + last[lane], u[lane])
                last[lane] = outcome >> 1
                accepted = depth[lane]
                ended = (1 - (outcome & 1)) | int(accepted == k) | at_end
                counts[lane, np.uint64(accepted)] += ended
                depth[lane] = (accepted + 1) * (1 - ended)
        for lane in range(active):
            calls = counts[lane].sum()
            by_calls[calls - before[lane]] += 1
            before[lane] = calls


@compiled
def _horizon_rejections(
    rows: Rows, keep: Floats, other: Tokens, streams: Words, length: int, texts: int, positions: Counts, totals: Counts
) -> None:
    lanes = streams.shape[1]
    last, rejected, u = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64), np.zeros(lanes)
    step = keep.size if rows.begin.size > keep.size + 1 else 0
    for first in range(0, texts, lanes):
        active = min(lanes, texts - first)
        rejected[:] = 0
        _uniforms(streams, u)
        for lane in range(active):
            last[lane] = drawn(keep, other, u[lane])
        for n in range(length):
            _uniforms(streams, u)
            for lane in range(active):
                outcome = _outcome(rows, n * step + last[lane], u[lane])
                last[lane] = outcome >> 1
                rejected[lane] += 1 - (outcome & 1)
                positions[n] += 1 - (outcome & 1)
        for lane in range(active):
            totals[rejected[lane]] += 1
