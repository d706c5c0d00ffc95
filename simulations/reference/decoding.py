"""Whole texts decoded call by call on Markov chains, by any rule and any draft tree; and batches of drafts.

What a call drafts after the token it ends with is thrown away, so it is not drawn; block verification judges all
drafts of a call together and draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np

from simulations.draws import Floats
from simulations.reference import positions
from simulations.reference.drawing import Draws
from simulations.reference.positions import Judged

Path: TypeAlias = tuple[int, ...]
"""The ranks from the root to a node."""


@dataclass(frozen=True)
class Pair:
    """Transition pmfs of target and draft, ``[V, V]``, or ``[T, V, V]`` with a matrix for each position."""

    target: Floats
    draft: Floats

    def p(self, n: int, last: int) -> Floats:
        """Target pmf ``[V]`` of the token at position n after the token `last`."""
        return self.target[n, last] if self.target.ndim == 3 else self.target[last]

    def q(self, n: int, last: int) -> Floats:
        """Draft pmf ``[V]`` of the token at position n after the token `last`."""
        return self.draft[n, last] if self.draft.ndim == 3 else self.draft[last]


@dataclass(frozen=True)
class Call:
    """What one call outputs: the accepted drafts and one recovered or bonus token."""

    tokens: tuple[int, ...]

    @property
    def accepted(self) -> int:
        """Accepted drafts: all tokens but the last."""
        return len(self.tokens) - 1


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


class Exit(NamedTuple):
    """Where a call left the tree: the last accepted node, and the rank that led out."""

    node: Path
    rank: int


def walk(paths: Iterable[Path], read_rank: Callable[[], int]) -> Exit:
    """One call of ERSD (kobus2025): accept drafts as long as the output's rank is that of a drafted child."""
    drafted, node = set(paths), Path()
    while (*node, rank := read_rank()) in drafted:
        node = (*node, rank)
    return Exit(node, rank)


At = Callable[[Floats, Floats, int, Draws], Judged]
"""What happens at one position: target pmf, draft pmf, number of candidates, draws; the output and its rank."""

TreeCall = Callable[[DraftTree, Pair, int, int, Draws], Call]
"""One call: the tree it drafts, pair, position of the first draft, the token before it, draws."""


def ranked_call(at: At, tree: DraftTree, pair: Pair, n: int, last: int, draws: Draws) -> Call:
    """One call from position n on: it goes down the tree as long as the output's rank is that of a drafted child."""
    tokens = [last]
    ranks: list[int] = []

    def next_rank() -> int:
        position = n + len(ranks)
        candidates = tree.candidates.get(tuple(ranks), 0)
        judged = at(pair.p(position, tokens[-1]), pair.q(position, tokens[-1]), candidates, draws)
        tokens.append(judged.token)
        ranks.append(judged.rank or 0)
        return ranks[-1]

    walk(tree.nodes, next_rank)
    return Call(tuple(tokens[1:]))


def block_call(tree: DraftTree, pair: Pair, n: int, last: int, draws: Draws) -> Call:
    """Block verification of a chain (sun2024block, Algorithm 2); coins above the deepest that shows are not looked at.

    The coin of depth i has probability w_k at the last depth k, before it S / (S + 1 - w_i), S = sum (w_i p - q)+,
    where w_i = min(1, w_(i-1) p/q) is the running ratio of the i-th draft.
    """
    k, path, ratio = tree.depth, [last], [1.0]
    for i in range(k):
        token = draws.token(pair.q(n + i, path[i]))
        ratio.append(min(1.0, ratio[i] * float(pair.p(n + i, path[i])[token]) / float(pair.q(n + i, path[i])[token])))
        path.append(token)

    def excess(i: int) -> Floats:
        return np.maximum(ratio[i] * pair.p(n + i, path[i]) - pair.q(n + i, path[i]), 0.0)

    def chance(i: int) -> float:
        more = float(excess(i).sum())
        return ratio[k] if i == k else more / (more + 1 - ratio[i]) if more > 0 else 0.0

    tau = next((i for i in range(k, 0, -1) if draws.coin(chance(i))), 0)
    p, q = pair.p(n + tau, path[tau]), pair.q(n + tau, path[tau])
    if tau == k:
        return Call((*path[1:], draws.token(p)))
    with np.errstate(divide="ignore", invalid="ignore"):
        falling = np.argsort(-np.where(p > 0, p / q, 0.0), kind="stable")
    return Call((*path[1 : tau + 1], draws.inverted(excess(tau), falling)))


class Algorithm(NamedTuple):
    """A rule's algorithm; whether it takes several candidates, and tries them in the order of their ranks."""

    call: TreeCall
    several: bool = False
    consecutive: bool = False


ALGORITHMS: dict[str, Algorithm] = {
    "token": Algorithm(partial(ranked_call, positions.token)),
    "independent": Algorithm(partial(ranked_call, positions.independent)),
    "argmax": Algorithm(partial(ranked_call, positions.argmax)),
    "greedy": Algorithm(partial(ranked_call, positions.greedy)),
    "block": Algorithm(block_call),
    "race": Algorithm(partial(ranked_call, positions.race), several=True),
    "poisson": Algorithm(partial(ranked_call, positions.poisson_race), several=True),
    "recursive": Algorithm(partial(ranked_call, positions.iid_rejection), several=True, consecutive=True),
    "recursive-distinct": Algorithm(partial(ranked_call, positions.distinct_rejection), several=True, consecutive=True),
    "topk": Algorithm(partial(ranked_call, positions.topk), several=True),
}
"""The algorithm of each rule as written: the evidence for a rule's law. A new rule is one line here."""


def decoded(run: TreeCall, tree: DraftTree, pair: Pair, start: int, length: int, draws: Draws) -> Iterator[Call]:
    """The calls that decode `length` tokens after `start`; with m tokens to go they draft at most m - 1 deep."""
    n, last = 0, start
    while n < length:
        step = run(tree.cut(length - n - 1), pair, n, last, draws)
        yield step
        n, last = n + len(step.tokens), step.tokens[-1]


def batch_text(pair: Pair, start: int, length: int, drafts: int, draws: Draws, *, printed: bool = False) -> list[int]:
    """Positions of a text whose token was recovered, decoded with a batch of drafts (yin2024, Algorithm 4).

    A round tries the first tokens of all drafts (as printed: of the first alone), then verifies the accepted draft
    alone, to the horizon; it ends at a recovered token.
    """
    rejected: list[int] = []
    n, last = 0, start
    while n < length:
        tries, recovered = 1 if printed else drafts, False
        while n < length and not recovered:
            judged = positions.iid_rejection(pair.p(n, last), pair.q(n, last), tries, draws)
            recovered, last, tries = judged.rank is None, judged.token, 1
            rejected += [n] * recovered
            n += 1
    return rejected
