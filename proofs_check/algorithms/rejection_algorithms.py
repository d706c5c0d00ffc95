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

from proofs_check.algorithms.enumeration import Calls, Decoding, Model, Prefix, Rule, draft_paths, output_law, outputs
from proofs_check.evidence.search import Space, softmax
from proofs_check.library import cases
from proofs_check.library.strategies import exact_pmfs, models
from proofs_check.statement.arithmetic import Real, absolute, floats, is_zero, positive_part, smaller
from proofs_check.statement.claims import Case
from proofs_check.statement.findings import Effort
from proofs_check.statement.fractions import Fraction, law, law_of, total

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
    whole = Decoding(rule, k=steps, length=steps, spare=0).law(model_of(target), model_of(draft))
    rejected = law((n, share) for (_, a), share in whole.items() for n in rejected_positions(a, steps))
    calls = total(share * len(accepted) for (_, accepted), share in whole.items())
    return tuple(rejected.get(n, Fraction(0)) for n in range(1, steps + 1)), calls, output_law(whole)


def rule_of_class(accept: Law, recovery: Law) -> Rule:
    """Accept a draft token with a probability of its prefix and itself, else draw from a recovery law of the prefix."""

    @law_of
    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> Calls:
        for path, alive in draft_paths(draft, prefix, k):
            for i, token in enumerate(path):
                b = accept(prefix + path[:i])[token]
                if b < 1:
                    yield from outputs(path[:i], recovery(prefix + path[:i]), alive * (1 - b))
                alive *= b
            yield from outputs(path, target(prefix + path), alive)

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


def one_model(tokens: int, steps: int, denominator: int) -> Iterator[Case]:
    """Pairs that serve every prefix, by denominator."""
    every = cases.prefixes(tokens, steps)
    for pair in cases.pairs(tokens, denominator):
        yield {"target": dict.fromkeys(every, pair["p"]), "draft": dict.fromkeys(every, pair["q"])}


# Rules that accept more than they may, at one position and along a text: their output law itself, not its formulas.


def accepted(p: Pmf, q: Pmf, shares: Pmf) -> Pmf:
    """Over-acceptance b: each token a share of the way from min(1, p/q) to 1."""
    least = (smaller(1, a / b) if not is_zero(b) else 0 * b for a, b in zip(p, q, strict=True))
    return tuple(low + share * (1 - low) for low, share in zip(least, shares, strict=True))


def kept(q: Pmf, b: Pmf) -> Pmf:
    """bq, the law of the accepted drafts."""
    return tuple(accept * share for accept, share in zip(b, q, strict=True))


def normed(weights: Pmf, otherwise: Pmf) -> Pmf:
    """The pmf proportional to the weights; another one where all are 0."""
    total = sum(weights)
    return otherwise if is_zero(total) else tuple(weight / total for weight in weights)


def loss_of(p: Pmf, q: Pmf, b: Pmf, r: Pmf) -> Real:
    """TV between the output law of the rule with recovery law r and the target."""
    return distance(outcome(q, b, r)[1], p)


def stated_loss(p: Pmf, q: Pmf, b: Pmf) -> Real:
    """Loss* = sum |p - bq|/2 - sum (1 - b)q/2."""
    return distance(p, kept(q, b)) - outcome(q, b, q)[0] / 2


def best_recovery(p: Pmf, q: Pmf, b: Pmf) -> Pmf:
    """The law proportional to (p - bq)+."""
    return normed(excess(p, kept(q, b)), p)


def mixture(p: Pmf, q: Pmf, theta: Real) -> Pmf:
    """(1 - theta) p + theta q."""
    return tuple((1 - theta) * a + theta * b for a, b in zip(p, q, strict=True))


def mixed(target: Table, draft: Table, theta: Real) -> Table:
    """The mixture after every prefix."""
    return {prefix: mixture(p, draft[prefix], theta) for prefix, p in target.items()}


def standard(p: Pmf, q: Pmf) -> Pmf:
    """The recovery law of token verification, norm (p - q)+."""
    return normed(excess(p, q), p)


def biased_rule(target: Table, draft: Table, theta: Real) -> Rule:
    """Acceptance (1 - theta) min(1, p/q) + theta, recovery of token verification."""

    def accept(prefix: Prefix) -> Pmf:
        return accepted(target[prefix], draft[prefix], (theta,) * len(target[prefix]))

    return rule_of_class(accept, lambda prefix: standard(target[prefix], draft[prefix]))


# Cases


def over_accepting(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 and 3 tokens with over-acceptances of a grid."""
    ends = (Fraction(0), Fraction(1, 3), Fraction(1))
    for pair, shares in product(cases.pairs(2, effort.pick(5, 8)), product(ends, repeat=2)):
        yield {**pair, "b": accepted(pair["p"], pair["q"], shares)}
    rng = random.Random(51)
    for pair in cases.random_pairs(52, effort.pick(300, 3000), 5):
        shares = tuple(Fraction(rng.randrange(5), 4) for _ in pair["p"])
        yield {**pair, "b": accepted(pair["p"], pair["q"], shares)}


def any_rule(effort: Effort) -> Iterator[Case]:
    """Acceptances from 0 to 1 and all recovery laws of a grid, 2 and 3 tokens."""
    ends = (Fraction(0), Fraction(1, 2), Fraction(2, 3), Fraction(1))
    rng = random.Random(53)
    for pair in cases.random_pairs(54, effort.pick(60, 600), 3, spread=4):
        b = tuple(rng.choice(ends) for _ in pair["p"])
        yield from cases.with_each([{**pair, "b": b}], r=cases.grid(len(b), 6))
    yield from cases.with_each(cases.pairs(2, 4), b=product(ends, repeat=2), r=cases.grid(2, 6))


def drawn_rules() -> st.SearchStrategy[Case]:
    """Extreme pairs on 3 tokens, any acceptance and any recovery law."""
    share = st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1)])
    laws = {name: exact_pmfs(3) for name in "pqr"}
    return st.fixed_dictionaries({**laws, "b": st.tuples(share, share, share)})


def rule_space(tokens: int) -> Space:
    """Pairs of pmfs, acceptances and recovery laws, for the optimiser."""

    def weights(x: NDArray[np.float64]) -> Case:
        *rows, shares = x.reshape(4, tokens)
        p, q, r = map(softmax, rows)
        return {"p": p, "q": q, "r": r, "b": tuple((1 / (1 + np.exp(-shares.clip(-30, 30)))).tolist())}

    return Space(4 * tokens, weights, "p q r")


THETAS = (Fraction(0), Fraction(1, 3), Fraction(3, 4), Fraction(1))


def mixed_pairs(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 tokens and random ones on up to 5, with each over-acceptance."""
    yield from cases.with_each(cases.pairs(2, effort.pick(4, 7)), theta=THETAS)
    yield from cases.with_each(cases.random_pairs(61, effort.pick(60, 600), 5), theta=THETAS)


def positions(effort: Effort) -> Iterator[Case]:
    """Random pairs at up to 5 positions."""
    rng = random.Random(62)
    for count in (1, 2, 5) * effort.pick(6, 60):
        pairs = tuple((case["p"], case["q"]) for case in cases.random_pairs(rng.randrange(10**6), count, 4))
        yield {"pairs": pairs, "thetas": tuple(rng.choice(THETAS) for _ in range(count))}


def drawn_mixtures() -> st.SearchStrategy[Case]:
    """3 tokens, entries of all sizes."""
    return st.fixed_dictionaries({"p": exact_pmfs(3), "q": exact_pmfs(3), "theta": st.sampled_from(THETAS)})
