"""Draft trees along a text whose rank law changes: weights on average, the calls, and small texts as cases."""

from __future__ import annotations

import heapq

from proofs_check.prelude import *
from proofs_check.twins import path_theorem
from proofs_check.twins.rank_trees import Nodes, Path, RankPmf, all_trees, deepest
from proofs_check.twins.tree_theorem import tree_survival

Text = Sequence[RankPmf]
"""The rank law at each position: P(R = r | text), r = 1, 2, ...; what is missing to one is no draft's."""

RANKS = 2
"""Largest rank of the trees that are tried one by one."""


def at_start(text: Text, node: Path, n: int) -> Real:
    """The probability that a call which starts at n accepts a node; none past the end of the text."""
    return math.prod(text[n + j][rank - 1] for j, rank in enumerate(node)) if n + len(node) <= len(text) else 0


def average(text: Text, node: Path) -> Real:
    """S4's weight of a node: the mean over the starts."""
    return sum(at_start(text, node, n) for n in range(len(text))) * Fraction(1, len(text))


def accepted(text: Text, tree: Nodes) -> Real:
    """Accepted drafts of a call whose start is drawn uniformly: the sum of the weights."""
    return sum(average(text, node) for node in tree)


def greedy_tree(text: Text, nodes: int) -> Nodes:
    """The heaviest nodes by their averages, from a heap."""
    found: list[Path] = []
    heap: list[tuple[Real, int, Path]] = [(-1, 0, ())]
    while len(found) <= nodes:
        _, deep, node = heapq.heappop(heap)
        found.append(node)
        for rank in range(1, len(text[0]) + 1):
            heapq.heappush(heap, (-average(text, (*node, rank)), deep + 1, (*node, rank)))
    return tuple(found[1:])


def calls(text: Text, tree: Nodes) -> Fraction:
    """C(0) of the path theorem: the expected calls the text takes."""
    shape = frozenset(tree)
    return path_theorem.calls(tree_survival(text, shape), deepest(tree), len(text))[0]


trees = cache(all_trees)


def heaviest_trees(text: Text, nodes: int) -> list[Nodes]:
    """All trees with the most average weight: there may be ties."""
    weights = {tree: accepted(text, tree) for tree in trees(nodes, RANKS)}
    return [tree for tree, own in weights.items() if own == max(weights.values())]


# Cases

ALTERNATING: Text = ((Fraction(2, 10000), Fraction(9997, 10000)), (Fraction(955, 1000), Fraction(26, 1000))) * 20
"""Two positions that alternate, forty in all."""


def texts(length: int, denominator: int) -> Iterator[Text]:
    """Every text of so many positions, each with a law of ranks 1, 2 and later in multiples of 1/denominator."""
    return product([law[:RANKS] for law in cases.grid(RANKS + 1, denominator)], repeat=length)


def short_texts(length: int, nodes: int, denominator: int) -> Iterator[Case]:
    """By length, then nodes, then denominator."""
    sizes = product(range(1, length + 1), range(1, nodes + 1), range(1, denominator + 1))
    return ({"text": text, "nodes": k} for n, k, d in sizes for text in texts(n, d))


def best_on_average(text: Text, nodes: int) -> Compared:
    """The greedy tree against every tree of as many nodes."""
    return equal(accepted(text, greedy_tree(text, nodes)), max(accepted(text, tree) for tree in trees(nodes, RANKS)))


def fewest_calls(text: Text, nodes: int) -> Compared:
    """The false reading: some tree with the most average weight takes as few calls as any tree."""
    return at_most(
        min(calls(text, tree) for tree in heaviest_trees(text, nodes)),
        min(calls(text, tree) for tree in trees(nodes, RANKS)),
    )


def certain_text(ranks: Sequence[int]) -> Text:
    """A text whose ranks are what they are."""
    return tuple(tuple(Fraction(int(rank == r)) for r in range(1, RANKS + 1)) for rank in ranks)


AVERAGE = Claim("the heaviest nodes by average weight are the best tree for a uniform start", best_on_average)

FEWEST = Claim("a tree of the k heaviest average weights takes as few calls as any tree of k nodes", fewest_calls)

NEVER_COSTS = Claim(
    "one more node never adds calls", lambda text, tree, node: at_most(calls(text, (*tree, node)), calls(text, tree))
)
