"""The path theorem for draft trees (§4, §7) in fractions: the twin of the trees in :mod:`spectheory.prediction.paths`.

It states, from the law of the rank given the text at every position, where calls end and how many a text takes.
:mod:`proofs_check.algorithms.tree_enumeration` runs the algorithms themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

from proofs_check.algorithms.enumeration import Model, Pmf, Prefix, normalised, positive_part
from proofs_check.algorithms.tree_enumeration import Joint, Path, Tree, children, nodes_of
from proofs_check.statement.fractions import Fraction, end_of, law, total
from proofs_check.twins.path_theorem import Survival, accepted_law


def depth(tree: Tree) -> int:
    """The most drafts a call can accept."""
    return max(map(len, tree))


RankLaws = Sequence[Sequence[Fraction]]
"""P(R = r | text) at each position of a text, r = 1, 2, ..."""

RankLaw = Callable[[Pmf, Pmf, int, int], Sequence[Fraction]]
"""P(R = r | output), r = 1..candidates, at one position: target pmf, draft pmf, output token, candidates."""


def rank_laws(law: RankLaw, target: Model, draft: Model, text: Prefix, candidates: int) -> RankLaws:
    """The rank law at every position of a text."""
    return [law(target(text[:n]), draft(text[:n]), token, candidates) for n, token in enumerate(text)]


def conditional(joint: Joint) -> RankLaw:
    """The rank law given the output, read off a joint law."""

    def law(p: Pmf, q: Pmf, token: int, candidates: int) -> list[Fraction]:
        both = joint(p, q, candidates)
        return [both.get((rank, token), Fraction(0)) / p[token] for rank in range(1, candidates + 1)]

    return law


def rejection_given(p: Pmf, q: Pmf, token: int, candidates: int) -> list[Fraction]:
    """R3 with replacement in closed form: the product of TV(p^m, q), m < r, times min(p^r, q) at the token, over p."""
    law, residual, alive = [], p, Fraction(1)
    for _ in range(candidates):
        law.append(alive * min(residual[token], q[token]) / p[token])
        excess = positive_part(residual, q)
        alive *= total(excess)
        residual = normalised(excess) if alive > 0 else residual
    return law


def node_probability(laws: RankLaws, n: int, node: Path) -> Fraction:
    """Probability that a call that starts at position n accepts a node, given the text."""
    return prod((laws[n + j][rank - 1] for j, rank in enumerate(node)), start=Fraction(1))


def tree_survival(laws: RankLaws, tree: Tree) -> Survival:
    """P(tau >= i) of a call that starts at n: the sum over the nodes of depth i, for n + i up to the text's end."""

    def survival(n: int, i: int) -> Fraction:
        if i == 0:
            return Fraction(1)
        return total(node_probability(laws, n, node) for node in tree if len(node) == i)

    return survival


def all_ends_law(laws: RankLaws, tree: Tree, length: int, *, prefill: bool = False) -> dict[tuple[Path, ...], Fraction]:
    """Law of the nodes at which the calls end, given the text: calls are independent, the last cut to the text."""

    def next_call(state: tuple[int, tuple[Path, ...]]) -> Iterable[tuple[Any, Fraction]] | None:
        n, ends = state
        if n >= length:
            return None
        drafted: Tree = frozenset() if prefill and n == 0 else tree
        inside = (node for node in nodes_of(drafted) if n + len(node) <= length)
        return (((n + len(node) + 1, (*ends, node)), _ends_at(laws, drafted, n, node, length)) for node in inside)

    return law((ends, share) for (_, ends), share in end_of((0, ()), next_call).items())


def _ends_at(laws: RankLaws, tree: Tree, n: int, node: Path, length: int) -> Fraction:
    reached = node_probability(laws, n, node)
    if n + len(node) == length:
        return reached
    return reached * (1 - total(laws[n + len(node)][child[-1] - 1] for child in children(tree, node)))


def leaf_calls(laws: RankLaws, tree: Tree, length: int, *, start: int = 0) -> Fraction:
    """Expected number of calls from position `start` on, the one that ends the text left out, that end at a leaf."""
    leaves = [node for node in tree if not children(tree, node)]
    survival, most = tree_survival(laws, tree), depth(tree)
    expected = [Fraction(0)] * (length + most + 2)
    for n in range(length - 1, -1, -1):
        law = accepted_law(survival, n, most, length)
        expected[n] = total(share * expected[n + i + 1] for i, share in enumerate(law))
        inside = [node for node in leaves if n + len(node) + 1 < length]
        expected[n] += total(node_probability(laws, n, node) for node in inside)
    return expected[start]


def visits(survival: Survival, most: int, length: int) -> list[Fraction]:
    """Expected number of calls that start at each position."""
    expected = [Fraction(1)] + [Fraction(0)] * (length + most)
    for n in range(length):
        for i, share in enumerate(accepted_law(survival, n, most, length)):
            expected[n + i + 1] += expected[n] * share
    return expected[:length]
