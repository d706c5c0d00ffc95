"""Rules that draft to the horizon T of a text, run in fractions: where they reject, what they call and write.

The twin of :mod:`spectheory.limits.rejections` that knows no formula of Y1-Y6: models are tables of pmfs, one for every
prefix, rules are those of :mod:`proofs_check.algorithms.enumeration` and any rule of Y2's class.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, product

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from proofs_check.algorithms.enumeration import CallLaw, Decoding, Model, Prefix, Rule, draft_paths, output_law
from proofs_check.library import cases
from proofs_check.library.strategies import models
from proofs_check.statement.arithmetic import Real, absolute, floats, positive_part
from proofs_check.statement.claims import Case
from proofs_check.statement.fractions import Fraction

Pmf = tuple[Real, ...]
Table = Mapping[Prefix, Pmf]
"""A pmf after every prefix shorter than the horizon."""

Chain = tuple[tuple[Pmf, ...], ...]
"""Transition rows ``[steps][tokens]``."""

Reach = Mapping[Prefix, Real]
"""Prefixes with their probability."""

EMPTY: Reach = {(): 1}

Law = Callable[[Prefix], Pmf]


def distance(p: Sequence[Real], q: Sequence[Real]) -> Real:
    """TV(p, q) = sum |p - q|/2."""
    return sum(absolute(a - b) for a, b in zip(p, q, strict=True)) / 2


def excess(p: Pmf, q: Pmf) -> Pmf:
    """(p - q)+, what is recovered from after a rejection."""
    return tuple(positive_part(a - b) for a, b in zip(p, q, strict=True))


def steps_of(table: Table) -> int:
    """The horizon T of a table."""
    return 1 + max(map(len, table))


def model_of(table: Table) -> Model:
    """The table as a model; what a bonus token past the horizon is drawn from does not matter, so anything serves."""
    anything = next(iter(table.values()))
    return lambda prefix: table.get(prefix, anything)


def followed(reach: Reach, table: Table) -> Reach:
    """The law of the prefixes that are one token longer."""
    return {(*prefix, x): mass * share for prefix, mass in reach.items() for x, share in enumerate(table[prefix])}


def rejected_positions(accepted: Sequence[int], steps: int) -> list[int]:
    """Where the calls of a text ended in a rejection; a call that reaches past the horizon did not."""
    return [end for end in accumulate(count + 1 for count in accepted) if end <= steps]


def decoded(rule: Rule, target: Table, draft: Table) -> tuple[Pmf, Real, dict[Prefix, Real]]:
    """Run a rule that drafts to the horizon: P(reject at n) for n = 1..T, expected calls, the law of the text."""
    steps = steps_of(target)
    law = Decoding(rule, k=steps, length=steps, spare=0).law(model_of(target), model_of(draft))
    profile, calls = [Fraction(0)] * steps, Fraction(0)
    for (_, accepted), share in law.items():
        calls += share * len(accepted)
        for n in rejected_positions(accepted, steps):
            profile[n - 1] += share
    return tuple(profile), calls, {text: share for text, share in output_law(law).items() if share > 0}


def rule_of_class(accept: Law, recovery: Law) -> Rule:
    """Accept a draft token with a probability of its prefix and itself, else draw from a recovery law of the prefix."""

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        law: CallLaw = {}

        def add(accepted: Prefix, last: Pmf, weight: Fraction) -> None:
            for token, share in enumerate(last):
                if weight * share > 0:
                    key = (*accepted, token), len(accepted)
                    law[key] = law.get(key, Fraction(0)) + weight * share

        for path, drawn in draft_paths(draft, prefix, k):
            alive = drawn
            for i, token in enumerate(path):
                b = accept(prefix + path[:i])[token]
                if b < 1:
                    add(path[:i], recovery(prefix + path[:i]), alive * (1 - b))
                alive *= b
            add(path, target(prefix + path), alive)
        return law

    return call


def outcome(q: Pmf, b: Pmf, r: Pmf) -> tuple[Real, Pmf]:
    """One position: P(reject) = c = sum (1-b)q and the output law bq + cr."""
    rejected = sum((1 - accept) * share for accept, share in zip(b, q, strict=True))
    return rejected, tuple(accept * share + rejected * last for accept, share, last in zip(b, q, r, strict=True))


# Cases


def tables(seed: int, sizes: Sequence[tuple[int, int]], count: int) -> Iterator[Case]:
    """Random models of the whole prefix, zeros among their entries, `count` for each (tokens, steps)."""
    rng = random.Random(seed)
    for (tokens, steps), _ in product(sizes, range(count)):
        yield {name: cases.random_model(rng, tokens, steps) for name in ("target", "draft")}


def drawn_tables(tokens: int, steps: int) -> st.SearchStrategy[Case]:
    """Models of the whole prefix with extreme entries."""
    return st.fixed_dictionaries({name: models(tokens, steps) for name in ("target", "draft")})


def chains(seed: int, sizes: Sequence[tuple[int, int]], count: int) -> Iterator[Case]:
    """Random non-stationary Markov chains, and the pmf of the token before the first step."""
    rng = random.Random(seed)

    def rows(tokens: int, steps: int) -> Chain:
        return tuple(tuple(cases.random_pmf(rng, tokens, 3) for _ in range(tokens)) for _ in range(steps))

    for size, _ in product(sizes, range(count)):
        yield {"target": rows(*size), "draft": rows(*size), "initial": cases.random_pmf(rng, size[0], 3)}


def table_of(chain: Chain) -> Table:
    """A chain as a table; prefixes begin with the token before the first step."""
    tokens = range(len(chain[0]))
    return {prefix: chain[n - 1][prefix[-1]] for n in range(1, len(chain) + 1) for prefix in product(tokens, repeat=n)}


def start_of(initial: Pmf) -> Reach:
    """The law of the token before the first step, as prefixes."""
    return {(x,): share for x, share in enumerate(initial)}


def array_of(chain: Chain) -> NDArray[np.float64]:
    """A chain as an array ``[T, V, V]``."""
    return np.array([[floats(row) for row in matrix] for matrix in chain])
