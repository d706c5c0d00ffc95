"""Every rule with several candidates: laws that agree, array libraries, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.verification import (
    GumbelList,
    KSeq,
    PoissonRace,
    RaceVerification,
    RankRule,
    RecursiveRejection,
    Rule,
    TopKMatch,
)
from tests.made_up import each, refused
from tests.verification.rank_rule_cases import JUDGED_TOGETHER, PAIRS, RELATIVE, ROUNDING, SORTED

RANK_RULES: list[RankRule] = [
    PoissonRace(),
    RaceVerification(),
    RecursiveRejection(),
    RecursiveRejection(replacement=False),
    TopKMatch(),
]


EVERY_RULE: list[Rule] = [*RANK_RULES, *JUDGED_TOGETHER]


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


def calls(rule: Rule) -> list[Callable[[Any, Any], Any]]:
    """Every function of two pmfs a rule has."""
    if isinstance(rule, KSeq | GumbelList):
        third: Callable[[Any, Any], Any] = rule.acceptance_bound if isinstance(rule, GumbelList) else rule.rank_pmf
        return [
            lambda p, q: rule.acceptance(p, q, 3),
            lambda p, q: rule.acceptance_given(p, q, 3),
            lambda p, q: third(p, q, 3),
        ]
    assert isinstance(rule, RankRule)
    return [
        lambda p, q: rule.acceptance(p, q, 3),
        rule.acceptance_given,
        lambda p, q: rule.rank_pmf(p, q, 3),
        lambda p, q: rule.rank_pmf_given(p, q, 1, 3),
    ]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
@pytest.mark.parametrize("name", ["random", "tiny entries", "draft lacks a token", "equal", "disjoint"])
def test_arrays_of_three_libraries_and_batches(rule: Rule, name: str) -> None:
    strict = pytest.importorskip("array_api_strict")
    p, q = (pmf[:20] / pmf[:20].sum() for pmf in PAIRS[name])
    for call in calls(rule):
        alone = call(p, q)
        value = call(torch.from_numpy(p), torch.from_numpy(q))
        assert isinstance(value, torch.Tensor)
        assert value.dtype == torch.float64
        np.testing.assert_allclose(value.numpy(), alone, rtol=RELATIVE, atol=ROUNDING)
        np.testing.assert_allclose(
            np.asarray(call(strict.asarray(p), strict.asarray(q))), alone, rtol=RELATIVE, atol=ROUNDING
        )
        batch = call(np.stack([p, q])[:, None], np.stack([q, p, q]))
        assert batch.shape == (2, 3, *np.shape(alone))
        np.testing.assert_allclose(batch[0, 0], alone, rtol=RELATIVE, atol=ROUNDING)
        np.testing.assert_allclose(batch[1, 1], call(q, p), rtol=RELATIVE, atol=ROUNDING)


BAD: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda rule: rule.acceptance([0.5, 0.6], [0.5, 0.5], 2), PmfError, "target sums to 1.1"),
    (lambda rule: rule.acceptance_given([0.5, 0.5], [0.5, math.nan]), PmfError, "draft[1] is nan"),
    (lambda rule: rule.acceptance([1.0], [0.5, 0.5], 2), ShapeError, "one vocabulary"),
    (lambda rule: rule.acceptance([1.0], [1.0], 0), SettingError, " is 0: must be >= 1"),
    (lambda rule: rule.acceptance([1.0], [1.0], 1.5), SettingError, " is 1.5: must be a whole number"),
]


BAD_RANKS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda rule: rule.rank_pmf([1.0], [0.5, 0.5], 2), ShapeError, "one vocabulary"),
    (lambda rule: rule.rank_pmf([1.0], [1.0], 0), SettingError, "max_rank is 0: must be >= 1"),
    (lambda rule: rule.rank_pmf_given([1.0], [1.0], 0, 0), SettingError, "max_rank is 0: must be >= 1"),
    (lambda rule: rule.rank_pmf_given([1.0], [1.0], 1, 2), ShapeError, "token is 1: ids are 0..0"),
    (lambda rule: rule.rank_pmf_given([1.0], [1.0], -1, 2), ShapeError, "token is -1: ids are 0..0"),
]


REFUSALS = [(rule, *bad) for rule in EVERY_RULE for bad in BAD]
REFUSALS += [(rule, *bad) for rule in RANK_RULES for bad in BAD_RANKS]


@each("rule, call, error, fragment", REFUSALS)
def test_bad_input_is_named_in_one_line(
    rule: Rule, call: Callable[[Rule], Any], error: type[Exception], fragment: str
) -> None:
    refused(lambda: call(rule), error, fragment)


def test_iid_ranks_have_no_end() -> None:
    """The recursion goes on after nothing is left."""
    from spectheory.verification.recursive import iid_ranks

    shares = [float(np.sum(joint)) for joint in islice(iid_ranks(np.array([1.0]), np.array([1.0]), np), 3)]
    assert shares == [1, 0, 0]


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-15])
def test_rare_outputs_keep_the_law_of_their_rank(rare: float) -> None:
    """A token that only the second candidate can be: the law given it is certain, however rare it is."""
    law = RecursiveRejection(replacement=False).rank_pmf_given([1 - rare, rare], [1.0, 0.0], 1, 2)
    np.testing.assert_allclose(law, [0.0, 1.0], rtol=ROUNDING)


def test_the_mean_rank_of_a_token_that_neither_has() -> None:
    """No warning: zero times infinity is left out, not computed."""
    assert float(RaceVerification().expected_rank([0.0, 1.0], [0.0, 1.0])) == 1.0
