"""R8: the table of rules: what each row says, what it leaves out, large vocabularies; laws of a rule that agree."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from proofs_check.library.strategies import Floats, pairs, theorem
from spectheory import entropy, kl_divergence
from spectheory.verification import (
    ArgmaxDraft,
    BlockVerification,
    GreedyMatch,
    GumbelList,
    IndependentMatch,
    KSeq,
    PoissonRace,
    RaceVerification,
    RankRule,
    RecursiveRejection,
    Rule,
    RuleStanding,
    TokenVerification,
    TopKMatch,
    poisson_rank_entropy,
    rank_entropy,
    rule_order,
)
from tests.verification.rank_rule_cases import PAIRS, ROUNDING, SORTED

SLACK = 1e-12
"""Slack of inequalities between sums of a few terms of order one."""
WIDTH = 1e-5
"""Width of the rank entropy of the Poisson race, nats."""
SEVERAL: list[Rule] = [
    PoissonRace(),
    RaceVerification(),
    RecursiveRejection(),
    RecursiveRejection(replacement=False),
    KSeq(),
    GumbelList(),
    TopKMatch(),
]
SINGLE: list[Rule] = [TokenVerification(), BlockVerification(), IndependentMatch(), ArgmaxDraft(), GreedyMatch()]


def table(p: Floats, q: Floats, k: int) -> dict[str, RuleStanding]:
    return {row.rule: row for row in rule_order(p, q, k)}


def best(row: RuleStanding) -> float:
    assert row.acceptance is not None
    return row.acceptance.best


@settings(theorem, max_examples=40)
@given(pairs(max_tokens=4))
def test_what_stands_in_a_row(pair: tuple[Floats, Floats]) -> None:
    """Exact at few tokens, with a gap unless the target is greedy; of i.i.d. candidates below R4, and H(R) above KL."""
    for k in (1, 3):
        rows = table(*pair, k)
        for rule in SEVERAL + SINGLE:
            row = rows[rule.name]
            assert (row.side, row.k) == ("exact", k if rule in SEVERAL else 1)
            assert (row.optimum is None) == (row.gap is None) == (rule.name == "greedy")
            if row.iid:
                assert row.limited
                assert row.above_kl is None or row.above_kl >= -WIDTH


def test_whose_candidates_are_draws() -> None:
    """R4 limits i.i.d. candidates, and a single one that the draft drew; never the draft's most probable token."""
    chosen, distinct = {"topk", "argmax", "greedy"}, {"race", "recursive-distinct"}
    for k, free in ((1, chosen), (2, chosen | distinct)):
        rows = table(np.array([0.9, 0.1]), np.array([0.6, 0.4]), k)
        assert {name for name, row in rows.items() if not row.limited} == free
        assert {name for name, row in rows.items() if not row.iid} == chosen | distinct
        gap = rows["argmax"].gap
        assert gap is not None
        assert gap < -0.1, "negative control: with the first choice .9 is accepted, R4 is .7"


def test_several_pairs_give_the_means() -> None:
    """Every number of a row, and the weakest kind; a single target serves for all drafts."""
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), (2, 3))
    whole, single = table(p, q, 2), [table(p, each, 2) for each in q.reshape(-1, 4)]
    for name, row in whole.items():
        for value in (
            best,
            lambda row: row.gap or 0.0,
            lambda row: row.above_kl or 0.0,
            lambda row: row.rank_entropy.best if row.rank_entropy else 0.0,
        ):
            assert value(row) == pytest.approx(np.mean([value(rows[name]) for rows in single]), abs=SLACK), name
    assert whole["poisson"].rank_entropy is not None
    assert whole["poisson"].rank_entropy.kind == "bound"


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
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
    rows = table(p, q, 2)
    whole = {
        "poisson": poisson_rank_entropy(p, q).best,
        "race": float(rank_entropy(RaceVerification().rank_pmf(p, q, 3))),
        "recursive": float(rank_entropy(RecursiveRejection().rank_pmf(p, q, 500))),
        "recursive-distinct": float(rank_entropy(RecursiveRejection(replacement=False).rank_pmf(p, q, 3))),
        "topk": float(entropy(p)),
    }
    for name, value in whole.items():
        interval, above = rows[name].rank_entropy, rows[name].above_kl
        assert interval is not None
        assert interval.low - SLACK <= value <= interval.high + SLACK
        assert above == pytest.approx(value - float(kl_divergence(p, q)), abs=WIDTH)
    for name in ("optimal", "kseq", "gumbel-list"):
        assert rows[name].rank_entropy is None


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_no_row_is_nan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number is finite or absent with a reason, missing tokens and infinite KL included.

    Less work is allowed than usual, so that the large pair takes a second: its race is bounded, its rejections drawn.
    """
    monkeypatch.setattr("spectheory.verification.base.MOST_WORK", 1 << 20)
    p, q = PAIRS[name]
    for row in rule_order(p, q, 2, rng=np.random.default_rng(0)):
        assert math.isfinite(best(row))
        for value in (row.gap, row.above_kl):
            assert value is None or math.isfinite(value)
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
    race = rows["race"].acceptance
    assert race is not None
    assert rows["race"].side == "lower bound"
    assert (race.best, race.kind) == (race.low, "bound")
    assert race.low == best(rows["poisson"]) < race.high
    assert "O(V^2 k) at 1 x 8000 tokens" in rows["race"].note
    assert rows["recursive-distinct"].acceptance is None
    assert rows["recursive-distinct"].gap is None
    assert rows["recursive-distinct"].side == "none"
    assert "rank_pmf_estimate" in rows["recursive-distinct"].note
    small = table(p[:100] / p[:100].sum(), q[:100] / q[:100].sum(), 4)
    assert small["race"].side == "exact"
    assert best(small["race"]) >= best(small["poisson"])


def test_what_is_too_long_is_estimated_or_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any work allowed: the exact value lies in the interval, and above the lower bounds.

    The interval is 95%, so one seed in twenty would miss; the seed is fixed.
    """
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    exact = table(p, q, 3)
    monkeypatch.setattr("spectheory.verification.base.MOST_WORK", 1 << 7)
    rough = {row.rule: row for row in rule_order(p, q, 3, rng=np.random.default_rng(1))}
    estimate = rough["recursive-distinct"].acceptance
    assert estimate is not None
    assert (rough["recursive-distinct"].side, estimate.kind) == ("estimate", "statistical")
    assert estimate.low <= best(exact["recursive-distinct"]) <= estimate.high
    assert 0 < estimate.high - estimate.low < 0.2
    for name in ("race", "gumbel-list"):
        acceptance = rough[name].acceptance
        assert acceptance is not None
        assert rough[name].side == "lower bound"
        assert acceptance.low == acceptance.best < best(exact[name]) < acceptance.high
    for name in ("poisson", "recursive"):
        assert rough[name].rank_entropy is None
        assert "would take minutes" in rough[name].note
    assert rough["token"] == exact["token"]
    assert list(rough.values()) == rule_order(p, q, 3, rng=np.random.default_rng(1))
    assert rough["recursive-distinct"] != rule_order(p, q, 3, rng=np.random.default_rng(2))[4]
    assert rule_order(p, q, 3)[4].acceptance is None


