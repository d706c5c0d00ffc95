"""Whole texts decoded by any rule and any draft tree, call by call, on Markov chains.

What a call drafts behind the token it ends with is thrown away, so it is not drawn; block verification judges all
drafts of a call together and draws them. Nothing here uses a closed form of :mod:`spectheory`; agreement with it is
evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

import numpy as np

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream
from simulations.reference.candidates import Judged, distinct_rejection, iid_rejection
from simulations.reference.decoding import block_call, from_table
from simulations.reference.markov import Call, Pair
from simulations.reference.races import PoissonRace, dense_race
from simulations.reference.ranked_trees import Path, walk
from spectheory.errors import SettingError

At = Callable[[Floats, Floats, int, Stream], Judged]
"""What happens at one position: target pmf, draft pmf, number of candidates, stream; the output and its rank."""


def token(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """Token verification (leviathan2023, chen2023): recursive rejection of at most one candidate.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> token(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 1, Stream(words(1)))
    Judged(rank=None, token=1)
    """
    return iid_rejection(p, q, min(candidates, 1), stream)


def race(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """The exponential race with a clock for every token (kobus2025): the rank is the place in the draft's race."""
    output, rank = dense_race(p, q, stream)
    return Judged(rank, output)


def poisson(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """The Poisson race with replacement (li2018); duplicate candidates are not merged."""
    output, rank = PoissonRace(p, q, stream).run()
    return Judged(rank, output)


def topk(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """The draft's most probable tokens against a sampled output; ties: the lowest index first.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> topk(np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.25, 0.25]), 2, Stream(words(1)))
    Judged(rank=2, token=1)
    """
    output = from_table(p, stream)
    return Judged(1 + np.argsort(-q, kind="stable").tolist().index(output), output)


def argmax(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """The draft's most probable token against a sampled output; ties: the lowest index."""
    return _matched(int(np.argmax(q)), from_table(p, stream))


def greedy(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """The draft's most probable token against the target's, which is the output; nothing is drawn."""
    return _matched(int(np.argmax(q)), int(np.argmax(p)))


def independent(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """A sampled draft against a sampled output, drawn apart."""
    drafted = from_table(q, stream)
    return _matched(drafted, from_table(p, stream))


def _matched(drafted: int, output: int) -> Judged:
    return Judged(1 if drafted == output else None, output)


RANKED: dict[str, At] = {
    "race": race,
    "poisson": poisson,
    "recursive": iid_rejection,
    "recursive-distinct": distinct_rejection,
    "topk": topk,
}
"""Rules that take any tree."""

SINGLE: dict[str, At] = {"token": token, "independent": independent, "argmax": argmax, "greedy": greedy}
"""Rules with one candidate at a position."""

CONSECUTIVE = ("recursive", "recursive-distinct")
"""Rules that try candidates in order: what stands at rank r was tried after ranks 1 to r - 1."""

RULES = (*SINGLE, "block", *RANKED)
"""All rules by name."""


class DraftTree:
    """The nodes that a call drafts.

    Attributes
    ----------
    nodes : set of paths
        Each the ranks from the root.

    Examples
    --------
    >>> tree = DraftTree([(1,), (2,), (1, 1)])
    >>> tree.depth, tree.candidates[()], tree.cut(1).depth
    (2, 2, 1)
    """

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

    def check(self, rule: str) -> None:
        """Check that a rule takes it.

        Raises
        ------
        SettingError
            If a node has no parent, or the rule is unknown, takes one candidate, or needs the ranks that are left out.
        """
        if rule not in RULES:
            raise SettingError(f"rule is {rule!r}", limit=f"known are {', '.join(RULES)}", remedy="name one of them")
        if not self.nodes or any(not n or (n[:-1] and n[:-1] not in self.nodes) or min(n) < 1 for n in self.nodes):
            raise SettingError("the paths are no tree", limit="every node needs its parent", remedy="give all paths")
        most = max(max(node) for node in self.nodes)
        if rule not in RANKED and most > 1:
            raise SettingError(f"a rank is {most}", limit=f"{rule} has one candidate", remedy="draft a chain")
        if rule in CONSECUTIVE and any(node[-1] > self.candidates[node[:-1]] for node in self.nodes):
            raise SettingError("a rank is left out", limit=f"{rule} tries children 1..m", remedy="draft all of them")


def ranked_call(at: At, tree: DraftTree, pair: Pair, n: int, last: int, stream: Stream) -> Call:
    """One call from position n on: it goes down the tree as long as the output's rank is that of a drafted child.

    The output of the position where it leaves the tree is the recovered token; below a leaf nothing is drafted, and
    what the position outputs is the bonus token. Recursive rejection tries the children that are drafted; whether it
    goes on beyond them changes neither the output's law nor that of the drafted ranks.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> same = Pair(np.full((2, 2), 0.5), np.full((2, 2), 0.5))
    >>> ranked_call(race, DraftTree([(1,), (1, 1)]), same, 0, 0, Stream(words(1))).accepted
    2
    """
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


def decoded_text(rule: str, tree: DraftTree, pair: Pair, start: int, length: int, stream: Stream) -> Iterator[Call]:
    """The calls that decode `length` tokens after the token `start`; with m tokens to go they draft m - 1 deep at most.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> same, chain = Pair(np.full((2, 2), 0.5), np.full((2, 2), 0.5)), DraftTree([(1,), (1, 1)])
    >>> [call.accepted for call in decoded_text("block", chain, same, 0, 7, Stream(words(1)))]
    [2, 2, 0]
    """
    at = RANKED.get(rule) or SINGLE.get(rule)
    n, last = 0, start
    while n < length:
        depth = min(tree.depth, length - n - 1)
        if at is None:
            call = block_call(pair, n, last, depth, stream)
        else:
            call = ranked_call(at, tree.cut(depth), pair, n, last, stream)
        yield call
        n, last = n + len(call.tokens), call.tokens[-1]
