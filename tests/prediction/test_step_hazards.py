"""Tokens per call from means at several k, against the exact values of the built-in pair's texts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectheory.cost import iid_tokens_per_call, required_acceptance
from spectheory.drafting import Chain
from spectheory.limits import tokens_per_call_between
from spectheory.prediction.prediction import planned
from spectheory.prediction.step_hazards import falls, step_hazards, tokens_from_means
from spectheory.trace import Trace
from spectheory.verification import PATH_RULES

PAIR = Path(__file__).parents[2] / "docs" / "figures" / "pair" / "draft"
GIVEN, LONGEST = (1, 2, 3), 8


@cache
def exact(rule: str) -> dict[int, float]:
    """Tokens per call of chains of 1 to 8 drafts on the pair's texts."""
    chains = [Chain(k) for k in range(1, LONGEST + 1)]
    predicted = planned(Trace.read(PAIR), None, [PATH_RULES[rule]], chains).predictions
    return {each.shape.nodes: each.tokens_per_call.best for each in predicted}


@pytest.mark.parametrize(("rule", "worst"), [("token", 0.01), ("argmax", 0.01), ("block", 0.032)])
def test_three_means_give_longer_chains(rule: str, worst: float) -> None:
    """Within the miss that the module states; the control, the mean at k = 3 alone, misses twice as much."""
    whole = exact(rule)
    from_three = {k: tokens_from_means({at: whole[at] for at in GIVEN}, k) for k in range(4, LONGEST + 1)}
    from_last = {k: tokens_from_means({GIVEN[-1]: whole[GIVEN[-1]]}, k) for k in from_three}
    missed, control = (max(abs(read[k].best / whole[k] - 1) for k in read) for read in (from_three, from_last))
    assert missed <= worst
    assert control > 2 * missed
    if rule != "block":
        assert all(read.low <= whole[k] <= read.high for k, read in from_three.items()), "C6"


def test_one_mean_is_the_formula_of_independent_acceptances() -> None:
    alpha = required_acceptance(2.4, 3, 0.0)
    for k in range(1, 7):
        assert tokens_from_means({3: 2.4}, k).best == pytest.approx(iid_tokens_per_call(alpha, k))


shares = st.lists(st.floats(0.05, 1), min_size=2, max_size=6)


@given(shares)
def test_means_of_given_hazards_give_them_back(hazards: list[float]) -> None:
    """Means at every k are those of these hazards: solving for them finds them again, and leaves means as they are."""
    means, tokens, reached = {}, 1.0, 1.0
    for k, hazard in enumerate(hazards, 1):
        reached *= hazard
        tokens += reached
        means[k] = tokens
    assert step_hazards(means) == pytest.approx(hazards, abs=1e-6)
    some = {k: mean for k, mean in means.items() if k in (1, len(hazards))}
    for k, mean in some.items():
        assert tokens_from_means(some, k).best == mean
    read = [tokens_from_means(some, k).best for k in range(1, len(hazards) + 3)]
    assert read == sorted(read)


def test_means_some_k_apart_give_equal_hazards_back() -> None:
    hazards = [0.9, 0.9, 0.6, 0.6, 0.6]
    tokens = 1 + np.cumsum(np.cumprod(hazards))
    assert step_hazards({2: tokens[1], 5: tokens[4]}) == pytest.approx(hazards)
    assert tokens_from_means({2: tokens[1], 5: tokens[4]}, 4).best == pytest.approx(tokens[3])


def test_two_means_have_the_range_of_both() -> None:
    means = {2: 2.2, 6: 3.4}
    for k in (1, 4, 8):
        read = tokens_from_means(means, k)
        ends = [tokens_per_call_between(tokens, at, k) for at, tokens in means.items()]
        assert (read.low, read.high) == (max(low for low, _ in ends), min(high for _, high in ends))
        assert read.low < read.best < read.high
    assert ends[0] != ends[1]


def test_means_that_fall_are_kept_and_said() -> None:
    means = {6: 3.77, 7: 3.73, 8: 3.47}
    assert falls(means.items()) == (6, 7)
    assert step_hazards(means)[-2:] == (0.0, 0.0)
    assert [tokens_from_means(means, k).best for k in means] == list(means.values())
    assert tokens_from_means(means, 9).best == means[8]
