"""Draft trees under i.i.d. ranks: every small one, what its nodes weigh, and the walk down it, in any arithmetic."""

from __future__ import annotations

from itertools import chain as joined

from proofs_check.algorithms.tree_enumeration import nodes_of, tree_walk
from proofs_check.library import strategies
from proofs_check.prelude import *

Path = tuple[int, ...]
Nodes = tuple[Path, ...]
"""A draft tree in a case: its nodes but for the root, parents first."""

RankPmf = Sequence[Real]
"""P(R = r), r = 1, 2, ...; where it makes one in all, its last letter may stand for all later ranks."""


def all_trees(nodes: int, ranks: int) -> list[Nodes]:
    """Every tree of so many nodes whose ranks are at most `ranks`."""
    trees: set[frozenset[Path]] = {frozenset()}
    for _ in range(nodes):
        trees = {
            tree | {(*node, rank)}
            for tree in trees
            for node in [(), *tree]
            for rank in range(1, ranks + 1)
            if (*node, rank) not in tree
        }
    return sorted(tuple(nodes_of(tree)[1:]) for tree in trees)


def in_order(tree: Nodes) -> bool:
    """Whether siblings have ranks 1..m, as recursive rejection tries them."""
    return all(node[-1] == 1 or (*node[:-1], node[-1] - 1) in tree for node in tree)


def weight(pi: RankPmf, node: Path) -> Real:
    """The product of the ranks' probabilities on the way to a node."""
    return math.prod(pi[rank - 1] for rank in node)


def tokens(pi: RankPmf, tree: Nodes) -> Real:
    """S1: the weights of all nodes and of the root."""
    return 1 + sum(weight(pi, node) for node in tree)


def read(pi: Pmf, tree: Nodes) -> dict[Path, Fraction]:
    """The law of the ranks a call reads, the last of which leads out of the tree, by walking every way down."""
    walk = tree_walk(lambda law, _, __: {(r, r): share for r, share in enumerate(law, 1)}, frozenset(tree))
    law = walk(lambda _: pi, lambda _: pi, (), deepest(tree))
    return {ranks: share for (ranks, _), share in law.items()}


def deepest(tree: Nodes) -> int:
    """The most drafts a call can accept."""
    return max(map(len, tree), default=0)


def expanded(branching: Path) -> Nodes:
    """The nodes of a k-ary expansion."""
    levels = (product(*(range(1, b + 1) for b in branching[:d])) for d in range(1, len(branching) + 1))
    return tuple(joined.from_iterable(levels))


# Cases

LAWS: tuple[Pmf, ...] = tuple(
    tuple(Fraction(w, sum(weights)) for w in weights)
    for weights in ((4, 2, 1, 1), (1, 3, 2, 1), (0, 1, 0, 0), (1, 0, 1, 1), (1, 1, 1, 0), (1, 1, 1, 97))
)
"""Laws of four letters: falling and dyadic, not in order, certain, with gaps, uniform, and mostly out of reach."""

UNSORTED: Pmf = (Fraction(1, 7), Fraction(4, 7), Fraction(2, 7))
"""One law of three letters, for the many trees of four nodes and more."""


def trees_of(most: int, laws: Sequence[Pmf] = LAWS, *, least: int = 0) -> Iterator[Case]:
    """Every law with every tree on ranks 1 to 3 of up to `most` nodes, small trees first."""
    for nodes in range(least, most + 1):
        for tree, pi in product(all_trees(nodes, 3), laws):
            yield {"pi": pi, "tree": tree}


def drawn_trees() -> st.SearchStrategy[dict[str, Any]]:
    """Trees of up to 6 nodes, laws of any spread."""
    trees = strategies.draft_trees(6, 3).map(lambda tree: tuple(nodes_of(tree)[1:]))
    return st.fixed_dictionaries({"pi": st.integers(4, 5).flatmap(strategies.exact_pmfs), "tree": trees})


def law_space(letters: int, tree: Nodes) -> Space:
    """The laws of so many letters, as the softmax of a vector, with one tree."""

    def case(x: Any) -> Case:
        grown = np.exp(x - x.max())
        return {"pi": tuple((grown / grown.sum()).tolist()), "tree": tree}

    return Space(letters, case, lambda x: {"pi": rational(case(x)["pi"]), "tree": tree})
