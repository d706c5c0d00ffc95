"""Block verification (sun2024block) on Markov chains.

The recovered token's law norm (w p - q)+ and its mass depend on the running ratio w, which takes any value. In the
order of falling p/q the tokens with w p > q come first, for every w: prefix sums of p and q in this order give mass and
draw by binary search.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simulations.draws import Alias, Counts, Floats, Tokens, Words, alias, alias_draw, token_of, uniform
from simulations.models.pairs import CallCounts, Chains, checked_chains, checked_stream, whole_number
from spectheory.kernels.compiling import compiled


class BlockTables(NamedTuple):
    """What every state needs, laid out so that a draw and its ratio are one line of memory.

    - ``keep``, ``other``, ``[S, V, V]``: alias table of p.
    - ``order``, ``[S, V, V]``: tokens by falling p/q, the lowest index first where equal.
    - ``least``, ``[S, V, V]``: q/p in this order: from which running ratio on a token has w p > q.
    - ``sums``, ``[S, V, V + 1, 2]``: sums of p and of q over the first 0, 1, ..., V tokens of this order.
    """

    drafts: Floats
    keep: Floats
    other: Tokens
    order: Tokens
    least: Floats
    sums: Floats


def ratios(target: Floats, draft: Floats) -> Floats:
    """p/q, with 0/0 as 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(target > 0, target / draft, 0.0)


def block_tables(chains: Chains) -> BlockTables:
    """Sort every state by p/q and add up."""
    p, q = chains.target, chains.draft
    ratio, table = ratios(p, q), alias(q)
    drafts = np.stack([table.keep, ratio, table.other, np.take_along_axis(ratio, table.other, axis=-1)], axis=-1)
    order = np.argsort(-ratio, axis=-1, kind="stable")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        least = np.take_along_axis(np.where(p > 0, q / p, np.inf), order, axis=-1)
    sums = np.zeros((*p.shape[:-1], p.shape[-1] + 1, 2))
    for side, pmf in enumerate((p, q)):
        np.cumsum(np.take_along_axis(pmf, order, axis=-1), axis=-1, out=sums[..., 1:, side])
    return BlockTables(drafts, *alias(p), order.astype(np.int32), least, sums)


def block_calls(target: Any, draft: Any, initial: Any, *, length: int, k: int, texts: int, state: Words) -> CallCounts:
    """Calls of block verification, over whole texts.

    A call drafts k tokens, with m tokens of the text to go at most m - 1. Depth i < k is marked with probability
    S/(S + 1 - w), S = sum (w p - q)+ after the draft's first i tokens, w = min(1, w' p/q) the running ratio; depth k
    with probability w. The deepest marked depth is accepted.

    Returns CallCounts: calls by accepted drafts, texts by calls.

    Examples
    --------
    >>> from simulations.draws import words
    >>> same = np.full((2, 2), 0.5)
    >>> block_calls(same, same, [1, 0], length=7, k=2, texts=100, state=words(1)).accepted
    array([100,   0, 200])
    """
    drafts, runs = whole_number("k", k), whole_number("texts", texts)
    chains = checked_chains(target, draft, initial, length=whole_number("length", length))
    counts = CallCounts(np.zeros(drafts + 1, np.int64), np.zeros(length + 1, np.int64))
    tables, start = block_tables(chains), alias(chains.initial)
    _block_calls(tables, start, checked_stream(state), length, runs, counts.accepted, counts.texts)
    return counts


@compiled
def _leading(least: Floats, w: float) -> int:
    """How many tokens have w p > q."""
    low, high = 0, least.size
    while low < high:
        middle = (low + high) // 2
        if least[middle] < w:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _recovered(order: Tokens, sums: Floats, w: float, count: int, share: float) -> int:
    """The first token of the `count` leading ones at which the sums of w p - q pass `share`."""
    low, high = 1, max(count, 1)
    while low < high:
        middle = (low + high) // 2
        if w * sums[middle, 0] - sums[middle, 1] > share:
            high = middle
        else:
            low = middle + 1
    return int(order[low - 1])


@compiled
def _drafted(table: Floats, w: float, u: float) -> tuple[int, float]:
    """A token of the draft and the running ratio after it."""
    scaled = u * table.shape[0]
    column = int(scaled)
    keep, ratio, other, others = table[column]
    kept = scaled - column < keep
    return column if kept else int(other), min(1.0, w * (ratio if kept else others))


@compiled
def _block_call(t: BlockTables, n: int, k: int, path: Tokens, running: Floats, state: Words) -> int:
    """Run a call after ``path[0]``; afterwards the path holds the accepted drafts and the last token."""
    steps = t.keep.shape[0]
    for i in range(k):
        at = n + i if steps > 1 else 0
        path[i + 1], running[i + 1] = _drafted(t.drafts[at, path[i]], running[i], uniform(state))
    for depth in range(k, -1, -1):
        at = n + depth if steps > 1 else 0
        last, w = path[depth], running[depth]
        if depth == k:
            if k == 0 or uniform(state) < w:
                path[k + 1] = alias_draw(t.keep[at, last], t.other[at, last], uniform(state))
                return k
            continue
        count = _leading(t.least[at, last], w)
        excess = max(w * t.sums[at, last, count, 0] - t.sums[at, last, count, 1], 0.0)
        if depth == 0 or uniform(state) * (excess + 1.0 - w) < excess:
            share = uniform(state) * excess
            path[depth + 1] = _recovered(t.order[at, last], t.sums[at, last], w, count, share)
            return depth
    return 0


@compiled
def _block_calls(
    tables: BlockTables, start: Alias, state: Words, length: int, texts: int, counts: Counts, by_calls: Counts
) -> None:
    k = counts.size - 1
    path, running = np.empty(k + 2, np.int32), np.ones(k + 1)
    for _ in range(texts):
        last, n, calls = token_of(start, state), 0, 0
        while n < length:
            path[0] = last
            accepted = _block_call(tables, n, min(k, length - n - 1), path, running, state)
            counts[accepted] += 1
            calls += 1
            last = path[accepted + 1]
            n += accepted + 1
        by_calls[calls] += 1
