"""The least cost of a decoding with drafts at a price: its ends, its order, and a call of one draft by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from spectheory.limits import least_decoding_cost
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import BlockVerification

Floats = NDArray[np.float64]
TOKENS, LENGTH = 2, 4
ROUNDING = 1e-12


def models(seed: int) -> list[list[Floats]]:
    """Random conditional pmfs of target and draft by depth."""
    rng = np.random.default_rng(seed)
    return [
        [rng.dirichlet(np.ones(TOKENS), (TOKENS,) * n).reshape((TOKENS,) * (n + 1)) for n in range(LENGTH)]
        for _ in range(2)
    ]


def block_calls(target: list[Floats], draft: list[Floats], k: int) -> float:
    """Block verification's expected calls, along all texts."""
    texts = list(product(range(TOKENS), repeat=LENGTH))
    p, q = ([[model[n][text[: n + 1]] for n in range(LENGTH)] for text in texts] for model in (target, draft))
    columns = {"log_target": np.log(p).ravel(), "log_draft": np.log(q).ravel()}
    survival = BlockVerification().path_survival(columns, k)
    return float(np.prod(p, axis=1) @ calls_of_texts(survival, np.full(len(texts), LENGTH)).expected)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_free_drafts_are_block_verification_and_dear_ones_plain_decoding(k: int) -> None:
    target, draft = models(k)
    assert least_decoding_cost(target, draft, k, 0.0) == pytest.approx(block_calls(target, draft, k), rel=ROUNDING)
    assert least_decoding_cost(target, draft, k, 1.0) == pytest.approx(LENGTH, rel=ROUNDING)


def test_it_rises_with_the_price_and_falls_with_the_drafts() -> None:
    """Concave in the price, too: the least of costs that are linear in it."""
    target, draft = models(7)
    costs = np.array([[least_decoding_cost(target, draft, k, c) for c in (0.0, 0.2, 0.4, 0.6)] for k in (1, 2, 3)])
    assert (np.diff(costs, axis=1) >= -ROUNDING).all()
    assert (np.diff(costs, axis=0) <= ROUNDING).all()
    assert (np.diff(costs, 2, axis=1) <= ROUNDING).all()
    assert costs[2, 0] < costs[0, 0] - 0.01


def test_one_draft_of_two_tokens_by_hand() -> None:
    """2 + c r - sum min(p, q r), at the best r; control: r = 1 is not best for this pair."""
    p, q, c = np.array([0.5, 0.3, 0.2]), np.array([0.9, 0.1, 0.0]), 0.3
    shares = np.linspace(0, 1, 901)
    costs = 2 + c * shares - np.minimum(p[:, None], q[:, None] * shares).sum(axis=0)
    found = least_decoding_cost([p, np.tile(p, (3, 1))], [q, np.tile(q, (3, 1))], 1, c)
    assert found == pytest.approx(costs.min(), abs=1e-9)
    assert costs.min() < costs[-1] - 0.05
