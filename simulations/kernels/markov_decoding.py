"""Token verification on Markov chains and on automata of contexts, one draw per token.

A draft x ~ q is accepted with probability min(1, p/q), else a token is recovered from norm (p - q)+. So token x comes
out accepted with mass min(p, q) and recovered with mass (p - q)+, p in all. Both depend on the pmfs of the position
alone: an alias table per state draws output and mark at once, and a draw whose mark is not read is a bonus token. A
text is a chain of dependent loads; many texts in turn hide the wait for memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.draws import Alias, Counts, Floats, Tokens, Words, alias, alias_draw, next_word, words
from simulations.models.pairs import (
    CallCounts,
    RejectionCounts,
    checked_chains,
    checked_stream,
    paired_rows,
    whole_number,
)
from spectheory.distributions import validate_pmf
from spectheory.errors import ShapeError
from spectheory.kernels.compiling import compiled

# The table of each state

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """The alias tables of all states, one after the other; columns without mass are left out.

    A column is one word: from the top the probability to keep it, in multiples of `unit`, then the outcome it keeps and
    the outcome it gives else, `bits` bits each. With 512 tokens the law is off by less than 2^-43, and so is the chance
    of a draw that a table in floats would decide otherwise.

    - ``begin``, ``[states + 1]``: where the table of each state begins.
    - ``bits``: bits of an outcome; 2x is token x recovered, 2x + 1 is token x accepted.
    - ``unit``: ``2**(2 * bits - 63)``, or 2^-53 if that is larger.
    """

    columns: Ints
    begin: Ints
    bits: int
    unit: float


def acceptance_law(target: Floats, draft: Floats) -> Floats:
    """Joint mass ``[..., 2V]`` of output and mark: 2x is token x recovered, 2x + 1 is token x accepted."""
    mass = np.stack([np.maximum(target - draft, 0.0), np.minimum(target, draft)], axis=-1)
    return mass.reshape(*target.shape[:-1], -1)


def acceptance_rows(law: Floats) -> Rows:
    """The tables of the laws ``[..., 2V]`` of every state."""
    bits = max(1, (law.shape[-1] - 1).bit_length())
    unit = 2.0 ** -min(53, 63 - 2 * bits)
    columns, begin = [], [0]
    for mass in law.reshape(-1, law.shape[-1]):
        support = np.flatnonzero(mass)
        table = alias(mass[support])
        kept = np.minimum(np.rint(table.keep / unit), 1 / unit - 1).astype(np.int64)
        columns.append((kept << (2 * bits)) | (support << bits) | support[table.other])
        begin.append(begin[-1] + support.size)
    return Rows(np.concatenate(columns), np.array(begin), bits, unit)


# Markov chains

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
    Parameters and errors are those of :func:`token_calls`, whose texts these are.

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
    """The next uniform of every lane, :func:`simulations.draws.uniform` written so that it runs on vectors."""
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
            last[lane] = alias_draw(keep, other, u[lane])
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
            last[lane] = alias_draw(keep, other, u[lane])
        for n in range(length):
            _uniforms(streams, u)
            for lane in range(active):
                outcome = _outcome(rows, n * step + last[lane], u[lane])
                last[lane] = outcome >> 1
                rejected[lane] += 1 - (outcome & 1)
                positions[n] += 1 - (outcome & 1)
        for lane in range(active):
            totals[rejected[lane]] += 1


# Automata of contexts, as n-gram models have them
#
# Calls depend on where texts go and what is accepted, not on the tokens' names: tables whose outcomes are the following
# state in place of the token serve the same loop. A Markov chain is the automaton in which token y leads to state y.


class Tables(NamedTuple):
    """Tables of every state, whose outcomes are twice the next state, plus one if accepted; and of the first state."""

    rows: Rows
    start: Alias


def tabled_calls(tables: Tables, *, length: int, k: int, texts: int, state: Words) -> CallCounts:
    """Calls of token verification on an automaton, over whole texts, as :func:`token_calls` counts them.

    - ``tables``: of :func:`ngram_tables`, which serve many runs over one pair.

    Returns CallCounts: calls by accepted drafts, texts by calls.

    Examples
    --------
    >>> from simulations.draws import words
    >>> same, stay = np.full((2, 3), 1 / 3), [[0, 0, 0], [1, 1, 1]]
    >>> tables = ngram_tables(same, same, stay, [1, 0])
    >>> tabled_calls(tables, length=7, k=2, texts=100, state=words(1)).accepted
    array([100,   0, 200])
    """
    drafts, size, runs = (whole_number(*each) for each in (("k", k), ("length", length), ("texts", texts)))
    lanes = lane_streams(checked_stream(state), min(LANES, runs))
    return calls_of_rows(*tables, lanes, length=size, k=drafts, texts=runs)


def ngram_tables(target: Any, draft: Any, following: Any, initial: Any) -> Tables:
    """Check an automaton and make its tables.

    - ``following``, ``[S, V]``: the state after each state and token.

    A law is off by less than max(S, V)^2/2^59 (or 2^-53 if that is larger), and so is the chance of a draw that a table
    in floats would decide otherwise.
    """
    p, q = paired_rows(target, draft)
    start = np.ascontiguousarray(validate_pmf(np.asarray(initial, dtype=np.float64), "initial"))
    after = np.asarray(following)
    if start.shape != p.shape[:1]:
        raise ShapeError(
            f"initial has shape {start.shape}", limit=f"the automaton has {len(p)} states", remedy="give one pmf [S]"
        )
    if after.shape != p.shape or after.dtype.kind not in "iu" or after.min() < 0 or after.max() >= len(p):
        raise ShapeError(
            f"following is a {after.dtype} array of shape {after.shape}",
            limit=f"must be {p.shape} of states 0 to {len(p) - 1}",
            remedy="give the state after each state and token",
        )
    return Tables(_relabelled(acceptance_rows(acceptance_law(p, q)), after.astype(np.int64)), alias(start))


def _relabelled(rows: Rows, following: Any) -> Rows:
    """The tables with the state that follows in every token's place; outcomes may need more bits, and get them."""
    state = np.repeat(np.arange(len(following)), np.diff(rows.begin))
    outcomes = (1 << rows.bits) - 1
    bits = max(rows.bits, (2 * len(following) - 1).bit_length())
    dropped = max(0, 2 * bits - 63 - int(np.log2(rows.unit)))
    columns = rows.columns >> 2 * rows.bits >> dropped
    for outcome in (rows.columns >> rows.bits & outcomes, rows.columns & outcomes):
        columns = columns << bits | 2 * following[state, outcome >> 1] + (outcome & 1)
    return Rows(columns, rows.begin, bits, rows.unit * 2.0**dropped)
