"""Hierarchical speculative decoding (zhou2026) in fractions: both algorithms as printed, and the public code's mixture.

With joint probabilities P and Q of the first t tokens and r = P/Q, the drafts are scanned from the last one back: depth
t is accepted with probability h_t. A *branch* is a prefix with all its next tokens; its deficit is sum_x (P - Q)+ over
them, its excess sum_x (Q - P)+. Nothing here uses the recursion of block verification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from proofs_check.algorithms.enumeration import (
    CallLaw,
    Calls,
    Model,
    Pmf,
    Prefix,
    Rule,
    TextLaw,
    block_judged,
    draft_paths,
    normalised,
    outputs,
    positive_part,
    probability,
)
from proofs_check.algorithms.tree_enumeration import Drafts, Path, Report, Tree, children, drafted_trees, without
from proofs_check.statement.fractions import Fraction, end_of, law, law_of, total

ONE = Fraction(1)


def hierarchical(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
    """Algorithm 2: ratios capped at the largest prefix ratio, one token resampled in the branch (eq. 16 to 20)."""
    return _capped_call(_capped, target, draft, prefix, k)


def hierarchical_published(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
    """The public code: capped below the last draft, which is accepted with min(1, r), uncapped (as in Algorithm 1)."""
    return _capped_call(_ratio, target, draft, prefix, k)


@law_of
def _capped_call(
    last_ratio: Callable[[Model, Model, Prefix, Prefix], Fraction], target: Model, draft: Model, prefix: Prefix, k: int
) -> Calls:
    for path, weight in draft_paths(draft, prefix, k):
        last = min(ONE, last_ratio(target, draft, prefix, path))
        for depth, share in scanned(target, draft, prefix, path, last, capped=True):
            after = prefix + path[:depth]
            pmf = target(after) if depth == k else _resampled(target, draft, prefix, path[:depth], capped=True)
            yield from outputs(path[:depth], pmf, weight * share)


@law_of
def hierarchical_naive(target: Model, draft: Model, prefix: Prefix, k: int) -> Calls:
    """Algorithm 1: nothing capped, every token after the accepted ones resampled until there are k.

    A call has k tokens, k + 1 after full acceptance; `passes` counts the target's forward passes that it needs.
    """
    for path, weight in draft_paths(draft, prefix, k):
        last = min(ONE, _ratio(target, draft, prefix, path))
        for depth, share in scanned(target, draft, prefix, path, last, capped=False):
            if depth == k:
                yield from outputs(path, target(prefix + path), weight * share)
                continue
            ends = [(path[:depth], weight * share)]
            for _ in range(k - depth):
                ends = [
                    ((*tokens, token), mass * part)
                    for tokens, mass in ends
                    for token, part in enumerate(_resampled(target, draft, prefix, tokens, capped=False))
                    if part > 0
                ]
            yield from (((tokens, depth), mass) for tokens, mass in ends)


def cut_short(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
    """Algorithm 1 that leaves what follows the first resampled token to the next call."""
    naive = hierarchical_naive(target, draft, prefix, k)
    return law(((output[: tau + 1], tau), share) for (output, tau), share in naive.items())


def passes(accepted: int, k: int) -> int:
    """Target passes of a call of Algorithm 1: one for the drafts, one for each resampled token after the first."""
    return 1 + max(k - accepted - 1, 0)


def _ratio(target: Model, draft: Model, prefix: Prefix, path: Prefix) -> Fraction:
    """The likelihood ratio P/Q of a drafted run."""
    return probability(target, prefix, path) / probability(draft, prefix, path)


def _cap(target: Model, draft: Model, prefix: Prefix, path: Prefix) -> Fraction:
    """The largest ratio of the runs that a drafted run begins with, itself among them, 1 if none is above it."""
    return max([ONE, *(_ratio(target, draft, prefix, path[:i]) for i in range(1, len(path) + 1))])


def _capped(target: Model, draft: Model, prefix: Prefix, path: Prefix) -> Fraction:
    """The ratio r* from the shorter run of the largest ratio on, if that is above 1 (Definitions 4 and 5)."""
    return _ratio(target, draft, prefix, path) / _cap(target, draft, prefix, path[:-1])


def branch(target: Model, draft: Model, prefix: Prefix, path: Prefix, *, capped: bool) -> Pmf:
    """P - Q of every next token; capped: (r* - 1) Q."""
    p, q = target(prefix + path), draft(prefix + path)
    P, Q = probability(target, prefix, path), probability(draft, prefix, path)
    if capped:
        P /= _cap(target, draft, prefix, path)
    return tuple(P * a - Q * b for a, b in zip(p, q, strict=True))


def _accepted(branch: Pmf) -> Fraction:
    """h_t = deficit / max(deficit, excess); where both are 0 a deeper draft is accepted surely, so any value serves."""
    deficit, excess = (total(max(sign * d, 0) for d in branch) for sign in (1, -1))
    return deficit / max(deficit, excess) if deficit or excess else Fraction(0)


def scanned(
    target: Model, draft: Model, prefix: Prefix, path: Prefix, last: Fraction, *, capped: bool
) -> Iterator[tuple[int, Fraction]]:
    """Accepted lengths with their probability, from the last draft back; nothing is left to accept at 0."""
    left = ONE
    for depth in range(len(path), -1, -1):
        share = last if depth == len(path) else ONE
        if 0 < depth < len(path):
            share = _accepted(branch(target, draft, prefix, path[:depth], capped=capped))
        if left * share > 0:
            yield depth, left * share
        left *= 1 - share


def _resampled(target: Model, draft: Model, prefix: Prefix, path: Prefix, *, capped: bool) -> Pmf:
    """The law of the token resampled after a run: in proportion to (P - Q)+ in its branch."""
    return normalised(tuple(max(d, Fraction(0)) for d in branch(target, draft, prefix, path, capped=capped)))


# Greedy block verification (sun2024block) in fractions: calls that hand the rest of a draft's block on to the next.


def owed(target: Model, draft: Model, start: Prefix, k: int) -> Model:
    """The target law of what follows a call at `start` that accepted less than k: in proportion to (P - Q)+ up to k."""

    def next_token(prefix: Prefix) -> Pmf:
        if len(prefix) >= len(start) + k:
            return target(prefix)
        left = tuple(max(d, Fraction(0)) for d in branch(target, draft, start, prefix[len(start) :], capped=False))
        return normalised(left) if any(left) else target(prefix)

    return next_token


def greedy_law(target: Model, draft: Model, k: int, length: int) -> TextLaw:
    """The exact joint law of a text and the accepted drafts of every call; surplus tokens of the last call are cut."""

    def next_call(state: tuple[Prefix, tuple[int, ...], Model]) -> Iterator[tuple[Any, Fraction]]:
        text, counts, present = state
        for path, weight in draft_paths(draft, text, k):
            last = min(ONE, probability(present, text, path) / probability(draft, text, path))
            for depth, share in scanned(present, draft, text, path, last, capped=False):
                after = text + path[:depth]
                following = present if depth == k else owed(present, draft, text, k)
                for token, part in enumerate(following(after)):
                    yield ((*after, token)[:length], (*counts, depth), following), weight * share * part

    ends = end_of(((), (), target), lambda state: None if len(state[0]) == length else next_call(state))
    return law(((text, counts), share) for (text, counts, _), share in ends.items())


# Greedy multi-path block verification (thomas2026) in fractions: the largest of several i.i.d. paths is judged.


Order = Callable[[Pmf, Pmf], list[int]]
"""Target and draft pmf to the place of every token; drafted tokens have different places."""

Choice = Callable[[Model, Model, Prefix, list[Prefix]], Prefix]
"""Which of the drafted paths is judged: target, draft, text so far, paths in the order they were drawn."""


def by_ratio(p: Pmf, q: Pmf) -> list[int]:
    """Places by ascending p/q, the lower token index first among equals; tokens that are never drafted last."""
    return _places(p, q, lambda ratio: ratio)


def by_clipped_ratio(p: Pmf, q: Pmf) -> list[int]:
    """Places by ascending min(1, p/q), the lower index first: as public code computes the law of the largest."""
    return _places(p, q, lambda ratio: min(Fraction(1), ratio))


def _places(p: Pmf, q: Pmf, key: Callable[[Fraction], Fraction]) -> list[int]:
    support = sorted((x for x in range(len(q)) if q[x] > 0), key=lambda x: (key(p[x] / q[x]), x))
    return [support.index(x) if q[x] > 0 else len(support) for x in range(len(q))]


def largest(order: Order) -> Choice:
    """The path that is largest position by position."""

    def chosen(target: Model, draft: Model, prefix: Prefix, paths: list[Prefix]) -> Prefix:
        def places(path: Prefix) -> list[int]:
            before = [prefix + path[:i] for i in range(len(path))]
            return [order(target(w), draft(w))[token] for w, token in zip(before, path, strict=True)]

        return max(paths, key=places)

    return chosen


def first_of_equals(target: Model, draft: Model, prefix: Prefix, paths: list[Prefix]) -> Prefix:
    """As public code walks down: to the child of the largest min(1, p/q), the first drafted one among equals."""
    for i in range(len(paths[0])):
        p, q = target(prefix + paths[0][:i]), draft(prefix + paths[0][:i])
        best = max((min(Fraction(1), p[path[i]] / q[path[i]]), -n) for n, path in enumerate(paths))
        token = paths[-best[1]][i]
        paths = [path for path in paths if path[i] == token]
    return paths[0]


def law_of_largest(target: Model, draft: Model, start: Prefix, paths: int, order: Order = by_ratio) -> Model:
    r"""The next token of the largest of so many i.i.d. paths, given how it begins at `start`.

    With A the probability of a smaller beginning and Q of the beginning itself, the largest begins so with probability
    :math:`(A + Q)^K - A^K`.
    """

    def next_token(prefix: Prefix) -> Pmf:
        below, mass = Fraction(0), Fraction(1)
        for i in range(len(start), len(prefix)):
            before, token = prefix[:i], prefix[i]
            below += mass * _under(order(target(before), draft(before)), draft(before), token)
            mass *= draft(before)[token]
        q = draft(prefix)
        places = order(target(prefix), q)
        smaller = [below + mass * _under(places, q, x) for x in range(len(q))]
        whole = (below + mass) ** paths - below**paths
        return tuple(((a + mass * q[x]) ** paths - a**paths) / whole if mass else q[x] for x, a in enumerate(smaller))

    return next_token


def _under(places: list[int], q: Pmf, token: int) -> Fraction:
    """The draft's mass of smaller tokens."""
    return total(q[x] for x in range(len(q)) if places[x] < places[token])


