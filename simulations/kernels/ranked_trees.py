"""ERSD over a draft tree, compiled: a call reads ranks down the tree until one leads out of it (S1, S3).

One draft, a chain, siblings and any tree are shapes of one walk. Ranks are i.i.d. from a given law, or come from dense
races between pmfs that are drawn anew at every position.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from simulations.draws import Alias, Counts, Floats, Tokens, Words, alias, token_of, uniform
from simulations.models.pairs import checked_stream, paired_rows, whole_number
from spectheory.drafting import Shape, Tree
from spectheory.drafting.optimal import validate_rank_pmf
from spectheory.errors import SettingError, ShapeError
from spectheory.kernels.compiling import compiled


class TreeCounts(NamedTuple):
    """Where calls ended; counts of separate runs add up entry by entry.

    - ``accepted``, ``[depth + 1]``: calls by their number of accepted drafts; a call outputs one token more.
    - ``exits``, ``[nodes + 1, A + 1]``: calls by the node they left, the root first, and the rank they left it by, R >
      A last.
    """

    accepted: Counts
    exits: Counts


def ranked_tree(shape: Shape, rank_pmf: Any, calls: int, *, state: Words) -> TreeCounts:
    """Count accepted depths and exits of a draft tree whose ranks are i.i.d. from a given law (S1, S3; ``kobus2025``).

    - ``rank_pmf``, ``[A]``: P(R = r), r = 1..A, of one position; what is missing to 1 is R > A.

    Examples
    --------
    >>> from simulations.draws import words
    >>> from spectheory.drafting import Chain
    >>> counts = ranked_tree(Chain(2), [1.0], 10, state=words(1))
    >>> counts.accepted.tolist(), counts.exits.tolist()
    ([0, 0, 10], [[0, 0], [0, 0], [10, 0]])
    """
    runs = whole_number("calls", calls)
    law = np.asarray(validate_rank_pmf(np.asarray(rank_pmf, dtype=np.float64)))
    if law.ndim != 1:
        raise ShapeError(f"the rank pmf has shape {law.shape}", limit="needs [A]", remedy="simulate row by row")
    tree, children, exits = _prepared(shape, law.size)
    table = alias(np.append(law, max(1.0 - law.sum(), 0.0)))
    _walks(table, children, runs, exits, checked_stream(state))
    return _counts(tree, exits)


def raced_tree(
    shape: Shape, target: Any, draft: Any, calls: int, *, state: Words, max_rank: int | None = None
) -> TreeCounts:
    r"""Count accepted depths and exits of ERSD, each position with one of n pairs of pmfs (R2, S1; ``kobus2025``).

    At each position the output is :math:`x = \arg\min_y E_y/p_y`, its rank R its place in the order of
    :math:`E_y/q_y`; tokens the draft cannot draw have no rank and count as R > A.

    - ``shape``: what is drafted.
    - ``calls``: independent calls, at least 1.

    Examples
    --------
    >>> from simulations.draws import words
    >>> from spectheory.drafting import Chain
    >>> raced_tree(Chain(2), [0.5, 0.5], [0.5, 0.5], 10, state=words(1)).accepted.tolist()
    [0, 0, 10]
    """
    runs = whole_number("calls", calls)
    p, q = paired_rows(target, draft)
    most = shape.max_rank if max_rank is None else whole_number("max_rank", max_rank)
    tree, children, exits = _prepared(shape, most)
    _race_walks(p, q, children, runs, exits, checked_stream(state))
    return _counts(tree, exits)


def _prepared(shape: Shape, ranks: int) -> tuple[Tree, Tokens, Counts]:
    """The tree, its table of children, the root in row 0 and -1 where a rank leads out, and counts at zero."""
    tree = shape.tree()
    if tree.max_rank > ranks:
        raise SettingError(
            f"the shape has rank {tree.max_rank}", limit=f"ranks stop at {ranks}", remedy="give more ranks"
        )
    children = np.full((tree.nodes + 1, ranks + 1), -1, dtype=np.int32)
    children[tree.parents + 1, tree.ranks - 1] = np.arange(1, tree.nodes + 1)
    return tree, children, np.zeros(children.shape, dtype=np.int64)


def _counts(tree: Tree, exits: Counts) -> TreeCounts:
    accepted = np.zeros(tree.depth + 1, dtype=np.int64)
    np.add.at(accepted, np.append(0, tree.depths), exits.sum(axis=1))
    return TreeCounts(accepted, exits)


@compiled
def _walks(ranks: Alias, children: Tokens, calls: int, exits: Counts, state: Words) -> None:
    for _ in range(calls):
        node = 0
        while True:
            letter = token_of(ranks, state)
            following = children[node, letter]
            if following < 0:
                break
            node = following
        exits[node, letter] += 1


@compiled
def _race_walks(p: Floats, q: Floats, children: Tokens, calls: int, exits: Counts, state: Words) -> None:
    uniforms, beyond = np.empty(p.shape[1]), children.shape[1] - 1
    for _ in range(calls):
        node = 0
        while True:
            row = int(uniform(state) * p.shape[0])
            letter = min(_places_before(p[row], q[row], uniforms, beyond, state), beyond)
            following = children[node, letter]
            if following < 0:
                break
            node = following
        exits[node, letter] += 1


@compiled
def _places_before(p: Floats, q: Floats, uniforms: Floats, beyond: int, state: Words) -> int:
    """Tokens before the target's winner in the draft's race (clocks compared crosswise); `beyond` if it has no rank."""
    first, x, clock_x = math.inf, 0, 0.0
    for y in range(p.size):
        u = uniform(state)
        uniforms[y] = u
        if u < first * p[y]:
            clock = -math.log1p(-u)
            if clock < first * p[y]:
                first, x, clock_x = clock / p[y], y, clock
    if q[x] == 0.0:
        return beyond
    before = 0
    for y in range(p.size):
        if uniforms[y] * q[x] < clock_x * q[y] and y != x:
            before += -math.log1p(-uniforms[y]) * q[x] < clock_x * q[y]
    return before
