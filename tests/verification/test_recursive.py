"""R3: recursive rejection at the ends of floats, with few and many tokens."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from proofs_check.algorithms import enumeration, rank_laws
from proofs_check.statement.arithmetic import floats
from proofs_check.twins import oracle
from spectheory.errors import SettingError, TraceError
from spectheory.verification import (
    RecursiveRejection,
    TopKMatch,
)
from tests.verification.rank_rule_cases import FALSE_ALARM, ODD, PAIRS, RELATIVE, ROUNDING, Pmf, fractions

# R3: recursive rejection


@pytest.mark.parametrize(("p", "q"), ODD, ids=str)
def test_distinct_candidates_of_four_tokens(p: Pmf, q: Pmf) -> None:
    """Rank law, law given each output and acceptance are those of the algorithm, three rejections deep."""
    rule, joint = RecursiveRejection(replacement=False), rank_laws.recursive_rejection(p, q, 4, replacement=False)
    exact = floats(rank_laws.rank_law(joint, 4))
    np.testing.assert_allclose(rule.rank_pmf(floats(p), floats(q), 4), exact, atol=ROUNDING)
    for k in range(1, 5):
        assert rule.acceptance(floats(p), floats(q), k) == pytest.approx(exact[:k].sum(), abs=ROUNDING)
    for x, share in enumerate(p):
        if share > 0:
            law = floats(joint.get((r, x), Fraction(0)) / share for r in range(1, 5))
            np.testing.assert_allclose(rule.rank_pmf_given(floats(p), floats(q), x, 4), law, atol=ROUNDING)


@pytest.mark.parametrize("name", sorted(set(PAIRS) - {"large"}))
def test_recursive_rejection_keeps_small_masses(name: str) -> None:
    """Each rank to a relative 1e-12 where it is above the rounding of what it comes from: at fifty digits."""
    p, q = PAIRS[name]
    left, mass, exact = oracle.exactly(p), oracle.MP.mpf(1), []
    for _ in range(5):
        taken = [mass * b for b in oracle.exactly(q)]
        exact.append(float(oracle.MP.fsum(min(a, b) for a, b in zip(left, taken, strict=True))))
        left = [max(a - b, 0) for a, b in zip(left, taken, strict=True)]
        mass = oracle.MP.fsum(left)
    law = RecursiveRejection().rank_pmf(p, q, 5)
    # The mass of rank r + 1 is rounded by 1e-16 of what was left to rank r, entry by entry.
    before = np.maximum(1 - np.concatenate([[0], np.cumsum(exact)[:-1]]), np.array(exact))
    np.testing.assert_allclose(law, exact, rtol=RELATIVE, atol=1e-16 * float(np.min(before)))


def test_taking_off_p_anew_loses_the_digits() -> None:
    """Negative control: (p - s q)+ from p itself misses P(R = 3) of nearly equal pmfs by more than carrying it does."""
    p, q = PAIRS["nearly equal"]
    s, mass = 0.0, 1.0
    anew = []
    for _ in range(3):
        anew.append(float(np.minimum(np.maximum(p - s * q, 0), mass * q).sum()))
        s += mass
        mass = float(np.maximum(p - s * q, 0).sum())
    law = RecursiveRejection().rank_pmf(p, q, 3)
    assert abs(anew[2] / law[2] - 1) > 100 * RELATIVE


def test_the_order_of_rejections_matters() -> None:
    """Sequoia's residual after rejecting 0 and 1 is another than after 1 and 0: sums over sets would be wrong."""
    p, q = fractions(1, 1, 8, 10), fractions(8, 6, 3, 3)
    residuals = {}
    for first, second in permutations((0, 1)):
        left, draft = enumeration.normalised(enumeration.positive_part(p, q)), list(q)
        draft[first] = Fraction(0)
        left = enumeration.normalised(enumeration.positive_part(left, enumeration.normalised(tuple(draft))))
        residuals[first, second] = left
    assert residuals[0, 1] != residuals[1, 0]


