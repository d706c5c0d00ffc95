"""Larger vocabularies: pmfs of named shapes on up to 64 tokens, where no solver and no grid reaches.

A claim may hold on 2 and 3 tokens alone, as sum p^2 >= 1/6 does on at most 6.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from itertools import product

from proofs_check.evidence.judge import judge_all
from proofs_check.library.cases import Pmf, pmf_of, random_pmf
from proofs_check.statement.claims import AssumptionError, Case, Claim
from proofs_check.statement.findings import Effort, Finding, together

SIZES = (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32, 48, 64)
"""Vocabularies tried, the smallest first: a claim whose cost explodes with V is stopped before it hangs."""

SECONDS = (20.0, 300.0)
"""No further case is begun after this time, in a default and a deep search."""

ROUNDS = (1, 10)
"""How often the shapes are drawn, in a default and a deep search."""

SPREAD = 12
"""Weights of the random pmfs span this many powers of two."""


def shapes(rng: random.Random, tokens: int) -> dict[str, Pmf]:
    """Pmfs on `tokens` tokens: flat, geometric both ways, two tokens, nearly two, one and a flat rest, random."""
    few, top = rng.sample(range(tokens), 2), rng.randrange(tokens)
    two = [rng.randint(1, 9) if place in few else 0 for place in range(tokens)]
    return {
        "flat": pmf_of([1] * tokens),
        "falling": pmf_of([2 ** (tokens - 1 - place) for place in range(tokens)]),
        "rising": pmf_of([2**place for place in range(tokens)]),
        "sparse": pmf_of(two),
        "nearly sparse": pmf_of([10**7 * weight or 1 for weight in two]),
        "peaked": pmf_of([9 * tokens if place == top else 1 for place in range(tokens)]),
        "random": random_pmf(rng, tokens, SPREAD),
    }


def wide_pairs(seed: int, tokens: int, rounds: int = 1) -> Iterator[Case]:
    """Every pair of two shapes, each drawn for its side, as often as there are rounds."""
    rng = random.Random(f"{seed}, {tokens}")
    for _ in range(rounds):
        for p, q in product(shapes(rng, tokens).values(), shapes(rng, tokens).values()):
            yield {"p": p, "q": q}


Wide = Callable[[int, int, int], Iterator[Case]]
"""Cases of a seed, on a number of tokens, in so many rounds."""


def wide_search(claim: Claim, effort: Effort, cases: Wide = wide_pairs) -> Finding | None:
    """Judge a claim on cases of every size, up to the first that refutes it; None if none met the assumptions."""
    deadline = time.monotonic() + effort.pick(*SECONDS)
    finding: Finding | None = None
    for tokens in SIZES:
        try:
            here = judge_all(claim, _until(deadline, cases(effort.seed, tokens, effort.pick(*ROUNDS))))
        except AssumptionError:  # none of this size meets the assumptions, or there was no time
            continue
        finding = together(finding, here) if finding else here
        if finding.status == "refuted":
            break
    return finding


def _until(deadline: float, pairs: Iterator[Case]) -> Iterator[Case]:
    """The pairs, as long as there is time."""
    for pair in pairs:
        if time.monotonic() >= deadline:
            return
        yield pair
