"""The exit leaf of a draft tree and the channel bound on tokens per call (T1)."""

from __future__ import annotations

from proofs_check.forms.divergences import entropy
from proofs_check.prelude import *
from proofs_check.twins.rank_trees import Nodes, Path, RankPmf, tokens, weight


def exits(pi: RankPmf, tree: Nodes) -> dict[Path, Real]:
    """The law of the exit leaf: a node, and the letter by which a call leaves it."""
    inside = {(), *tree}
    leaves = ((*node, r) for node in ((), *tree) for r in range(1, len(pi) + 1) if (*node, r) not in inside)
    return {leaf: weight(pi, leaf) for leaf in leaves}


def exit_count(letters: int, nodes: int) -> int:
    """The number of exits of a tree of so many nodes."""
    return (nodes + 1) * (letters - 1) + 1


def log_exits(pi: RankPmf, tree: Nodes) -> Real:
    """Its logarithm."""
    return log(exit_count(len(pi), len(tree)))


def channel(pi: RankPmf, tree: Nodes) -> Compared:
    """T1 without a division: E[tokens] H(R) <= log((k+1)(A-1)+1)."""
    return at_most(tokens(pi, tree) * entropy(pi), log_exits(pi, tree))