def greedy_block(paths: int, order: Order = by_ratio, choice: Choice | None = None) -> Rule:
    """So many paths are drawn; one is chosen (the largest) and judged by block verification against `order`'s law."""
    choose = choice or largest(order)

    @law_of
    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> Calls:
        chosen = law(
            (choose(target, draft, prefix, [path for path, _ in batch]), prod((share for _, share in batch), start=ONE))
            for batch in product(list(draft_paths(draft, prefix, k)), repeat=paths)
        )
        judged_by = law_of_largest(target, draft, prefix, paths, order)
        for path, weight in chosen.items():
            for depth, last, share in block_judged(target, judged_by, prefix, path):
                yield from outputs(path[:depth], last, weight * share)

    return call


# Traversal verification (weng2025) in fractions: a draft tree is judged from its leaves to its root.


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

    @law_of
    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> Calls:
        cut = frozenset(path for path in tree if len(path) <= k)
        for tokens, weight in drafted_trees(draft, prefix, cut, replacement):
            tokens = _merged(tokens) if merged else tokens
            walk = _Walk(target, draft, prefix, frozenset(tokens), tokens, replacement, rest)
            for node, last, share in walk.judged((), Fraction(1)):
                for token, part in enumerate(last):
                    yield ((*walk.words(node), token), report(node)), weight * share * part

    return call


def _merged(tokens: Drafts) -> Drafts:
    """The drafted tree with every run of tokens once; nodes are numbered anew in the order in which they came."""
    merged: dict[Path, int] = {}
    place: dict[Path, Path] = {(): ()}
    for node in sorted(tokens, key=lambda path: (len(path), path)):
        siblings = children(frozenset(merged), place[node[:-1]])
        same = next((path for path in siblings if merged[path] == tokens[node]), None)
        place[node] = same or (*place[node[:-1]], len(siblings) + 1)
        merged[place[node]] = tokens[node]
    return merged


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
            mass = total(left_over)
            ratio, tried = self.rest(mass, ratio, 1 - proposal[token]), (*tried, token)
            p = normalised(left_over) if mass else p
        ratio = ratio if node else Fraction(1)
        if ratio > 0:
            yield node, p, alive * ratio
