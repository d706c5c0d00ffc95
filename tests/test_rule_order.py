"""R8: the table of rules with several candidates, against the rules themselves and R4 over every subset."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from proofs_check.strategies import Floats, extreme_pairs, pairs, theorem
from spectheory import entropy, kl_divergence
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.verification import (
    GumbelList,
    KSeq,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    RuleStanding,
    TopKMatch,
    poisson_rank_entropy,
    rank_entropy,
    rule_order,
)

ROUNDING = 1e-12
"""Slack of inequalities between sums of a few terms of order one."""
NAMES = ["optimal", "poisson", "race", "recursive", "recursive-distinct", "kseq", "gumbel-list", "topk"]
RULES = [
    PoissonRace(),
    RaceVerification(),
    RecursiveRejection(),
    RecursiveRejection(replacement=False),
    KSeq(),
    GumbelList(),
    TopKMatch(),
]
PAIRS = extreme_pairs()


def table(p: Floats, q: Floats, k: int) -> dict[str, RuleStanding]:
    return {row.rule: row for row in rule_order(p, q, k)}


def brute_optimal(p: Floats, q: Floats, k: int) -> float:
    """R4 over every subset: 1 + min_H [p(H) - q(H)^k]."""
    sets = (np.array(mask, dtype=bool) for mask in product([False, True], repeat=len(p)))
    return 1 + min(float(p[h].sum() - q[h].sum() ** k) for h in sets)


@settings(theorem, max_examples=40)
@given(pairs(max_tokens=4))
def test_each_row_is_its_rule_and_iid_rules_stay_below_r4(pair: tuple[Floats, Floats]) -> None:
    p, q = pair
    for k in (1, 3):
        rows = table(p, q, k)
        assert list(rows) == NAMES
        most = brute_optimal(p, q, k)
        assert rows["optimal"].acceptance == pytest.approx(most, abs=ROUNDING)
        for rule in RULES:
            row = rows[rule.name]
            exact = float(rule.acceptance(p, q, k))
            assert row.side == "exact"
            assert row.acceptance == pytest.approx(exact, abs=ROUNDING)
            assert row.gap == pytest.approx(most - exact, abs=ROUNDING)
            if row.iid:
                assert row.gap is not None
                assert row.gap >= -ROUNDING
                assert row.above_kl is None or row.above_kl >= -1e-3, "the width of the entropies"


def test_distinct_tokens_have_negative_gaps_and_less_entropy() -> None:
    """Nothing is clipped: two candidates of two tokens are more than R4, and H(R) of the race is below KL."""
    rows = table(np.array([0.999, 0.001]), np.array([0.001, 0.999]), 2)
    for name in ("race", "recursive-distinct", "topk"):
        gap, above = rows[name].gap, rows[name].above_kl
        assert not rows[name].iid
        assert gap is not None
        assert gap < -0.9
        assert above is not None
        assert above < -6
    for name in ("poisson", "recursive"):
        above = rows[name].above_kl
        assert rows[name].iid
        assert above is not None
        assert above > 0


def test_the_entropies_are_those_of_the_whole_rank() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    rows = table(p, q, 2)
    whole = {
        "poisson": poisson_rank_entropy(p, q).best,
        "race": float(rank_entropy(RaceVerification().rank_pmf(p, q, 3))),
        "recursive": float(rank_entropy(RecursiveRejection().rank_pmf(p, q, 500))),
        "recursive-distinct": float(rank_entropy(RecursiveRejection(replacement=False).rank_pmf(p, q, 3))),
        "topk": float(entropy(p)),
    }
    for name, value in whole.items():
        found, above = rows[name].rank_entropy, rows[name].above_kl
        assert found is not None
        assert found.low - ROUNDING <= value <= found.high + ROUNDING
        assert above == pytest.approx(value - float(kl_divergence(p, q)), abs=1e-3)
    for name in ("optimal", "kseq", "gumbel-list"):
        assert rows[name].rank_entropy is None


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_no_row_is_nan(name: str) -> None:
    """Every number is finite or absent with a reason, missing tokens and infinite KL included."""
    p, q = PAIRS[name]
    for row in rule_order(p, q, 2):
        for value in (row.acceptance, row.gap, row.above_kl):
            assert value is None or math.isfinite(value)
        assert row.acceptance is not None or row.note
        if row.rank_entropy is not None:
            assert math.isfinite(row.rank_entropy.high)
        elif row.rule in ("poisson", "recursive"):
            assert "lacks tokens" in row.note


def test_a_large_vocabulary_is_cheap_and_says_what_it_leaves_out() -> None:
    """V = 8000: the race by a bound that is none too high at 100 tokens of the same shape, no distinct rejection."""
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.full(8000, 0.05))
    q = 0.5 * p + 0.5 * rng.dirichlet(np.full(8000, 0.05))
    rows = table(p, q, 4)
    assert rows["race"].side == "lower bound"
    assert rows["race"].acceptance == rows["poisson"].acceptance
    assert "O(V^2 k) at 8000 tokens" in rows["race"].note
    assert rows["recursive-distinct"].acceptance is None
    assert rows["recursive-distinct"].side == "none"
    assert "rank_pmf_estimate" in rows["recursive-distinct"].note
    small = table(p[:100] / p[:100].sum(), q[:100] / q[:100].sum(), 4)
    race, poisson = small["race"], small["poisson"]
    assert race.side == "exact"
    assert race.acceptance is not None
    assert poisson.acceptance is not None
    assert race.acceptance >= poisson.acceptance


def test_more_candidates_than_tokens() -> None:
    """Distinct candidates are the output in the end."""
    rows = table(np.array([0.5, 0.5]), np.array([0.75, 0.25]), 50)
    for name in ("race", "recursive-distinct", "topk"):
        assert rows[name].acceptance == pytest.approx(1, abs=ROUNDING)


def test_input_and_rows() -> None:
    p, q = [0.5, 0.5], [0.75, 0.25]
    assert rule_order(torch.tensor(p, dtype=torch.float64), torch.tensor(q, dtype=torch.float64), 2) == rule_order(
        p, q, 2
    )
    with pytest.raises(FrozenInstanceError):
        rule_order(p, q, 2)[0].note = "changed"  # type: ignore[misc]
    with pytest.raises(SettingError, match="k is 0"):
        rule_order(p, q, 0)
    with pytest.raises(ShapeError, match="one pair"):
        rule_order([p, p], [q, q], 2)
    with pytest.raises(PmfError, match=r"target sums to 1\.1"):
        rule_order([0.5, 0.6], q, 2)
