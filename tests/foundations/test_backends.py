"""Functions of pmfs on torch arrays: the numbers of numpy, batched, and nothing copied to the host on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import spectheory
from spectheory import limits, verification
from spectheory.drafting import KAry, exit_law, expected_tokens, node_weights, survival
from spectheory.verification.biased import BiasedVerification
from tests.made_up import each

EQUAL = 1e-12
"""Two libraries' sums of a few dozen float64 terms, and their logarithms."""

RNG = np.random.default_rng(7)
P, Q = RNG.dirichlet(np.full(7, 0.6), (2, 3)), RNG.dirichlet(np.full(7, 0.6), (2, 3))
CHAINS = RNG.dirichlet(np.ones(4), (2, 5, 4))
INITIAL = np.full(4, 0.25)
TOKENS = RNG.integers(7, size=(2, 3))
LAW = RNG.dirichlet(np.ones(4), 3)

PAIR_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(spectheory, name)
    for name in (
        "chi_square",
        "harmonic_mean_distance",
        "harmonic_mean_similarity",
        "kl_divergence",
        "total_variation",
    )
}
PAIR_FUNCTIONS |= {
    "renyi": lambda p, q: spectheory.renyi_divergence(p, q, 0.5),
    "hockey stick": lambda p, q: spectheory.hockey_stick(p, q, 1.5),
    "optimal": lambda p, q: verification.optimal_acceptance(p, q, 3),
    "gumbel bound": lambda p, q: verification.GumbelList().acceptance_bound(p, q, 3),
    "mixture": lambda p, q: limits.mixture_target(p, q, 0.3),
    "front": lambda p, q: limits.bias_frontier(p, q).uno,
    "race k=2": lambda p, q: verification.RaceVerification().acceptance(p, q, 2),
    "k-seq": lambda p, q: verification.KSeq().acceptance(p, q, 2),
    "biased": lambda p, q: BiasedVerification(0.5).acceptance_given(p, q),
    "biased loss": lambda p, q: limits.biased_loss(p, q, 1 + 0 * p),
    "gumbel": lambda p, q: verification.GumbelList().acceptance(p, q, 2),
    "distinct": lambda p, q: verification.RecursiveRejection(replacement=False).rank_pmf(p, q, 2),
}
for _rule in verification.RULES.values():
    PAIR_FUNCTIONS[f"{_rule.name} acceptance"] = _rule.acceptance
    PAIR_FUNCTIONS[f"{_rule.name} given"] = _rule.acceptance_given
    if isinstance(_rule, verification.RankRule):
        PAIR_FUNCTIONS[f"{_rule.name} ranks"] = lambda p, q, rule=_rule: rule.rank_pmf(p, q, 3)
        PAIR_FUNCTIONS[f"{_rule.name} ranks given"] = lambda p, q, rule=_rule: rule.rank_pmf_given(p, q, TOKENS, 3)

OTHERS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "entropy": (spectheory.entropy, (P,)),
    "second log-moment": (spectheory.second_log_moment, (P,)),
    "rejections": (limits.expected_rejections, (*CHAINS, INITIAL)),
    "batch": (lambda p, q, i: limits.batch_expected_rejections(p, q, i, drafts=3), (*CHAINS, INITIAL)),
    "batch limit": (limits.batch_limit, (*CHAINS, INITIAL)),
    "tokens": (lambda law: expected_tokens(KAry((2, 3)), law), (LAW,)),
    "weights": (lambda law: node_weights(KAry((2, 3)), law), (LAW,)),
    "survival": (lambda law: survival(KAry((2, 3)), law), (LAW,)),
    "exit law": (lambda law: exit_law(KAry((2, 2)), law), (LAW,)),
    "rank entropy": (verification.rank_entropy, (LAW,)),
}
CALLS = {name: (function, (P, Q)) for name, function in PAIR_FUNCTIONS.items()} | OTHERS


@pytest.fixture
def no_way_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("an array was copied to the host")

    for way in ("numpy", "cpu", "tolist", "__array__"):
        monkeypatch.setattr(torch.Tensor, way, refused)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_torch_gives_the_numbers_of_numpy(name: str, no_way_to_the_host: None, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arrays = CALLS[name]
    result = function(*map(torch.from_numpy, arrays))
    assert isinstance(result, torch.Tensor)
    monkeypatch.undo()
    expected = function(*arrays)
    assert result.dtype == torch.from_numpy(np.asarray(expected)).dtype
    np.testing.assert_allclose(result.numpy(), expected, rtol=EQUAL, atol=EQUAL)


def test_a_copy_would_be_seen(no_way_to_the_host: None) -> None:
    """Negative control."""
    with pytest.raises(AssertionError, match="copied to the host"):
        np.asarray(torch.ones(3))


@each("name", sorted(name for name in PAIR_FUNCTIONS if not name.endswith("ranks given")))
def test_no_position_gives_no_number(name: str) -> None:
    """Batches of zero positions are batches (where the call does not fix their tokens)."""
    none = np.empty((0, 3))
    expected = np.shape(PAIR_FUNCTIONS[name](np.full((1, 3), 1 / 3), np.full((1, 3), 1 / 3)))
    assert np.shape(PAIR_FUNCTIONS[name](none, none)) == (0, *expected[1:])


def test_single_precision_keeps_what_it_can() -> None:
    """Prefix sums run in double precision: at 262,144 tokens no more than the rounding of the pmfs is lost."""
    rng = np.random.default_rng(8)
    logits = 3 * rng.standard_normal(262_144)
    pmfs = [np.exp(x - np.logaddexp.reduce(x)) for x in (logits, logits + rng.standard_normal(262_144))]
    single = [pmf.astype(np.float32) for pmf in pmfs]
    for rule in (verification.RaceVerification(), verification.PoissonRace()):
        exact = float(rule.acceptance(*pmfs))
        assert rule.acceptance(*single).dtype == np.float32
        assert float(rule.acceptance(*single)) == pytest.approx(exact, abs=1e-6)
        assert float(rule.acceptance(*map(torch.from_numpy, single))) == pytest.approx(exact, abs=1e-6)
    exact = verification.optimal_acceptances(*pmfs, 3)
    np.testing.assert_allclose(verification.optimal_acceptances(*single, 3), exact, atol=1e-6)
