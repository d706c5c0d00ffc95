"""Families of random pmfs, from flat to nearly certain, at which the branching bounds are compared.

A family is a fixed population of pmfs, drawn once by a fixed seed; every prefix draws one of them. The law of a step
and its moments are then known exactly, so that a comparison has no sampling error but that of the simulated trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from proofs_check.branching_forms import best_t_form, leading, lorden_form, sharp_form
from proofs_check.claims import Case, Claim, Compared, at_least, at_most
from proofs_check.entries import Control, Evidence
from proofs_check.findings import Effort
from proofs_check.judge import judge_all
from spectheory.limits import StepLaw, random_tree_value

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]
"""Draws n pmfs on V tokens, unnormalised: generator, n, V."""


def _softmax(rng: np.random.Generator, n: int, tokens: int, spread: float) -> Floats:
    logits = spread * rng.standard_normal((n, tokens))
    return np.exp(logits - logits.max(axis=1, keepdims=True))


def _zipf(rng: np.random.Generator, n: int, tokens: int) -> Floats:
    """Powers of the rank with exponents uniform on [0.5, 3]."""
    return np.arange(1, tokens + 1) ** -rng.uniform(0.5, 3, (n, 1))


def _two_kinds(rng: np.random.Generator, n: int, tokens: int) -> Floats:
    """One token with 0.99 in four fifths of the contexts, uniform in the others."""
    certain = rng.random((n, 1)) < 0.8
    first = np.arange(tokens) == 0
    return np.where(certain, np.where(first, 0.99, 0.01 / (tokens - 1)), np.full(tokens, 1 / tokens))


MIXED = "nearly certain (80%) or flat"
"""Its trees differ most, so that it takes more of them."""

FAMILIES: dict[str, Draw] = {
    "Dirichlet, α = 1": lambda rng, n, tokens: rng.dirichlet(np.ones(tokens), n),
    "Dirichlet, α = 0.05": lambda rng, n, tokens: rng.dirichlet(np.full(tokens, 0.05), n),
    "softmax of normal logits, sd 2": lambda rng, n, tokens: _softmax(rng, n, tokens, 2.0),
    "softmax of normal logits, sd 5": lambda rng, n, tokens: _softmax(rng, n, tokens, 5.0),
    "Zipf, exponent 0.5 to 3": _zipf,
    MIXED: _two_kinds,
}
"""What a language model's pmfs are like lies among them: some contexts certain, some wide open."""


def population(name: str, pmfs: int, tokens: int) -> Floats:
    """The pmfs of a family, ``[pmfs, tokens]``; the same in every run.

    Examples
    --------
    >>> population("Zipf, exponent 0.5 to 3", 2, 3).round(2).tolist()
    [[0.85, 0.12, 0.04], [0.7, 0.2, 0.1]]
    """
    weights = FAMILIES[name](np.random.default_rng(list(FAMILIES).index(name)), pmfs, tokens)
    return weights / weights.sum(axis=1, keepdims=True)


def sampler(pmfs: Floats) -> Callable[[np.random.Generator, int], Floats]:
    """Draws pmfs of a population."""
    return lambda rng, n: pmfs[rng.integers(len(pmfs), size=n)]


CAPACITIES = (1, 4, 16, 64, 256, 1024, 4096)

PMFS, TOKENS = 256, 32
"""Size of the populations of the ledger; those of the benchmark are larger."""


@cache
def _simulated(name: str, capacity: int, trees: int) -> Fraction:
    """The upper end of the 95% interval of E[X]."""
    pmfs = population(name, PMFS, TOKENS)
    return Fraction(random_tree_value(sampler(pmfs), capacity, trees, rng=capacity).high)


def family_cases(effort: Effort) -> Iterator[Case]:
    """Every family at every capacity: its moments, and the upper end of the 95% interval of E[X]."""
    for name in FAMILIES:
        law = StepLaw.from_pmfs(population(name, PMFS, TOKENS))
        for capacity in CAPACITIES:
            trees = effort.pick(24, 240) * (4 if name == MIXED else 1)
            yield {
                "family": name,
                "capacity": Fraction(capacity),
                "mu": Fraction(law.mean),
                "mu2": Fraction(law.second_moment),
                "high": _simulated(name, capacity, trees),
            }


def comparison(family: str, capacity: Fraction, mu: Fraction, mu2: Fraction, high: Fraction) -> Iterator[Compared]:
    """E[X] below B2', B2' below B2, and from P = 64 on B1's leading term more than twice B2'."""
    form = sharp_form(mu, mu2, capacity)
    yield at_most(high, form)
    yield at_most(form, lorden_form(mu, mu2, capacity))
    yield at_most(form, best_t_form(mu, mu2, capacity))
    if family and capacity >= 64:
        yield at_least(leading(mu, mu2, capacity), 2 * form)


def families_below() -> Evidence:
    """Simulated best trees of six families below B2', at every capacity."""
    claim = Claim(
        "the 95% interval of E[X] lies below B2', B2' below B2, and B1's leading term is more than twice B2' from P "
        "= 64",
        comparison,
    )
    wrong = Claim(
        "E[X] is at most half of B2'",
        lambda family, capacity, mu, mu2, high: at_most(high, sharp_form(mu, mu2, capacity) / 2),
    )
    over = f"six families of random pmfs, {PMFS} pmfs on {TOKENS} tokens each, P = 1 to 4096, fixed seeds"
    return Evidence(
        "simulation",
        f"{claim.says}, {over}",
        lambda effort: judge_all(claim, family_cases(effort)),
        Control(wrong.says, lambda effort: judge_all(wrong, family_cases(effort))),
    )
