"""B7 and L in their twins: masses, values and the linear programmes over all policies, which must be able to tell."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from proofs_check.library.cases import random_model
from proofs_check.statement.findings import Effort
from proofs_check.theorems.block.block_look_alikes import G, crowded, gadget, right, stopped_early
from proofs_check.theorems.path.head_cases import by_start, certain_head, from_start, heads
from proofs_check.theorems.path.start_limits import least_of_text, policies
from proofs_check.twins.block_values import (
    Goal,
    Problem,
    beyond,
    block_masses,
    expected_calls,
    fewest_calls,
    least,
    masses_of_law,
    stops,
    texts,
    token_masses,
    tokens_after,
)
from proofs_check.twins.path_theorem import block_survival, calls
from simulations.verdicts import call_programme
from simulations.verdicts.markov_calls import markov_calls
from spectheory.drafting import Chain
from spectheory.verification import BlockVerification, TokenVerification

SOLVED = 1e-8


def random_problem(seed: int, k: int, length: int, tokens: int = 2) -> Problem:
    rng = random.Random(seed)
    target, draft = (random_model(rng, tokens, length + k, 4) for _ in range(2))
    return texts(target.__getitem__, draft.__getitem__, k, length)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_policy_beats_block_verification_and_token_verification_is_beaten(k: int) -> None:
    """B7 at seeds of its own; the gap to token verification shows that the programme is no tautology."""
    gaps = []
    for seed in range(6):
        given = random_problem(100 * k + seed, k, 4)
        optimum = fewest_calls(given, remember=True)
        assert abs(optimum - expected_calls(given)(())) < SOLVED
        gaps.append(float(expected_calls(given, token_masses)(())) - optimum)
    assert min(gaps) > -SOLVED
    assert (max(gaps) > 1e-3) == (k > 1)


def test_the_programme_finds_less_where_the_theorem_does_not_hold() -> None:
    """Positive control: drafts by start, and a number of drafts that falls by two."""
    heads, falling = right((1, 2, 0, 0), k=2), right((1, 2, 0, 0), k=None)
    for given in (heads, falling):
        assert expected_calls(given)(()) == 3
        assert abs(fewest_calls(given) - 2) < SOLVED


def test_the_programme_finds_less_where_calls_need_not_be_fresh() -> None:
    """Positive control: the whole text has the target's law, and later calls know the coins of the first."""
    half = (Fraction(1, 2),) * 2
    coin = gadget(((1, 0), half), (half, (0, 1)), lead=0, k=1)  # type: ignore[arg-type]
    assert expected_calls(coin)(()) == Fraction(9, 4)
    assert abs(fewest_calls(coin) - 2.25) < SOLVED
    for remember in (False, True):
        assert abs(fewest_calls(coin, fresh=False, remember=remember) - 2) < SOLVED


def test_the_programme_knows_plain_decoding_and_perfect_drafts() -> None:
    """Disjoint drafts cost a call per token; drafts that are always right ceil(N/(k+1))."""
    one, other = (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    for draft, number in ((other, 5), (one, 2)):
        given = texts(lambda _: one, lambda _, draft=draft: draft, 2, 5)  # type: ignore[misc]
        assert abs(fewest_calls(given) - number) < SOLVED


def test_a_policy_may_not_repeat_its_text() -> None:
    """Losslessness is a constraint: a target and a draft of one token each that differ cannot agree."""
    target, draft = (Fraction(1, 2), Fraction(1, 2)), (Fraction(1), Fraction(0))
    given = texts(lambda _: target, lambda _: draft, 1, 2)
    assert abs(fewest_calls(given) - 1.5) < SOLVED
    assert expected_calls(given)(()) == Fraction(3, 2)


def test_other_goals_of_the_programme() -> None:
    """The least P(calls > 2) of any policy on gadget G, and the most tokens after two calls: block has neither."""
    given = gadget(**G)
    rarest = least(given, Goal(lambda start: float(len(start[1]) == 2), remember=True))
    assert abs(rarest - beyond(stopped_early(given, 1), 2)) < SOLVED
    assert rarest < beyond(given, 2) - Fraction(1, 10)
    third = Fraction(1, 3)
    given = crowded(2 * third, 2 * third, 3)
    most = -least(given, Goal(lambda start: -float(len(start[0])), over=2))
    assert abs(most - 6) < SOLVED
    assert tokens_after(given, 2) == Fraction(53, 9)
    one_call = -least(given, Goal(lambda start: -float(len(start[0])), over=1))
    assert abs(one_call - tokens_after(given, 1)) < SOLVED


def test_masses_say_where_a_call_stops() -> None:
    given = random_problem(7, 2, 4, tokens=3)
    for of in (block_masses, token_masses):
        masses = of(given, (0,))
        stopped = stops(given, (0,), masses)
        assert min(stopped.values()) >= 0
        assert sum(stopped.values()) == 1
    assert masses_of_law(given, {((0, 1), 1): Fraction(1, 4), ((2,), 0): Fraction(3, 4)}, 2)[1][0,] == Fraction(1, 4)


def test_costs_scale_the_value() -> None:
    given = random_problem(8, 2, 4)
    dear = replace(given, cost=lambda _: Fraction(3))
    assert expected_calls(dear)(()) == 3 * expected_calls(given)(())
    assert abs(fewest_calls(dear) - expected_calls(dear)(())) < SOLVED


# The figure: the programme over Markov chains, and the gadget's law


def test_the_programme_of_the_figure() -> None:
    """On Markov chains it has the same optimum as that over all texts, block verification's by the path theorem."""
    rng = np.random.default_rng(3)
    for k in (1, 2, 3):
        target, draft = rng.dirichlet(np.full(3, 0.6), (2, 3))
        initial = np.full(3, 1 / 3)
        optimum = call_programme.fewest_calls(target, draft, initial, length=7, k=k)
        calls = {
            rule.name: markov_calls(rule, target, draft, initial, length=7, tree=Chain(k).tree()).expected
            for rule in (BlockVerification(), TokenVerification())
        }
        assert abs(optimum - calls["block"]) < SOLVED
        assert (calls["token"] > optimum + 1e-4) == (k > 1)


def test_the_counterexample_of_heads() -> None:
    """From 0 drafts right, wrong; from 1 right, right; from 2 and 3 wrong: block 3 calls, L and the best policy 2."""
    case = certain_head((1, 2, 0, 0), 2)
    target, head = case["target"], case["head"]
    text = (0, 0, 0, 0)
    given = Problem(target.__getitem__, lambda start: from_start(head, start), lambda _: 2, lambda t: len(t) >= 4, 2)
    assert calls(by_start(block_survival, target.__getitem__, head, text), 2, 4)[0] == 3
    assert least_of_text("block", target, head, 2, text) == 2
    assert fewest_calls(given) == pytest.approx(2)


def test_no_policy_needs_fewer() -> None:
    """L is below the optimum and near it; the same recursion on token verification's survival is not below."""
    slack, wrong = [], 0
    for case in heads(Effort()):
        (compared,) = policies("block", **case)
        slack.append(float(compared.right - compared.left))
        (other,) = policies("token", **case)
        wrong += other.left > other.right
    assert 0 <= min(slack) <= max(slack) < 0.02, "calls, of at most 4"
    assert wrong > 3
