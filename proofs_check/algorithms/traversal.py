"""Traversal verification (weng2025) in fractions: a draft tree is judged from its leaves to its root.

Every node has a ratio, 1 at the root, min(1, ratio of the parent times p/q) at a child. A leaf is accepted with its
ratio; a rejected one is taken out of the tree. Its parent then has the target law norm (ratio p - q)+, the ratio
S/(S + 1 - ratio), S the mass of that positive part, and the draft law without the rejected token. A node whose children
are all gone is a leaf. The accepted node's own law gives the token after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from proofs_check.algorithms.enumeration import CallLaw, Model, Pmf, Prefix, Rule, normalised, positive_part
from proofs_check.algorithms.tree_enumeration import Drafts, Path, Report, Tree, children, drafted_trees, without
from proofs_check.statement.fractions import Fraction

Judged = tuple[Path, Pmf, Fraction]
"""The node accepted, the law of the token after it, the probability."""


Rest = Callable[[Fraction, Fraction, Fraction], Fraction]
"""A parent's ratio after a rejection: of S, its ratio before, and the draft's mass without the rejected token."""


def of_rejected(mass: Fraction, ratio: Fraction, _: Fraction) -> Fraction:
    """S/(S + 1 - ratio)."""
    return mass / (mass + 1 - ratio)


def of_remaining(mass: Fraction, _: Fraction, remaining: Fraction) -> Fraction:
    """S over the draft's remaining mass, at most 1: a public implementation has it, and it is wrong."""
    return min(Fraction(1), mass / remaining) if remaining > 0 else Fraction(0)


def traversal(
    tree: Tree, report: Report = len, *, replacement: bool = False, merged: bool = False, rest: Rest = of_rejected
) -> Rule:
    """A call by a tree whose siblings are drawn without replacement, as in the paper (or i.i.d., `replacement`).

    merged: i.i.d. siblings with the same token are one node, with the children of all.
    """

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        law: CallLaw = {}
        cut = frozenset(path for path in tree if len(path) <= k)
        for tokens, drawn in drafted_trees(draft, prefix, cut, replacement):
            tokens = _merged(tokens) if merged else tokens
            walk = _Walk(target, draft, prefix, frozenset(tokens), tokens, replacement, rest)
            for node, last, share in walk.judged((), Fraction(1)):
                for token, part in enumerate(last):
                    if part > 0:
                        key = ((*walk.words(node), token), report(node))
                        law[key] = law.get(key, Fraction(0)) + drawn * share * part
        return law

    return call


def _merged(tokens: Drafts) -> Drafts:
    """The drafted tree with every run of tokens once; nodes are numbered anew in the order in which they came."""
    found: dict[Path, int] = {}
    place: dict[Path, Path] = {(): ()}
    for node in sorted(tokens, key=lambda path: (len(path), path)):
        siblings = children(frozenset(found), place[node[:-1]])
        same = next((path for path in siblings if found[path] == tokens[node]), None)
        place[node] = same or (*place[node[:-1]], len(siblings) + 1)
        found[place[node]] = tokens[node]
    return found


@dataclass(frozen=True)
class _Walk:
    """One drafted tree, judged."""

    target: Model
    draft: Model
    prefix: Prefix
    tree: Tree
    tokens: Drafts
    replacement: bool
    rest: Rest

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
            left_over = positive_part(p, proposal, ratio)
            mass = sum(left_over, Fraction(0))
            ratio, tried = self.rest(mass, ratio, 1 - proposal[token]), (*tried, token)
            p = normalised(left_over) if mass else p
        ratio = ratio if node else Fraction(1)
        if ratio > 0:
            yield node, p, alive * ratio
