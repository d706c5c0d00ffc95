"""Text with long certain stretches (B9): the simulation, counted prefixes, and trees in fractions agree.

One set of comparisons with a false-alarm rate of `ALARM`; with 3,000 trials P = 1 is known to 0.05.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import simulations.simulators  # noqa: F401  registers them
from proofs_check.theorems.branching.random_pmf_trees import best
from proofs_check.theorems.branching.stationary_targets import S, U, Z, entropy_rate, in_block, stationary_value
from simulations.counts import Mean
from simulations.draws import words
from simulations.experiments.tasks import registered
from simulations.simulators import stretch_trees as stretches
from simulations.sweeps.stationary import CHAIN, chain_rate, chain_values
from simulations.verdicts.predictions import Predicted, compare, predictions
from spectheory.errors import SettingError

ALARM = 1e-9
PARAMETERS = {"r": 0.4, "capacities": [1, 8, 64, 512]}


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
    tally = registered("stretch-trees").run(PARAMETERS, 3000, words(7))
    assert all(compare(tally, predictions("stretch-trees", PARAMETERS), ALARM))
    too_small = 0.8 * stretches.best_values(0.4, [8])[0]  # negative control
    assert not any(compare(tally, [Predicted("E[X]", "none", Mean("P=8", 0.0, 8.0), too_small)], ALARM))


def test_a_chain_tends_to_its_entropy_rate() -> None:
    """Slopes between P = 2^6, 2^12 and 2^16, in units of 1/h, are within 5% of 1."""
    values = chain_values(CHAIN, [64, 4096, 65536])
    rate, log2 = chain_rate(CHAIN), 0.6931471805599453
    assert (values[1] - values[0]) * rate / (6 * log2) == pytest.approx(1, abs=0.05)
    assert (values[2] - values[1]) * rate / (4 * log2) == pytest.approx(1, abs=0.05)


def test_bad_settings_are_one_clear_line() -> None:
    for wrong in ({"r": 0.5}, {"capacities": [4, 2]}):
        with pytest.raises(SettingError, match="r is"):
            registered("stretch-trees").run({**PARAMETERS, **wrong}, 2, words(1))
