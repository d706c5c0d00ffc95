"""Whole decodings by every rule: the path theorem over states against enumeration, and simulations against it.

A comparison fails wrongly with probability `ALARM` at most, and there are fewer than 100, so this file fails wrongly
with probability below 1e-7, of the suite's 1e-6. With `TEXTS` texts an error of half a call in about five is seen; the
calls of another number of drafts, the negative control, are further off.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import simulations.simulators  # noqa: F401  registers
from proofs_check.agreement.path_cases import CHAINS, RANKED, TREES
from proofs_check.algorithms.enumeration import Decoding, Model
from proofs_check.theorems.path.call_counts import moments
from proofs_check.twins.tree_theorem import depth
from simulations.counts import Mean, Tally
from simulations.draws import Stream, words
from simulations.experiments.collect import run_batch
from simulations.experiments.tasks import registered, task
from simulations.reference.decoding import ALGORITHMS, DraftTree, Pair, decoded
from simulations.simulators.decoding import acceptance_of, calls_of
from simulations.verdicts.markov_calls import markov_calls
from simulations.verdicts.predictions import accepted_counts, agrees, compare, predictions
from spectheory.drafting import Chain, Tree
from spectheory.errors import SettingError
from spectheory.prediction.paths import calls_of_chains
from spectheory.verification import RULES

ALARM = 1e-9
TEXTS, LENGTH = 1200, 9
EXACT = 1e-12
"""Rounding of sums of a few thousand products near 1."""

TARGET = [[0.7, 0.1, 0.1, 0.1], [0.05, 0.8, 0.1, 0.05], [0.1, 0.1, 0.6, 0.2], [0.25, 0.0, 0.05, 0.7]]
DRAFT = [[0.6, 0.2, 0.2, 0.0], [0.1, 0.7, 0.1, 0.1], [0.05, 0.05, 0.8, 0.1], [0.2, 0.1, 0.1, 0.6]]
CHAINS_GIVEN = {"target": TARGET, "draft": DRAFT, "initial": [0.25] * 4, "length": LENGTH}
TREE = [[1], [2], [1, 1], [1, 2], [2, 1], [1, 1, 1]]
PATHS = {f"{rule}, chain": (rule, [[1], [1, 1]]) for rule in ALGORITHMS} | {
    f"{rule}, tree": (rule, TREE) for rule in ALGORITHMS if ALGORITHMS[rule].several
}


def test_every_rule_is_simulated() -> None:
    missing, unknown = set(RULES) - set(ALGORITHMS), set(ALGORITHMS) - set(RULES)
    assert (missing, unknown) == (set(), set()), f"no algorithm as written: {missing}; no such rule: {unknown}"


# The recursion over states, exactly

Rows = list[list[tuple[Fraction, ...]]]


def random_rows(rng: random.Random, tokens: int, steps: int) -> Rows:
    def pmf() -> tuple[Fraction, ...]:
        weights = [rng.choice([0, 1, 1, 2, 4, 7]) for _ in range(tokens - 1)] + [rng.choice([1, 3])]
        return tuple(Fraction(w, sum(weights)) for w in weights)

    return [[pmf() for _ in range(tokens)] for _ in range(steps)]


def model(rows: Rows) -> Model:
    return lambda prefix: rows[len(prefix) % len(rows)][prefix[-1] if prefix else 0]


def floats(rows: Rows, length: int) -> Any:
    return np.array(rows[0] if len(rows) == 1 else rows[:length], dtype=np.float64)


def small_cases() -> Iterator[tuple[Rows, Rows, int, int]]:
    """Target, draft, length, k: chains with one matrix, and with one for each position."""
    rng = random.Random(3)
    for tokens, length, k, stationary in ((3, 4, 2, False), (2, 5, 3, True), (3, 4, 2, True), (2, 4, 3, False)):
        steps = 1 if stationary else length + k + 1
        yield random_rows(rng, tokens, steps), random_rows(rng, tokens, steps), length, k


def distance(rule: str, target: Rows, draft: Rows, length: int, tree: Tree, law: Any) -> float:
    """How far mean and variance of the calls are from those of an enumerated law."""
    calls: dict[int, Fraction] = {}
    for (_, accepted), share in law.items():
        calls[len(accepted)] = calls.get(len(accepted), Fraction(0)) + share
    mean, variance = moments(calls)
    p, q = floats(target, length), floats(draft, length)
    law_moments = markov_calls(RULES[rule], p, q, np.eye(p.shape[-1])[0], length=length, tree=tree)
    return max(abs(law_moments.expected - float(mean)), abs(law_moments.variance - float(variance)))


@pytest.mark.parametrize("rule", CHAINS)
def test_chains_take_the_calls_that_are_enumerated(rule: str) -> None:
    off = 0.0
    for target, draft, length, k in small_cases():
        twin = CHAINS[rule]
        law = Decoding(twin.algorithm, k, length).law(twin.target(model(target)), model(draft))
        assert distance(rule, target, draft, length, Chain(k).tree(), law) < EXACT
        off = max(off, distance(rule, target, draft, length, Chain(1).tree(), law))
    assert off > 0.001, "another number of drafts must be seen"


@pytest.mark.parametrize("rule", RANKED)
def test_trees_take_the_calls_that_are_enumerated(rule: str) -> None:
    twin = RANKED[rule]
    for (target, draft, length, _), drafted in itertools.product(list(small_cases())[2:], TREES):
        if RULES[rule].consecutive and (1,) not in drafted:
            continue
        law = Decoding(twin.call(drafted, len), depth(drafted), length).law(model(target), model(draft))
        tree = Tree.from_paths(sorted(drafted, key=len))
        assert distance(rule, target, draft, length, tree, law) < EXACT


@pytest.mark.parametrize("rule", ["token", "block"])
def test_states_of_an_automaton_give_the_mean_over_texts(rule: str) -> None:
    """The library's calls of every text, weighted by its probability; tokens may lead to one state."""
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.full(3, 0.7), size=(2, 4))
    following, length, k = rng.integers(0, 4, size=(4, 3)), 6, 4
    mean = square = 0.0
    for text in itertools.product(range(3), repeat=length):
        passed = [0]
        for token in text:
            passed.append(int(following[passed[-1], token]))
        columns = {n: np.log(m[passed[:-1], text]) for n, m in (("log_target", p), ("log_draft", q))}
        survival = RULES[rule].path_survival(columns, k)
        calls = calls_of_chains(survival, np.array([length]), [k], variance=True)[k]
        share = float(np.exp(columns["log_target"].sum()))
        mean += share * float(calls.expected[0])
        square += share * float(calls.variance[0] + calls.expected[0] ** 2)
    of_texts = markov_calls(RULES[rule], p, q, np.eye(4)[0], length=length, tree=Chain(k).tree(), following=following)
    assert of_texts.expected == pytest.approx(mean, abs=EXACT)
    assert of_texts.variance == pytest.approx(square - mean**2, abs=1e-11)


