"""What claims of one's own are about, a pair of pmfs or two positions: the cases that a trial looks at."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from proofs_check.evidence.search import Space, pair_space, two_positions_space
from proofs_check.library.cases import NEAR, all_pairs, near_faces, pmf_of
from proofs_check.library.wide import Wide, wide_pairs
from proofs_check.statement.claims import PAIR, POSITIVE, TWO_POSITIONS, Case, Claim
from proofs_check.statement.findings import Effort

GRID = (6, 10)
"""Largest denominator of the grid of pairs on two and three tokens, in a default and a deep trial."""

FACES = (3, 6)
"""That of the pairs next to the faces of the simplex."""

GRID_OF_THREE = (2, 3)
"""Largest denominator of the three pairs of two positions on two tokens."""

MIXED = (1000, 10_000)
"""Cases of two positions whose pairs are of that grid or next to its faces, in a default and a deep trial: with shares
of 1e-7, and as many with those of 1e-30 too."""

WEIGHTS = (0, 1, 2, 3, 10, 10**3, 10**7, 10**15, 10**30)
"""Of drawn pmfs of two positions."""


@dataclass(frozen=True)
class Domain:
    """The cases of one kind of claim.

    Simple ones, what Hypothesis draws, where the optimiser walks, larger vocabularies, and the numbers of tokens that
    the solver is asked about; then words for the answer.
    """

    grid: Callable[[Effort], Iterator[Case]]
    draws: Callable[[], Any]
    spaces: tuple[Space, ...]
    wide: Wide
    solved: tuple[int, ...]
    cases: str
    grid_sizes: str
    draw_sizes: str


def domain_of(claim: Claim) -> Domain:
    """Where a claim is tried."""
    return DOMAINS[claim.about]


def _pairs_grid(effort: Effort) -> Iterator[Case]:
    yield from all_pairs(3, effort.pick(*GRID))
    yield from near_faces(all_pairs(3, effort.pick(*FACES)))


def _pairs_drawn() -> Any:
    from proofs_check.library.strategies import exact_pairs

    return exact_pairs()


# Two positions: a pair at the first one, and a pair at the second after each first token


def of_pairs(first: Case, following: Sequence[Case]) -> Case:
    """Two positions from the pair at the first one and the pairs after each first token.

    Examples
    --------
    >>> of_pairs({"p": (1, 0), "q": (0, 1)}, [{"p": (1, 0), "q": (1, 0)}, {"p": (0, 1), "q": (1, 0)}])
    {'p1': (1, 0), 'q1': (0, 1), 'p2': ((1, 0), (0, 1)), 'q2': ((1, 0), (1, 0))}
    """
    second = {f"{name}2": tuple(pair[name] for pair in following) for name in PAIR}
    return {"p1": first["p"], "q1": first["q"], **second}


def _two_positions_grid(effort: Effort) -> Iterator[Case]:
    """All pairs of small denominators, the simplest first; then such pairs mixed with pairs next to the faces."""
    pairs = list(all_pairs(2, effort.pick(*GRID_OF_THREE)))
    for chosen in sorted(product(range(len(pairs)), repeat=3), key=max):
        first, *following = (pairs[number] for number in chosen)
        yield of_pairs(first, following)
    rng = random.Random(effort.seed)
    for shares in (NEAR[:1], NEAR):
        mixed = [*pairs, *near_faces(pairs, shares)]
        yield from _followed(rng, rng.choices(mixed, k=effort.pick(*MIXED)), mixed)


def _followed(rng: random.Random, firsts: Iterable[Case], pairs: Sequence[Case]) -> Iterator[Case]:
    """Each first pair, and one of the pairs by chance after each token; positive ones after a positive one."""
    positive = [pair for pair in pairs if POSITIVE.met(**pair)]
    for first in firsts:
        yield of_pairs(first, rng.choices(positive if POSITIVE.met(**first) else pairs, k=len(first["p"])))


def _two_positions_drawn() -> Any:
    """On 2 or 3 tokens, from whole weights, with zeros or without; few draws for each, as an assumption may drop it."""
    from hypothesis import strategies as st

    def of(tokens: int, weights: Sequence[int]) -> Any:
        shares = st.lists(
            st.sampled_from(weights), min_size=2 * tokens * (1 + tokens), max_size=2 * tokens * (1 + tokens)
        )
        alike = st.lists(st.sampled_from((False, False, False, True)), min_size=1 + tokens, max_size=1 + tokens)
        return st.builds(_weighed, shares, alike)

    return st.one_of([of(tokens, weights) for weights in (WEIGHTS, WEIGHTS[1:]) for tokens in (2, 3)])


def _weighed(weights: Sequence[int], alike: Sequence[bool]) -> Case:
    """Two positions from the weights of all pmfs; a pair that is alike has p = q."""
    tokens = len(alike) - 1
    rows = (weights[start : start + tokens] for start in range(0, len(weights), tokens))
    pmfs = iter([pmf_of(row if any(row) else [1] * tokens) for row in rows])
    first, *following = ({"p": p, "q": p if same else q} for p, q, same in zip(pmfs, pmfs, alike, strict=True))
    return of_pairs(first, following)


def wide_two_positions(seed: int, tokens: int, rounds: int = 1) -> Iterator[Case]:
    """Every pair of two shapes at the first position, followed by such pairs."""
    rng, pairs = random.Random(f"two positions, {seed}, {tokens}"), list(wide_pairs(seed, tokens, rounds))
    yield from _followed(rng, pairs, pairs)


DOMAINS: Mapping[tuple[str, ...], Domain] = {
    PAIR: Domain(
        _pairs_grid,
        _pairs_drawn,
        (*map(pair_space, (2, 3, 4)), *(pair_space(size, faces=True) for size in (3, 4))),
        wide_pairs,
        (2, 3),
        "pairs",
        "V up to 3",
        "V up to 5",
    ),
    TWO_POSITIONS: Domain(
        _two_positions_grid,
        _two_positions_drawn,
        (*map(two_positions_space, (2, 3)), two_positions_space(2, faces=True)),
        wide_two_positions,
        (2,),
        "cases",
        "V = 2",
        "V up to 3",
    ),
}
"""By the names that a claim is given."""
