"""Acceptance from entropies alone (A1, A4): against explicit pmfs, at the ends, and where bounds are attained."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import Floats, pairs, theorem
from spectheory import entropy, kl_divergence, total_variation
from spectheory.errors import SettingError
from spectheory.limits import (
    acceptance_at_least,
    first_choice_at_least,
    first_choice_at_most,
    race_acceptance_at_least,
    sufficient_divergence,
    total_variation_at_most,
)
from spectheory.prediction.bounds_answer import EarlyAnswer, bounds
from spectheory.verification import RaceVerification, TokenVerification
from tests.made_up import each, refused

ROUNDING = 1e-9


@theorem
@given(st.lists(pairs(), min_size=1, max_size=4))
def test_means_over_positions_obey_the_bounds(text: list[tuple[Floats, Floats]]) -> None:
    """A1 and A2 from the mean KL: no text of up to four positions is below the bounds."""
    divergence = float(np.mean([kl_divergence(p, q) for p, q in text]))
    token, race = (
        float(np.mean([rule.acceptance(p, q) for p, q in text])) for rule in (TokenVerification(), RaceVerification())
    )
    assert token >= acceptance_at_least(divergence) - ROUNDING
    assert race >= race_acceptance_at_least(divergence) - ROUNDING


@theorem
@given(st.integers(2, 5).flatmap(lambda v: st.lists(pairs(v).map(lambda pair: pair[0]), min_size=1, max_size=4)))
def test_first_choices_obey_the_bounds(text: list[Floats]) -> None:
    """A4 from the mean entropy, for the vocabulary of the longest pmf."""
    tokens = max(2, *(len(p) for p in text))
    best, nats = float(np.mean([p.max() for p in text])), float(np.mean([entropy(p) for p in text]))
    assert first_choice_at_least(nats) - ROUNDING <= best <= first_choice_at_most(nats, tokens) + ROUNDING


def test_bounds_are_nearly_attained() -> None:
    """Pinsker's form for small steps, and Fano's where all other tokens are equally probable."""
    p, q = np.array([0.5, 0.5]), np.array([0.51, 0.49])
    gap = total_variation_at_most(float(kl_divergence(p, q))) / float(total_variation(p, q)) - 1
    assert 0 <= gap < 1e-3
    for misses in (0.001, 0.3, 0.8):
        pmf = np.array([1 - misses, *[misses / 9] * 9])
        assert math.isclose(first_choice_at_most(float(entropy(pmf)), 10), 1 - misses, rel_tol=1e-9)
    assert math.isclose(first_choice_at_least(math.log(8)), first_choice_at_most(math.log(8), 8), rel_tol=1e-12)


def test_sharper_constants_would_fail() -> None:
    """Negative controls: a twentieth less than each bound on TV, or on misses, is refuted by a pair."""
    p, q = np.array([0.5, 0.5]), np.array([0.51, 0.49])
    assert total_variation(p, q) > 0.95 * total_variation_at_most(float(kl_divergence(p, q)))
    pmf = np.array([0.7, *[0.3 / 9] * 9])
    assert 1 - pmf.max() < 1.05 * (1 - first_choice_at_most(float(entropy(pmf)), 10))


def test_equal_means_say_nothing_of_the_upper_side() -> None:
    """The same KL, nearly full acceptance and hardly any: no function of KL but 1 is an upper bound."""
    p, q = np.array([1e-3, 1 - 1e-3]), np.array([math.exp(-5000 - math.log(1e3)), 1.0])
    assert kl_divergence(p, q) > 4
    assert TokenVerification().acceptance(p, q) > 0.99
    far = np.array([math.exp(-5.0), 1 - math.exp(-5.0)])
    assert TokenVerification().acceptance(np.array([1.0, 0.0]), far) < 0.01


@each("acceptance", (0.0, 1e-9, 0.1, 0.106, 0.11, 0.5, 0.9, 1 - 1e-9, 1.0))
def test_the_sufficient_divergence_undoes_the_bound(acceptance: float) -> None:
    assert math.isclose(acceptance_at_least(sufficient_divergence(acceptance)), acceptance, rel_tol=1e-6, abs_tol=1e-12)


def test_ends() -> None:
    assert (acceptance_at_least(0.0), acceptance_at_least(math.inf)) == (1.0, 0.0)
    assert (first_choice_at_most(0.0, 7), first_choice_at_most(0.0, 1), first_choice_at_least(0.0)) == (1.0, 1.0, 1.0)
    assert first_choice_at_most(math.log(7), 7) == 1 / 7
    assert 0 < 1 - first_choice_at_most(1e-9, 50_000) < 1e-9


def test_bad_numbers_are_refused() -> None:
    for bad in (-0.1, math.nan):
        refused(lambda bad=bad: acceptance_at_least(bad), SettingError, "must be >= 0 nats")
        refused(lambda bad=bad: first_choice_at_least(bad), SettingError, "must be >= 0 nats")
    refused(lambda: sufficient_divergence(1.1), SettingError, "must be in [0, 1]")
    refused(lambda: first_choice_at_most(3.0, 2), SettingError, "must be in [0, log 2 = 0.693147] nats")
    refused(lambda: first_choice_at_most(0.5, 0), SettingError, "vocabulary")


@each("k", [1, 3, 8])
def test_tokens_per_call_that_entropies_assure(k: int) -> None:
    """Against exact calls of positions with pmfs of their own, evenly far or in clusters; a quarter of the KL fails."""
    near, far = ((0.5, 0.5), (0.5, 0.5)), ((0.75, 0.25), (0.25, 0.75))
    fails = 0
    for positions in ([far] * 400, [far] * 200 + [near] * 200, [near, far] * 200):
        target = float(np.mean([entropy(np.array(p)) for p, _ in positions]))
        divergence = float(np.mean([kl_divergence(np.array(p), np.array(q)) for p, q in positions]))
        calls = [0.0] * (len(positions) + k + 2)
        for n in reversed(range(len(positions))):
            reach, value = 1.0, 1.0
            for depth, (p, q) in enumerate(positions[n : n + k]):
                overlap = sum(map(min, p, q))
                value += reach * (1 - overlap) * calls[n + depth + 1]
                reach *= overlap
            calls[n] = value + reach * calls[n + k + 1]
        tokens = len(positions) / (calls[0] - k / (k + 1))
        assured, less = (
            bounds(target_nats=target, draft_nats=target + share * divergence, k=[k]) for share in (1, 0.25)
        )
        assert isinstance(assured, EarlyAnswer)
        assert isinstance(less, EarlyAnswer)
        assert assured.assured[0].tokens_per_call <= tokens
        assert assured.assured[0].race < assured.assured[0].tokens_per_call
        fails += less.assured[0].tokens_per_call > len(positions) / calls[0]
    assert fails
