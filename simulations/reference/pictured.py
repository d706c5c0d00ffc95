"""One call of a draft tree with all that a picture needs: every drafted node, and what was decided of it.

The algorithms of :mod:`simulations.reference.positions` make the call; what they draw is noted. Nodes off its path are
drafted too, from a stream of their own: they are thrown away and change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from simulations.draws import Floats, Stream, words
from simulations.reference.decoding import DraftTree, Pair, Path
from simulations.reference.positions import arrivals, finish, iid_rejection, race

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


class Noted(Stream):
    """A stream that notes the clocks, tokens and coins of a position."""

    def at_next_position(self) -> Noted:
        """Forget what was noted."""
        self.clocks: list[float] = []
        self.tokens: list[int] = []
        self.coins: list[tuple[float, float]] = []
        return self

    def exponential(self) -> float:
        """An Exp(1) time."""
        self.clocks.append(super().exponential())
        return self.clocks[-1]

    def token(self, weights: Floats) -> int:
        """One token by the alias table of weights."""
        self.tokens.append(super().token(weights))
        return self.tokens[-1]

    def coin(self, chance: float) -> bool:
        """Whether a coin of that probability shows heads; its chance and its uniform are noted."""
        self.coins.append((min(float(chance), 1.0), self.uniform()))
        return self.coins[-1][1] < chance


def rejection_pictured(tree: DraftTree, pair: Pair, last: int, seed: int) -> Pictured:
    """One call of recursive rejection with i.i.d. candidates, from position 0 on."""
    draws, aside = Noted(words(seed)), Stream(words(seed, OFF_PATH))
    nodes: dict[Path, Node] = {}
    path, output = Path(), [last]
    rank: int | None = 0
    while rank is not None:
        p, q = pair.p(len(path), output[-1]), pair.q(len(path), output[-1])
        rank, token = iid_rejection(p, q, tree.candidates.get(path, 0), draws.at_next_position())
        for at, (tried, (chance, coin)) in enumerate(zip(draws.tokens, draws.coins, strict=False), start=1):
            decision = "accepted" if at == rank else "rejected"
            nodes[*path, at] = Node((*path, at), tried, float(p[tried]), float(q[tried]), decision, chance, coin)
        path = (*path, rank or 0)
        output.append(token)
    for node in _missing(tree, nodes):
        q = pair.q(len(node) - 1, _before(nodes, node, last))
        nodes[node] = _untried(pair, nodes, node, last, aside.token(q))
    return Pictured([nodes[node] for node in sorted(nodes)], output[1:], [])


def race_pictured(tree: DraftTree, pair: Pair, last: int, seed: int) -> Pictured:
    """One call of the race: children are the draft's first arrivals, the output is the target's first."""
    draws, aside = Noted(words(seed)), Stream(words(seed, OFF_PATH))
    nodes: dict[Path, Node] = {}
    path, output, races = Path(), [last], []
    inside = True
    while inside:
        p, q = pair.p(len(path), output[-1]), pair.q(len(path), output[-1])
        first = race(p, q, 0, draws.at_next_position()).token
        children = finish(draws.clocks, q)[: tree.candidates.get(path, 0)]
        for rank, token in enumerate(children, start=1):
            decision = "accepted" if token == first else "not output"
            nodes[*path, rank] = Node((*path, rank), token, float(p[token]), float(q[token]), decision)
        races.append(Race(arrivals(draws.clocks, q), arrivals(draws.clocks, p), children, first))
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
