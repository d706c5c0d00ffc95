"""Every rule with several candidates: laws that agree, array libraries, bad input."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from spectheory.verification import (
    PoissonRace,
    RaceVerification,
    RankRule,
    RecursiveRejection,
    TopKMatch,
)
from tests.verification.rank_rule_cases import PAIRS, ROUNDING, SORTED

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