def test_what_cannot_be_predicted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Tree.from_paths([(1,), (2,)])
    for rule in ("token", "block", "independent"):
        with pytest.raises(SettingError, match="one candidate"):
            markov_calls(RULES[rule], TARGET, DRAFT, [0.25] * 4, length=3, tree=batch)
    monkeypatch.setattr("simulations.verdicts.markov_calls.MOST_BRANCHES", 100)
    with pytest.raises(SettingError, match="branches at a time"):
        markov_calls(RULES["block"], TARGET, DRAFT, [0.25] * 4, length=9, tree=Chain(5).tree())


# Simulations


def simulated(kind: str, parameters: dict[str, Any], texts: int, seed: int = 5) -> Tally:
    made = task(kind, parameters, seed=seed, trials=texts)
    tally = run_batch(made, 0, registered(kind).run.__module__)
    assert isinstance(tally, Tally), tally
    return tally


@pytest.mark.parametrize("case", PATHS)
def test_decodings_take_the_calls_that_are_predicted(case: str) -> None:
    rule, paths = PATHS[case]
    parameters = {**CHAINS_GIVEN, "rule": rule, "paths": paths}
    tally = simulated("decode", parameters, TEXTS)
    assert all(compare(tally, predictions("decode", parameters), ALARM))
    wrong = calls_of("decode", {**parameters, "paths": [[1]]}).expected
    assert not agrees(tally, Mean("calls", 1, LENGTH), wrong, ALARM), "one draft must be told from more"
    accepted = tally.counts["accepted"]
    assert accepted.sum() == tally.moments["calls"].total
    assert accepted @ np.arange(1, len(accepted) + 1) == TEXTS * LENGTH


@pytest.mark.parametrize("rule", [rule for rule in ALGORITHMS if rule != "greedy"])
def test_decoded_texts_are_the_targets(rule: str) -> None:
    """The last token of short texts, whose law is a row of a power of the chain."""
    tree = DraftTree(tuple(path) for path in (TREE if ALGORITHMS[rule].several else [[1], [1, 1]]))
    pair, stream, length = Pair(np.array(TARGET), np.array(DRAFT)), Stream(words(6)), 4
    last = [[*decoded(ALGORITHMS[rule].call, tree, pair, 2, length, stream)][-1].tokens[-1] for _ in range(600)]
    law = np.linalg.matrix_power(np.array(TARGET), length)[2]
    for token, share in enumerate(law):
        low, high = accepted_counts(len(last), (float(share) - EXACT, float(share) + EXACT), ALARM)
        assert low <= last.count(token) <= high


def test_greedy_texts_follow_the_first_choices() -> None:
    pair, tree = Pair(np.array(TARGET)[[1, 2, 3, 0]], np.array(DRAFT)), DraftTree([(1,)])
    calls = decoded(ALGORITHMS["greedy"].call, tree, pair, 0, 6, Stream(words(1)))
    assert [token for call in calls for token in call.tokens] == [1, 2, 3, 0, 1, 2]


REGIMES = [[0.94, 0.02, 0.02, 0.02], [0.02, 0.94, 0.02, 0.02], [0.02, 0.02, 0.48, 0.48], [0.02, 0.02, 0.48, 0.48]]
MISTAKEN = [[0.94, 0.02, 0.02, 0.02], [0.02, 0.94, 0.02, 0.02], [0.48, 0.48, 0.02, 0.02], [0.48, 0.48, 0.02, 0.02]]


@pytest.mark.parametrize("kind", ["token", "block"])
def test_kernels_take_the_calls_that_are_predicted(kind: str) -> None:
    parameters = {"target": REGIMES, "draft": MISTAKEN, "initial": [0.25] * 4, "length": 40, "k": 4}
    tally = simulated(kind, parameters, 100_000)
    assert all(compare(tally, predictions(kind, parameters), ALARM))
    alpha = acceptance_of(kind, parameters)
    survival = np.broadcast_to(alpha ** np.arange(1.0, 5.0), (40, 4))
    iid = float(calls_of_chains(survival, np.array([40]), [4])[4].expected[0])
    assert not agrees(tally, Mean("calls", 1, 40), iid, ALARM), "the mean acceptance must miss"
