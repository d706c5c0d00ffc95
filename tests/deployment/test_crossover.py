"""The context at which speculation stops paying: known laws, brute force, and how often intervals hold it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from spectheory.cost.model import CostModel
from spectheory.cost.served import ServedFit, StepTime, fit_server
from spectheory.deployment.crossover import crossovers
from spectheory.deployment.served import _gain_of
from spectheory.intervals import Interval
from tests.toy_server import Seconds, affine

LOSES = affine(8e-3, 1e-4, 1e-8, 0.0, 1e-3, 1e-4, 2e-8)
"""A draft reads more cached tokens than it saves: speculation loses at long contexts."""
PAYS = affine(4e-3, 1e-4, 1e-7, 4e-3, 2e-3, 2e-4, 1e-9)
"""The target's cache is long to read, and a draft reads little: speculation pays at long contexts alone."""


@dataclass(frozen=True)
class Chains:
    """Chains whose tokens per call were counted."""

    k: int
    per_call: Interval

    @property
    def speedup(self) -> Callable[[CostModel], Interval]:
        """With the errors of times and counts."""
        return _gain_of(self.k, self.per_call)


TOKENS = [Chains(k, Interval(v - 0.01, v, v + 0.01, "statistical")) for k, v in ((1, 1.7), (2, 2.2), (3, 2.5))]


def fitted(
    law: Seconds, noise: float = 0.0, seed: int = 0, contexts: Sequence[float] = (500, 8000, 32000)
) -> ServedFit:
    rng = np.random.default_rng(seed)
    return fit_server(
        [
            StepTime(b, context, k, law(b, context, k) * (1 + noise * float(rng.standard_normal())))
            for b in (1, 4, 16)
            for context in contexts
            for k in (0, 1, 2, 3)
        ],
        law="affine",
    )


def turn(law: Seconds, batch: int) -> float:
    """The first context on a fine grid at which the best speed-up has passed 1; 0 if none has."""
    places = np.linspace(500, 32000, 20001)
    pays = [max(each.per_call.best * law(batch, c, 0) / law(batch, c, each.k) for each in TOKENS) > 1 for c in places]
    return next((float(c) for c, now in zip(places, pays, strict=True) if now is not pays[0]), 0.0)


@pytest.mark.parametrize(("law", "beyond"), [(LOSES, False), (PAYS, True)])
def test_crossings_are_those_of_a_fine_grid(law: Seconds, beyond: bool) -> None:
    found = crossovers(fitted(law), TOKENS, [1, 4, 16])
    expected = {batch: turn(law, batch) for batch in (1, 4, 16) if turn(law, batch)}
    assert expected, "there is one"
    assert {each.batch for each in found} == set(expected)
    for each in found:
        assert each.context.best == pytest.approx(expected[each.batch], abs=2)
        assert each.beyond is beyond
        assert each.context.low <= each.context.best <= each.context.high


def test_no_crossing_is_claimed_where_there_is_none() -> None:
    """A law that always pays, one that never does, and runs of one context."""
    always, never = affine(8e-3, 1e-4, 1e-8, 0, 1e-4, 1e-6, 0), affine(1e-3, 1e-5, 1e-8, 5e-3, 5e-3, 1e-4, 1e-8)
    for law in (always, never):
        assert crossovers(fitted(law), TOKENS, [1, 16]) == []
    assert crossovers(fitted(LOSES, contexts=(500,)), TOKENS, [1, 16]) == []


def test_intervals_hold_the_crossing() -> None:
    """40 sweeps with 2% noise: at 90% coverage fewer than 26 hold with probability 1e-5. Control: a sixth of them."""
    found = [crossovers(fitted(LOSES, 0.02, seed), TOKENS[2:], [16]) for seed in range(40)]
    k3 = [each.context for one in found for each in one]
    assert len(k3) == 40
    true = _closed_form(16)
    assert sum(at.low <= true <= at.high for at in k3) >= 26
    assert sum(abs(at.best - true) <= (at.high - at.best) / 6 for at in k3) < 26


def _closed_form(batch: int) -> float:
    """Where tokens times a plain step are a call of k = 3, from the coefficients of LOSES."""
    a, b, c, d, e, f, tokens = 8e-3, 1e-4, 1e-8, 1e-3, 1e-4, 2e-8, 2.5
    return (tokens * (a + b * batch) - (a + b * batch + 3 * (d + e * batch))) / (batch * (c + 3 * f - tokens * c))
