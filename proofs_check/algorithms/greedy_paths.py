"""Greedy multi-path block verification (thomas2026) in fractions: the largest of several i.i.d. paths is judged.

Every position has an order of tokens, that of ascending p/q; paths are compared position by position. Block
verification judges the largest drafted path against the law that the largest has, not against the draft's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from proofs_check.algorithms.enumeration import (
    CallLaw,
    Model,
    Pmf,
    Prefix,
    Rule,
    add_outputs,
    block_judged,
    draft_paths,
)
from proofs_check.statement.fractions import Fraction

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
    drawn = sorted((x for x in range(len(q)) if q[x] > 0), key=lambda x: (key(p[x] / q[x]), x))
    return [drawn.index(x) if q[x] > 0 else len(drawn) for x in range(len(q))]


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
        below, own = Fraction(0), Fraction(1)
        for i in range(len(start), len(prefix)):
            before, token = prefix[:i], prefix[i]
            below += own * _under(order(target(before), draft(before)), draft(before), token)
            own *= draft(before)[token]
        q = draft(prefix)
        places = order(target(prefix), q)
        smaller = [below + own * _under(places, q, x) for x in range(len(q))]
        whole = (below + own) ** paths - below**paths
        return tuple(((a + own * q[x]) ** paths - a**paths) / whole if own else q[x] for x, a in enumerate(smaller))

    return next_token


def _under(places: list[int], q: Pmf, token: int) -> Fraction:
    """The draft's mass of smaller tokens."""
    return sum((q[x] for x in range(len(q)) if places[x] < places[token]), Fraction(0))


def greedy_block(paths: int, order: Order = by_ratio, choice: Choice | None = None) -> Rule:
    """So many paths are drawn; one is chosen (the largest) and judged by block verification against `order`'s law."""
    choose = choice or largest(order)

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        chosen: dict[Prefix, Fraction] = {}
        for drawn in product(list(draft_paths(draft, prefix, k)), repeat=paths):
            path = choose(target, draft, prefix, [each for each, _ in drawn])
            weight = Fraction(1)
            for _, share in drawn:
                weight *= share
            chosen[path] = chosen.get(path, Fraction(0)) + weight
        judged_by, law = law_of_largest(target, draft, prefix, paths, order), CallLaw()
        for path, weight in chosen.items():
            for depth, last, share in block_judged(target, judged_by, prefix, path):
                add_outputs(law, path[:depth], last, weight * share)
        return law

    return call
