"""Cases in fractions: every pmf of a grid, smallest denominators first, and random rational ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import gcd
from typing import Any

from proofs_check.statement.claims import Case
from proofs_check.statement.findings import Effort
from proofs_check.statement.fractions import Fraction

Pmf = tuple[Fraction, ...]


def grid(tokens: int, denominator: int) -> Iterator[Pmf]:
    """Every pmf on `tokens` tokens whose entries are multiples of 1/denominator."""
    for weights in _compositions(tokens, denominator):
        yield tuple(Fraction(weight, denominator) for weight in weights)


def pairs(tokens: int, denominator: int) -> Iterator[Case]:
    """Every pair of pmfs in multiples of 1/d, d = 1 to `denominator`, the simplest first, each once."""
    for d in range(1, denominator + 1):
        rows = list(_compositions(tokens, d))
        for p, q in product(rows, rows):
            if gcd(d, *p, *q) == 1:
                yield {"p": tuple(Fraction(w, d) for w in p), "q": tuple(Fraction(w, d) for w in q)}


def all_pairs(max_tokens: int, denominator: int) -> Iterator[Case]:
    """The pairs on 2, 3, ..., max_tokens tokens."""
    for tokens in range(2, max_tokens + 1):
        yield from pairs(tokens, denominator)


NEAR = (Fraction(1, 10**7), Fraction(1, 10**30))
"""What stands for a zero next to a face of the simplex."""


def near_faces(pairs: Iterable[Case], shares: Sequence[Fraction] = NEAR) -> Iterator[Case]:
    """The pairs with zeros, and a small share in place of those of p, of q or of both."""
    for share, pair in product(shares, list(pairs)):
        near = {name: _inside(pmf, share) for name, pmf in pair.items()}
        for changed in ("pq", "p", "q"):
            if all(near[name] != pair[name] for name in changed):
                yield {name: near[name] if name in changed else pair[name] for name in "pq"}


def _inside(pmf: Pmf, share: Fraction) -> Pmf:
    """The pmf with a share in place of each zero, taken from its largest entry."""
    top = pmf.index(max(pmf))
    given = pmf.count(Fraction(0)) * share
    return tuple(mass - given if x == top else mass or share for x, mass in enumerate(pmf))


def every_pair(
    denominator: int, deep: int, *, others: tuple[int, int, int] | None = None
) -> Callable[[Effort], Iterator[Case]]:
    """Every pair on 2 and 3 tokens up to a denominator; `others`: numbers of random ones, and their most tokens."""

    def draw(effort: Effort) -> Iterator[Case]:
        yield from all_pairs(3, effort.pick(denominator, deep))
        if others:
            yield from random_pairs(effort.seed, effort.pick(*others[:2]), others[2])

    said = f"every pair on 2 and 3 tokens of denominator up to {denominator}"
    draw.__doc__ = said + ", and random ones" * bool(others)
    return draw


def pmf_of(weights: Sequence[int]) -> Pmf:
    """The pmf in proportion to whole weights."""
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def random_pmf(rng: random.Random, tokens: int, spread: int = 12) -> Pmf:
    """A random rational pmf whose weights span up to `spread` powers of two, zeros included."""
    weights = [rng.randrange(1 << rng.randrange(spread + 1)) for _ in range(tokens)]
    weights[rng.randrange(tokens)] += 1
    return pmf_of(weights)


def random_pairs(seed: int, count: int, max_tokens: int, spread: int = 12) -> Iterator[Case]:
    """Random rational pairs on 2 to max_tokens tokens."""
    rng = random.Random(seed)
    for _ in range(count):
        tokens = rng.randint(2, max_tokens)
        yield {"p": random_pmf(rng, tokens, spread), "q": random_pmf(rng, tokens, spread)}


def prefixes(tokens: int, length: int) -> list[tuple[int, ...]]:
    """Every run of fewer than `length` tokens, the shortest first."""
    return [prefix for n in range(length) for prefix in product(range(tokens), repeat=n)]


def random_model(rng: random.Random, tokens: int, length: int, spread: int = 3) -> dict[tuple[int, ...], Pmf]:
    """A random pmf after every prefix shorter than `length`: a model without any stationarity."""
    return {prefix: random_pmf(rng, tokens, spread) for prefix in prefixes(tokens, length)}


def _compositions(parts: int, total: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(parts - 1, total - first):
            yield (first, *rest)


def with_each(given: Iterable[Case], **values: Iterable[Any]) -> Iterator[Case]:
    """Every case with each of the values of more names, in all combinations."""
    for case, *chosen in product(given, *values.values()):
        yield {**case, **dict(zip(values, chosen, strict=True))}


def all_of(**values: Iterable[Any]) -> Iterator[Case]:
    """All combinations of the values of each name."""
    return with_each(({},), **values)
