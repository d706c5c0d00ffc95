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


# Steps about draft trees that several statements share.


ADD_A_NODE: Step = same(
    "the root alone gives one token, its weight; a node of weight w and depth d, whose children have probability c "
    "together, ends a call with probability w(1-c), at d+1 tokens; a new child of rank probability x takes wx of it, "
    "ends calls with wx, at d+2 tokens, and nothing else changes: E[tokens] grows by the new node's weight wx",
    lambda w, c, x, d: (w * (1 - c - x) * (d + 1) + w * x * (d + 2) - w * (1 - c) * (d + 1), w * x),
)

EXCHANGE: tuple[Step, ...] = (
    valid(
        "w <= (w - t)+ + t for every t, so k nodes weigh at most the sum of (w - t)+ over them, hence over all nodes, "
        "plus k t",
        lambda w, t: (at_most(w, positive_part(w - t) + t), at_least(positive_part(w - t), 0)),
    ),
    valid(
        "let t be the weight of the k-th node of the order: each of the first k has (w - t)+ + t = w ...",
        lambda w, t: equal(positive_part(w - t) + t, w),
        lambda w, t: [w >= t],
    ),
    valid(
        "... and every other one (w - t)+ = 0: the bound is the sum of the first k, and no k nodes weigh more",
        lambda w, t: equal(positive_part(w - t), 0),
        lambda w, t: [w <= t],
    ),
)
"""The first k of an order by weight weigh the most, whatever the weights."""
