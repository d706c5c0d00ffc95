"""Whole texts decoded by any rule and any draft tree, call by call, on Markov chains.

What a call drafts after the token it ends with is thrown away, so it is not drawn; block verification judges all
drafts of a call together and draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream
from simulations.reference.candidates import Judged, distinct_rejection, iid_rejection
from simulations.reference.decoding import block_call
from simulations.reference.markov import Call, Pair, decoded
from simulations.reference.races import PoissonRace, dense_race
from simulations.reference.ranked_trees import Path, walk
from simulations.reference.single import argmax, greedy, independent, token, topk


class DraftTree:
    """The nodes that a call drafts, each the path of ranks from the root."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.nodes = {tuple(path) for path in paths}
        self.depth = max(map(len, self.nodes), default=0)
        self.candidates: dict[Path, int] = {}
        for node in self.nodes:
            self.candidates[node[:-1]] = self.candidates.get(node[:-1], 0) + 1

    @cached_property
    def _cuts(self) -> list[DraftTree]:
        return [DraftTree(n for n in self.nodes if len(n) <= depth) for depth in range(self.depth)]

    def cut(self, depth: int) -> DraftTree:
        """The tree down to a depth."""
        return self._cuts[depth] if depth < self.depth else self


At = Callable[[Floats, Floats, int, Stream], Judged]
"""What happens at one position: target pmf, draft pmf, number of candidates, stream; the output and its rank."""

TreeCall = Callable[[DraftTree, Pair, int, int, Stream], Call]
"""One call: the tree it drafts, pair, position of the first draft, the token before it, stream."""


def ranked_call(at: At, tree: DraftTree, pair: Pair, n: int, last: int, stream: Stream) -> Call:
    """One call from position n on: it goes down the tree as long as the output's rank is that of a drafted child."""
    tokens = [last]
    ranks: list[int] = []

    def next_rank() -> int:
        position = n + len(ranks)
        candidates = tree.candidates.get(tuple(ranks), 0)
        found = at(pair.p(position, tokens[-1]), pair.q(position, tokens[-1]), candidates, stream)
        tokens.append(found.token)
        ranks.append(found.rank or 0)
        return ranks[-1]

    walk(tree.nodes, next_rank)
    return Call(tuple(tokens[1:]))


class Algorithm(NamedTuple):
    """A rule's algorithm; whether it takes several candidates, and tries them in the order of their ranks."""

    call: TreeCall
    several: bool = False
    consecutive: bool = False


ALGORITHMS: dict[str, Algorithm] = {
    "token": Algorithm(partial(ranked_call, token)),
    "independent": Algorithm(partial(ranked_call, independent)),
    "argmax": Algorithm(partial(ranked_call, argmax)),
    "greedy": Algorithm(partial(ranked_call, greedy)),
    "block": Algorithm(lambda tree, pair, n, last, stream: block_call(pair, n, last, tree.depth, stream)),
    "race": Algorithm(partial(ranked_call, lambda p, q, _, stream: dense_race(p, q, stream)), several=True),
    "poisson": Algorithm(partial(ranked_call, lambda p, q, _, stream: PoissonRace(p, q, stream).run()), several=True),
    "recursive": Algorithm(partial(ranked_call, iid_rejection), several=True, consecutive=True),
    "recursive-distinct": Algorithm(partial(ranked_call, distinct_rejection), several=True, consecutive=True),
    "topk": Algorithm(partial(ranked_call, topk), several=True),
}
"""The algorithm of each rule as written: the evidence for a rule's law. A new rule is one line here."""


def decoded_text(rule: str, tree: DraftTree, pair: Pair, start: int, length: int, stream: Stream) -> Iterator[Call]:
    """The calls that decode `length` tokens after `start`; with m tokens to go they draft at most m - 1 deep."""
    run = ALGORITHMS[rule].call

    def call(pair: Pair, n: int, last: int, depth: int, stream: Stream) -> Call:
        return run(tree.cut(depth), pair, n, last, stream)

    return decoded(call, pair, start, length, tree.depth, stream)
