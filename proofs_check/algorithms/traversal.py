"""Traversal verification (weng2025) in fractions: a draft tree is judged from its leaves to its root.

Every node has a ratio, 1 at the root, min(1, ratio of the parent times p/q) at a child. A leaf is accepted with its
ratio; a rejected one is taken out of the tree. Its parent then has the target law norm (ratio p - q)+, the ratio
S/(S + 1 - ratio), S the mass of that positive part, and the draft law without the rejected token. A node whose children
are all gone is a leaf. The accepted node's own law gives the token after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from proofs_check.algorithms.enumeration import (
    CallLaw,
    Model,
    Pmf,
    Prefix,
    Rule,
    normalised,
    positive_part,
)
from proofs_check.algorithms.tree_enumeration import Drafts, Path, Report, Tree, children, drafted_trees, without

Judged = tuple[Path, Pmf, Fraction]
"""The node accepted, the law of the token after it, the probability."""


def traversal(tree: Tree, report: Report = len, *, replacement: bool = False) -> Rule:
    """A call by a tree whose siblings are drawn without replacement, as in the paper (or i.i.d., `replacement`)."""

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        law: CallLaw = {}
        cut = frozenset(path for path in tree if len(path) <= k)
        for tokens, drawn in drafted_trees(draft, prefix, cut, replacement):
            walk = _Walk(target, draft, prefix, cut, tokens, replacement)
            for node, last, share in walk.judged((), Fraction(1)):
                for token, part in enumerate(last):
                    if part > 0:
                        key = ((*walk.words(node), token), report(node))
                        law[key] = law.get(key, Fraction(0)) + drawn * share * part
        return law

    return call


class _Walk:
    """One drafted tree, judged."""

    def __init__(
        self, target: Model, draft: Model, prefix: Prefix, tree: Tree, tokens: Drafts, replacement: bool
    ) -> None:
        self.target, self.draft, self.prefix = target, draft, prefix
        self.tree, self.tokens, self.replacement = tree, tokens, replacement

    def words(self, node: Path) -> Prefix:
        """The tokens on the way to a node."""
        return tuple(self.tokens[node[: i + 1]] for i in range(len(node)))

    def judged(self, node: Path, ratio: Fraction) -> Iterator[Judged]:
        """Everything accepted at the node or below it, coin by coin in the order of the traversal."""
        after = self.prefix + self.words(node)
        p, q, tried = self.target(after), self.draft(after), Prefix()
        alive = Fraction(1)
        for child in children(self.tree, node):
            token, left = self.tokens[child], Fraction(1)
            proposal = q if self.replacement else without(q, tried)
            for below, last, share in self.judged(child, min(Fraction(1), ratio * p[token] / proposal[token])):
                yield below, last, alive * share
                left -= share
            alive *= left
            if alive == 0:
                return
            rest = positive_part(p, proposal, ratio)
            mass = sum(rest, Fraction(0))
            ratio, tried = mass / (mass + 1 - ratio), (*tried, token)
            p = normalised(rest) if mass else p
        if ratio > 0:
            yield node, p, alive * ratio
