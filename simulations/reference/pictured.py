"""One call of a draft tree with all that a picture needs: every drafted node, and what was decided of it.

The call is the one that :data:`~simulations.reference.any_rule.ALGORITHMS` makes from the same stream. Nodes off its
path are drafted too, from a stream of their own: they are thrown away and change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from simulations.draws.streams import Stream, words
from simulations.reference.any_rule import DraftTree
from simulations.reference.candidates import iid_tries
from simulations.reference.drawing import from_table
from simulations.reference.markov import Pair
from simulations.reference.races import arrivals, finish
from simulations.reference.ranked_trees import Path

OFF_PATH = 1
"""Child number of the stream of nodes off the path."""


class Node(NamedTuple):
    """A drafted node: its path of ranks, its token, target and draft probability, and what was decided of it.

    `decision` is ``accepted``, ``rejected`` (in a race ``not output``) or ``not tried``; `chance` and `coin` are those
    of a rejection test.
    """

    path: Path
    token: int
    p: float
    q: float
    decision: str = "not tried"
    chance: float | None = None
    coin: float | None = None


class Race(NamedTuple):
    """Arrival times of every token at one position, for draft and target, the candidates, and the output."""

    draft: list[float]
    target: list[float]
    candidates: list[int]
    output: int


class Pictured(NamedTuple):
    """The nodes of the tree, the output tokens, and the races of the positions on the path."""

    nodes: list[Node]
    output: list[int]
    races: list[Race]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: a token that never arrives has no time."""
        return {
            "nodes": [node._asdict() for node in self.nodes],
            "output": self.output,
            "races": [
                {**race._asdict(), "draft": _finite(race.draft), "target": _finite(race.target)} for race in self.races
            ],
        }


def rejection_pictured(tree: DraftTree, pair: Pair, last: int, seed: int) -> Pictured:
    """One call of recursive rejection with i.i.d. candidates, from position 0 on."""
    stream, aside = Stream(words(seed)), Stream(words(seed, OFF_PATH))
    nodes: dict[Path, Node] = {}
    path, output = Path(), [last]
    while True:
        p, q = pair.p(len(path), output[-1]), pair.q(len(path), output[-1])
        rest, accepted = p, None
        for rank, tried in enumerate(iid_tries(p, q, tree.candidates.get(path, 0), stream), start=1):
            said = "accepted" if tried.accepted else "rejected"
            shares = float(p[tried.token]), float(q[tried.token])
            nodes[*path, rank] = Node((*path, rank), tried.token, *shares, said, tried.chance, tried.coin)
            accepted = rank if tried.accepted else None
            rest = tried.residual
        if accepted is None:
            output.append(from_table(rest, stream))
            break
        path = (*path, accepted)
        output.append(nodes[path].token)
    for node in _missing(tree, nodes):
        q = pair.q(len(node) - 1, _before(nodes, node, last))
        nodes[node] = _untried(pair, nodes, node, last, from_table(q, aside))
    return Pictured([nodes[node] for node in sorted(nodes)], output[1:], [])


def race_pictured(tree: DraftTree, pair: Pair, last: int, seed: int) -> Pictured:
    """One call of the race: children are the draft's first arrivals, the output is the target's first."""
    stream, aside = Stream(words(seed)), Stream(words(seed, OFF_PATH))
    nodes: dict[Path, Node] = {}
    path, output, races = Path(), [last], []
    inside = True
    while inside:
        p, q = pair.p(len(path), output[-1]), pair.q(len(path), output[-1])
        clocks = [stream.exponential() for _ in p]
        first = finish(clocks, p)[0]
        children = finish(clocks, q)[: tree.candidates.get(path, 0)]
        for rank, token in enumerate(children, start=1):
            said = "accepted" if token == first else "not output"
            nodes[*path, rank] = Node((*path, rank), token, float(p[token]), float(q[token]), said)
        races.append(Race(arrivals(clocks, q), arrivals(clocks, p), children, first))
        output.append(first)
        inside = first in children
        path = (*path, children.index(first) + 1) if inside else path
    for node in _missing(tree, nodes):
        if node not in nodes:
            q = pair.q(len(node) - 1, _before(nodes, node, last))
            order = finish([aside.exponential() for _ in q], q)
            for rank in range(1, tree.candidates[node[:-1]] + 1):
                nodes[*node[:-1], rank] = _untried(pair, nodes, (*node[:-1], rank), last, order[rank - 1])
    return Pictured([nodes[node] for node in sorted(nodes)], output[1:], races)


def _finite(times: list[float]) -> list[float | None]:
    return [time if time < math.inf else None for time in times]


def _missing(tree: DraftTree, nodes: dict[Path, Node]) -> Iterator[Path]:
    """Nodes that no decision reached, parents first."""
    return (node for node in sorted(tree.nodes, key=lambda node: (len(node), node)) if node not in nodes)


def _before(nodes: dict[Path, Node], node: Path, last: int) -> int:
    return nodes[node[:-1]].token if len(node) > 1 else last


def _untried(pair: Pair, nodes: dict[Path, Node], node: Path, last: int, token: int) -> Node:
    before, n = _before(nodes, node, last), len(node) - 1
    return Node(node, token, float(pair.p(n, before)[token]), float(pair.q(n, before)[token]))
