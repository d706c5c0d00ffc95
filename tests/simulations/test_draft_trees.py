"""Trees grown from the draft (B8) and on text with long certain stretches (B9): twins, fractions, counted prefixes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from proofs_check.theorems.branching.random_pmf_trees import best
from proofs_check.theorems.branching.stationary_targets import S, U, Z, entropy_rate, in_block, stationary_value
from simulations.counts import Mean
from simulations.draws import Stream, words
from simulations.experiments.tasks import registered
from simulations.reference.trees import PmfAfter, heaviest_prefixes, model_trial
from simulations.simulators import stretch_trees as stretches
from simulations.simulators.model_trees import Target, drafted_trees
from simulations.sweeps.stationary import CHAIN, chain_rate, chain_values
from simulations.verdicts.predictions import Predicted, compare, predictions
from tests.simulations.model_cases import PROMPTS, pmf_of

ROUNDING, ALARM = 2e-5, 1e-9
CAPACITIES, THRESHOLDS, STARTS = [1, 3, 7], [0.8, 1.5, 2.2], 3
PARAMETERS = {"draft": "any", "capacities": CAPACITIES, "thresholds": THRESHOLDS, "starts": STARTS}


@pytest.fixture(scope="module")
def target(tiny_pair: Any) -> Target:
    return Target(tiny_pair.target.network, tiny_pair.vocabulary, tiny_pair.window, PROMPTS)


def weight(pmf_after: PmfAfter, before: list[int], prefix: tuple[int, ...]) -> float:
    return float(np.prod([pmf_after([*before, *prefix[:i]])[token] for i, token in enumerate(prefix)]))


def test_trials_are_those_of_the_twin(target: Target, tiny_pair: Any) -> None:
    p_after, q_after = pmf_of(target.network), pmf_of(tiny_pair.draft.network)
    state = words(31)
    stream, trials = Stream(state), 4
    tally = drafted_trees(target, tiny_pair.draft.network, PARAMETERS, trials, state)
    sums = dict.fromkeys(tally.moments, 0.0)
    for _ in range(trials):
        prompt, start, text = model_trial(p_after, PROMPTS, STARTS, CAPACITIES[-1], stream)
        before = [*prompt, *text[:start]]
        of_target, of_draft = (heaviest_prefixes(after, before, CAPACITIES[-1]) for after in (p_after, q_after))
        for capacity in CAPACITIES:
            best, tree = ({prefix for _, prefix in heaviest[:capacity]} for heaviest in (of_target, of_draft))
            p = {prefix: weight(p_after, before, prefix) for prefix in best | tree}
            q = {prefix: weight(q_after, before, prefix) for prefix in best | tree}
            bound = sum(max(p[v] - q[v], 0) for v in best - tree) + sum(max(q[v] - p[v], 0) for v in tree - best)
            after = tuple(text[start:])
            depth = next(n for n in range(len(after) + 1) if n == len(after) or after[: n + 1] not in tree)
            sums[f"best P={capacity}"] += sum(p[v] for v in best)
            sums[f"drafted P={capacity}"] += sum(p[v] for v in tree)
            sums[f"claimed P={capacity}"] += sum(q[v] for v in tree)
            sums[f"bound P={capacity}"] += bound
            sums[f"depth P={capacity}"] += depth
    assert state.tolist() == stream.state.tolist(), "as many draws"
    for capacity in CAPACITIES:
        for name in ("best", "drafted", "claimed", "bound", "depth"):
            key = f"{name} P={capacity}"
            assert float(tally.moments[key].mean) == pytest.approx(sums[key] / trials, abs=10 * ROUNDING), key


def test_the_statement_holds_and_wrong_ones_are_caught(target: Target, tiny_pair: Any) -> None:
    tally = drafted_trees(target, tiny_pair.draft.network, PARAMETERS, 400, words(5))
    assert all(compare(tally, predictions("draft-trees", PARAMETERS), ALARM))
    assert tally.moments["loss P=7"].mean > 0, "the draft is not the target"
    wrong = [
        Predicted("the depth is the best tree's", "none", Mean("depth P=7"), 2 * float(tally.moments["best P=7"].mean)),
        Predicted("nothing is lost", "none", Mean("loss P=7"), 0.0),
    ]
    assert not any(compare(tally, wrong, ALARM))


STRETCHED = {"r": 0.4, "capacities": [1, 8, 64, 512]}


@pytest.mark.parametrize("share", [Fraction(1, 8), Fraction(1, 4), Fraction(2, 5)])
def test_counted_prefixes_are_the_trees_in_fractions(share: Fraction) -> None:
    capacities = [1, 2, 5, 33, 128]
    exact = [float(stationary_value(share, capacity)) for capacity in capacities]
    assert stretches.best_values(float(share), capacities) == pytest.approx(exact, rel=1e-9)


def test_a_random_start_is_a_random_place_of_a_block() -> None:
    """Every place of every block up to level 8, with the best tree given the whole block before it.

    Taking each start in a code for that of a new block gives 6.658.
    """
    share, capacity = Fraction(1, 8), 8
    model, total, mean = in_block(share, 1), Fraction(0), Fraction(0)
    for level in range(1, 9):
        block = (U,) * (level - 1) + (Z,) + (S,) * (1 << level)
        chance = (1 - share) * share ** (level - 1)
        near = range(max(len(block) - capacity, level), len(block))  # before these all P tokens are certain
        for n in (*range(level), *near):
            total += chance * best(lambda text, past=block[:n]: model(past + text), capacity)
        total += chance * capacity * (near.start - level)
        mean += chance * len(block)
    assert float(total / mean) == pytest.approx(stretches.best_values(0.125, [capacity])[0], abs=1e-3)


def test_the_entropy_rate_is_the_code_s() -> None:
    """At r = 1/4 a block has 13/3 tokens and 4/3 coins."""
    coin = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    assert stretches.entropy_rate(0.25) == pytest.approx(coin * (4 / 3) / (13 / 3), rel=1e-12)
    assert entropy_rate is not stretches.entropy_rate


def test_simulated_starts_have_the_exact_mean() -> None:
    tally = registered("stretch-trees").run(STRETCHED, 3000, words(7))
    assert all(compare(tally, predictions("stretch-trees", STRETCHED), ALARM))
    too_small = 0.8 * stretches.best_values(0.4, [8])[0]  # negative control
    assert not any(compare(tally, [Predicted("E[X]", "none", Mean("P=8", 0.0, 8.0), too_small)], ALARM))


def test_a_chain_tends_to_its_entropy_rate() -> None:
    """Slopes between P = 2^6, 2^12 and 2^16, in units of 1/h, are within 5% of 1."""
    values = chain_values(CHAIN, [64, 4096, 65536])
    rate, log2 = chain_rate(CHAIN), 0.6931471805599453
    assert (values[1] - values[0]) * rate / (6 * log2) == pytest.approx(1, abs=0.05)
    assert (values[2] - values[1]) * rate / (4 * log2) == pytest.approx(1, abs=0.05)