def test_distinct_candidates_end_with_the_vocabulary() -> None:
    """R <= V for sure, also where the draft is exhausted at once; ranks beyond V have probability 0."""
    rng = np.random.default_rng(5)
    rule = RecursiveRejection(replacement=False)
    for tokens in range(1, 7):
        p, q = rng.dirichlet(np.full(tokens, 0.5), 2)
        law = rule.rank_pmf(p, q, tokens + 1)
        assert law[:tokens].sum() == pytest.approx(1, abs=ROUNDING)
        assert law[tokens] <= ROUNDING
    np.testing.assert_allclose(rule.rank_pmf([0.0, 0.25, 0.75], [1.0, 0.0, 0.0], 3), [0, 0.75, 0.25], atol=ROUNDING)


def test_the_estimate_is_unbiased() -> None:
    """Mean of 40,000 trials within 5.5 standard errors (rank 1 exact); wrong by 1% of P(R > 1) would be seen."""
    rng = np.random.default_rng(6)
    p, q = rng.dirichlet(np.full(6, 0.7), 2)
    exact = RecursiveRejection(replacement=False).rank_pmf(p, q, 6)
    rule = RecursiveRejection(replacement=False)
    mean, error = rule.rank_pmf_estimate(p, q, 6, 40_000, rng=np.random.default_rng(1))
    assert np.all(np.abs(mean - exact) <= FALSE_ALARM * error + ROUNDING)
    assert mean[0] == pytest.approx(exact[0], abs=ROUNDING)
    assert np.all(error < 0.01 * (1 - exact[0]))
    # Negative control: the law of i.i.d. candidates.
    wrong = RecursiveRejection().rank_pmf(p, q, 6)
    assert np.any(np.abs(mean - wrong) > 2 * FALSE_ALARM * error + ROUNDING)


def test_a_large_vocabulary_is_enumerated_in_blocks() -> None:
    """Rank 2 at V = 1500, several blocks, against its O(V^2) definition."""
    rng = np.random.default_rng(7)
    p, q = rng.dirichlet(np.full(1500, 0.3), 2)
    left = np.maximum(p - q, 0)
    left /= left.sum()
    second = sum(
        (q[x] - p[x]) * np.minimum(left, q / (1 - q[x]))[np.arange(1500) != x].sum() for x in np.nonzero(q > p)[0]
    )
    assert RecursiveRejection(replacement=False).rank_pmf(p, q, 2)[1] == pytest.approx(second, rel=RELATIVE)


def test_names_and_traces_of_recursive_rejection() -> None:
    """One rank is token verification, more are read from the trace, each kind from a column of its own."""
    iid, distinct = RecursiveRejection(), RecursiveRejection(replacement=False)
    assert (iid.name, distinct.name) == ("recursive", "recursive-distinct")
    assert iid == RecursiveRejection(True)
    assert iid != distinct
    columns = {"log_target": np.log([0.5, 0.25]), "log_draft": np.log([0.25, 0.5])}
    for rule in (iid, distinct):
        np.testing.assert_allclose(rule.rank_law(columns, 1), [[0.5], [1.0]], rtol=RELATIVE)
    with pytest.raises(TraceError, match="no rejection_rank"):
        iid.rank_law(columns, 2)
    with pytest.raises(TraceError, match="no distinct_rank"):
        distinct.rank_law({**columns, "rejection_rank": np.ones((2, 2)) / 2}, 2)
    recorded: NDArray[np.float64] = np.array([[0.5, 0.2], [1.0, 0.0]])
    np.testing.assert_array_equal(iid.rank_law({**columns, "rejection_rank": recorded}, 2), recorded)
    with pytest.raises(SettingError, match="ranks up to 2"):
        iid.rank_law({**columns, "rejection_rank": recorded}, 3)
    np.testing.assert_array_equal(distinct.rank_law({**columns, "distinct_rank": recorded}, 2), recorded)
    assert (iid.estimated, distinct.estimated) == (False, True)
    assert [rule.known_ranks({"distinct_rank": recorded}, 8) for rule in (iid, distinct)] == [8, 2]
    assert TopKMatch().known_ranks({"draft_rank": np.array([1, 3])}, 8) == 8