def test_more_candidates_than_tokens() -> None:
    """Distinct candidates are the output in the end."""
    rows = table(np.array([0.5, 0.5]), np.array([0.75, 0.25]), 50)
    for name in ("race", "recursive-distinct", "topk"):
        assert best(rows[name]) == pytest.approx(1, abs=SLACK)


def test_input_and_rows() -> None:
    p, q = [0.5, 0.5], [0.75, 0.25]
    assert rule_order(torch.tensor(p, dtype=torch.float64), torch.tensor(q, dtype=torch.float64), 2) == rule_order(
        p, q, 2
    )
    with pytest.raises(FrozenInstanceError):
        rule_order(p, q, 2)[0].note = "changed"  # type: ignore[misc]


RANK_RULES: list[RankRule] = [
    PoissonRace(),
    RaceVerification(),
    RecursiveRejection(),
    RecursiveRejection(replacement=False),
    TopKMatch(),
]


# Every rule


@pytest.mark.parametrize("rule", RANK_RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    "name", ["random", "peaked", "tiny entries", "draft lacks a token", "zeros in both", "one token"]
)
def test_the_laws_of_a_rule_agree(rule: RankRule, name: str) -> None:
    """Rank law = mean of the laws given the output; acceptance = its sum; one draft = the law at rank 1."""
    p, q = (pmf[:30] / pmf[:30].sum() for pmf in PAIRS[name])
    tokens = np.arange(len(p))
    law, given_output = rule.rank_pmf(p, q, 3), rule.rank_pmf_given(p, q, tokens, 3)
    assert given_output.shape == (len(p), 3)
    alive = p > 0
    np.testing.assert_allclose(law, p[alive] @ given_output[alive], atol=SORTED)
    for k in (1, 2, 3):
        assert rule.acceptance(p, q, k) == pytest.approx(float(law[:k].sum()), abs=SORTED)
    np.testing.assert_allclose(given_output[alive, 0], rule.acceptance_given(p, q)[alive], atol=SORTED)


def test_iid_ranks_have_no_end() -> None:
    """The recursion goes on after nothing is left."""
    from spectheory.verification.recursive import _iid_ranks

    shares = [float(np.sum(joint)) for joint in islice(_iid_ranks(np.array([1.0]), np.array([1.0]), np), 3)]
    assert shares == [1, 0, 0]


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-15])
def test_rare_outputs_keep_the_law_of_their_rank(rare: float) -> None:
    """A token that only the second candidate can be: the law given it is certain, however rare it is."""
    law = RecursiveRejection(replacement=False).rank_pmf_given([1 - rare, rare], [1.0, 0.0], 1, 2)
    np.testing.assert_allclose(law, [0.0, 1.0], rtol=ROUNDING)


def test_the_mean_rank_of_a_token_that_neither_has() -> None:
    """No warning: zero times infinity is left out, not computed."""
    assert float(RaceVerification().expected_rank([0.0, 1.0], [0.0, 1.0])) == 1.0
