"""Gumbel lists, simulated, against R6; and what the kernels of lists take.

A cell is refuted wrongly with probability 1e-11 at most and there are fewer than 500, so this file fails wrongly with
probability below 5e-9, of the suite's 1e-6. With `TRIALS` trials a probability of 0.1 is known to 0.004, one of 0.5 to
0.007.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from simulations.draws import words
from simulations.kernels.candidates import _inverted
from simulations.kernels.gumbel_lists import gumbel_list, lazy_gumbel_list
from spectheory.verification import GumbelList, RaceVerification
from tests.made_up import each
from tests.simulations import laws
from tests.simulations.laws import Counts, Floats, apart, straying

TRIALS = 250_000


PAIRS: dict[str, tuple[Floats, Floats]] = {
    **laws.PAIRS,
    "one-hot target": (np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.3, 0.2])),
}


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 128, 200])
def test_inversion_in_blocks_is_plain_inversion(tokens: int) -> None:
    """Whatever the height; beyond the sum, where rounding alone can put it, it is the last token that has weight."""
    rng = np.random.default_rng(tokens)
    weights = rng.integers(0, 3, tokens).astype(np.float64)  # sums are exact in any order
    weights[:1] = 1
    weights[1 + tokens // 2 :] = 0
    plain = np.searchsorted(np.cumsum(weights), heights := np.arange(0, weights.sum(), 0.5), side="right")
    assert [_inverted(weights, height) for height in heights] == plain.tolist()
    assert _inverted(weights, float(weights.sum())) == np.flatnonzero(weights)[-1]


# R6


KERNELS = {"dense": gumbel_list, "lazy": lazy_gumbel_list}


@cache
def listed(kernel: str, name: str, k: int) -> Counts:
    return KERNELS[kernel](*PAIRS[name], k, TRIALS, state=words(12))


def stray(counts: Counts, row: int, chance: float) -> bool:
    """Whether the trials counted in a row or below it stray from their probability."""
    hits = int(counts[row:].sum())
    return straying([hits, int(counts.sum()) - hits], [chance, 1 - chance]) != []


@each("k", [1, 2, 4])
@each("name", PAIRS)
@each("kernel", KERNELS)
def test_gumbel_lists_have_the_law_of_r6(kernel: str, name: str, k: int) -> None:
    """Hits given the output, the output's law; and the paper's bound as the hits of the output's own race."""
    p, q = PAIRS[name]
    rule, counts = GumbelList(), listed(kernel, name, k)
    given = rule.acceptance_given(p, q, k)
    assert straying([counts[0], counts[1:].sum(axis=0)], [p * (1 - given), p * given]) == []
    assert not stray(counts, 2, float(rule.acceptance_bound(p, q, k)))


@each("tokens", [300, 20_000])
def test_lazy_gumbel_lists_at_many_tokens(tokens: int) -> None:
    """Against R6 with a hundredfold of the dense kernel's trials, the two against one another, and one control.

    At 20,000 tokens a difference of 0.13 of the two is seen, R6 is held to 0.005.
    """
    rng = np.random.default_rng(tokens)
    target, noise = 3 * rng.standard_normal(tokens), rng.standard_normal(tokens)
    p, q = (np.exp(logits) / np.exp(logits).sum() for logits in (target, target + noise))
    lazy, rule = lazy_gumbel_list(p, q, 4, 500_000, state=words(13)).sum(axis=1), GumbelList()
    assert not stray(lazy, 1, float(rule.acceptance(p, q, 4)))
    assert not stray(lazy, 2, float(rule.acceptance_bound(p, q, 4)))
    assert stray(lazy, 1, float(rule.acceptance(p, q, 3)))
    assert apart(gumbel_list(p, q, 4, 15_000_000 // tokens, state=words(14)).sum(axis=1), lazy) == []


@each("kernel", KERNELS)
def test_wrong_laws_of_r6_are_caught(kernel: str) -> None:
    """Negative controls at k = 4: the bound as the acceptance, and k independent attempts at the race."""
    for name in ("crossed", "draft lacks a token", "random"):
        p, q = PAIRS[name]
        counts, alpha = listed(kernel, name, 4), float(RaceVerification().acceptance(p, q))
        assert stray(counts, 1, float(GumbelList().acceptance_bound(p, q, 4)))
        assert stray(counts, 1, 1 - (1 - alpha) ** 4)
        assert stray(counts, 2, alpha)
