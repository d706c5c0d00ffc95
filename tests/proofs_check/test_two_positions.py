"""Claims about two positions: what they are given, where they are tried, and planted false ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs_check import POSITIVE, Assumption, Claim, ClaimError, Effort, at_least, at_most, equal, smaller, try_claim
from proofs_check.evidence.judge import judge, judge_all
from proofs_check.evidence.search import search_claim, two_positions_space
from proofs_check.evidence.solver import CONTRADICT, prove_claim
from proofs_check.library.domains import DOMAINS, domain_of, wide_two_positions
from proofs_check.library.strategies import theorem
from proofs_check.library.wide import SIZES, wide_search
from proofs_check.statement.claims import PAIR, TWO_POSITIONS, Case, pmfs_of
from tests.made_up import each, refused
from tests.proofs_check.claim_cases import kl, overlap

DOMAIN = DOMAINS[TWO_POSITIONS]
HALF = Fraction(1, 2)


def token(p1: Any, q1: Any, p2: Any, q2: Any) -> Any:
    return sum(smaller(p1[x], q1[x]) * (1 + overlap(p2[x], q2[x])) for x in range(len(p1)))


def block(p1: Any, q1: Any, p2: Any, q2: Any) -> Any:
    first = [smaller(a, b) for a, b in zip(p1, q1, strict=True)]
    tokens = range(len(p1))
    both = sum(smaller(first[x] * p2[x][z], q1[x] * q2[x][z]) for x in tokens for z in tokens)
    return sum(first) + both


def ratio(millionths: int) -> Claim:
    """Block accepts at most so much more: the least upper bound of block / token is 2, which no pmfs attain."""
    return Claim(
        "block / token",
        lambda p1, q1, p2, q2: at_most(10**6 * block(p1, q1, p2, q2), millionths * token(p1, q1, p2, q2)),
    )


ORDER = Claim("token <= block", lambda p1, q1, p2, q2: at_most(token(p1, q1, p2, q2), block(p1, q1, p2, q2)))


def test_a_claim_is_given_what_it_has_parameters_for() -> None:
    assert ORDER.about == TWO_POSITIONS
    assert Claim("pair", lambda p, q: at_most(0, 1)).about == PAIR
    assert Claim("any", lambda **case: at_most(0, 1)).about == PAIR
    assert Claim("built in", max).about == PAIR


def draws(seed: int) -> list[Case]:
    """Some cases of each kind that a trial looks at."""
    rng = random.Random(seed)
    grid = list(DOMAIN.grid(Effort()))
    return [*rng.sample(grid, 200), *(case for size in (4, 7) for case in wide_two_positions(seed, size))]


def is_whole(case: Case) -> bool:
    """Whether it has all pmfs of two positions, which sum to one exactly."""
    tokens = len(case["p1"])
    rows = list(pmfs_of(case))
    square = all(len(case[name]) == tokens for name in TWO_POSITIONS)
    return square and len(rows) == 2 + 2 * tokens and all(len(row) == tokens and sum(row) == 1 for row in rows)


def test_cases_are_pmfs() -> None:
    assert all(map(is_whole, draws(1)))
    for space, tokens in zip(DOMAIN.spaces, (2, 3, 2), strict=True):
        x = np.random.default_rng(1).standard_normal(space.dimension)
        assert is_whole(space.case(x))
        assert len(space.case(x)["p1"]) == tokens
    assert not is_whole({**draws(1)[0], "p2": ((HALF, HALF), (HALF, 0))})


@settings(theorem, max_examples=50)
@given(DOMAIN.draws())
def test_drawn_cases_are_pmfs(case: Case) -> None:
    assert is_whole(case)


def test_the_grid_has_every_pair_and_what_is_next_to_its_faces() -> None:
    """Three pairs of pmfs of denominators 1 and 2 on two tokens, each once, then shares of 1e-7 and 1e-30."""
    grid = list(DOMAIN.grid(Effort()))
    plain = grid[: 9**3]
    assert len({str(case) for case in plain}) == 9**3
    assert all(share in (0, HALF, 1) for case in plain for row in pmfs_of(case) for share in row)
    least = {min((share for row in pmfs_of(case) for share in row if share), default=1) for case in grid}
    assert {Fraction(1, 10**7), Fraction(1, 10**30)} <= least
    assert sum(bool(POSITIVE.met(**case)) for case in grid[9**3 :]) > 500


def test_the_solver_takes_two_positions() -> None:
    """True and false, and one that is true under its assumption alone."""
    assert prove_claim(ORDER, 2).status == "held"
    wrong = prove_claim(
        Claim("block <= token", lambda p1, q1, p2, q2: at_most(block(p1, q1, p2, q2), token(p1, q1, p2, q2))), 2
    )
    assert wrong.status == "refuted"
    same = Assumption("p2 does not depend on x", lambda p1, q1, p2, q2: p2[0][0] == p2[1][0])
    tail = Claim(
        "P(second is 0) = p2[0][0]", lambda p1, q1, p2, q2: equal(p1[0] * p2[0][0] + p1[1] * p2[1][0], p2[0][0])
    )
    assert prove_claim(tail, 2).status == "refuted"
    assert prove_claim(Claim(tail.says, tail.holds, (same,)), 2).status == "held"


@pytest.mark.evidence
@pytest.mark.usefixtures("brief")
def test_a_true_claim_is_proved_for_two_tokens_and_tried_on_more() -> None:
    trial = try_claim(ORDER)
    assert (trial.verdict, trial.proved_for, trial.sizes) == ("proved for some V", (2,), (2, 3, *SIZES))
    assert all(finding.status == "held" for finding in trial.findings)
    assert "grid and next to its faces, V = 2: 2,729 cases, held" in str(trial)


def squares(row: Sequence[Any]) -> Any:
    return sum(share * share for share in row)


PLANTED = {
    "next to a face": ratio(1_999_999),
    "next to a face of the second pmfs": Claim(
        "KL of the second <= 66", lambda p1, q1, p2, q2: at_most(kl(p2[1], q2[1]), 66), (POSITIVE,)
    ),
    "next to a face at the second position alone": Claim(
        "p1 of what q2 leaves out",
        lambda p1, q1, p2, q2: at_most(p2[0][0], 10**6 * q2[0][0]),
        (POSITIVE, Assumption("p1 = q1", lambda p1, q1, p2, q2: p1[0] == q1[0])),
    ),
    "on three tokens": Claim("V < 3", lambda p1, q1, p2, q2: at_least(2 * squares(p1), 1)),
    "on seven tokens": Claim("V < 7", lambda p1, q1, p2, q2: at_least(6 * squares(p2[-1]), 1)),
    "where rows differ": Claim("p2[0] = p2[1]", lambda p1, q1, p2, q2: at_most(overlap(p2[0], p2[1]) * -1, -1)),
}


@pytest.mark.usefixtures("brief")
@each("claim", PLANTED.values())
def test_planted_false_claims_are_refuted(claim: Claim) -> None:
    trial = try_claim(claim)
    assert trial.verdict == "refuted"


TRUE = {
    "next to a face": ratio(2_000_000),
    "next to a face of the second pmfs": Claim(
        "KL >= 0", lambda p1, q1, p2, q2: at_least(kl(p2[1], q2[1]), 0), (POSITIVE,)
    ),
    "on seven tokens": Claim("V sum p^2 >= 1", lambda p1, q1, p2, q2: at_least(len(p1) * squares(p2[-1]), 1)),
}


@each("claim", TRUE.values())
def test_true_claims_like_them_are_not(claim: Claim) -> None:
    """Negative control."""
    assert judge_all(claim, draws(2)).status == "held"


@pytest.mark.usefixtures("brief")
@each("faces", (False, True))
def test_the_optimiser_walks_to_what_it_is_not_given(faces: bool) -> None:
    """From one drawn case where block and token accept the same; the largest difference is 1/4."""
    space = two_positions_space(2, faces=faces)

    def below(share: Fraction) -> Claim:
        return Claim(
            "block - token",
            lambda p1, q1, p2, q2: at_most(block(p1, q1, p2, q2) - token(p1, q1, p2, q2), share),
        )

    row = (HALF, HALF)
    drawn = st.just({"p1": row, "q1": row, "p2": (row, row), "q2": (row, row)})
    assert search_claim(below(Fraction(1, 5)), drawn, Effort(), (space,)).status == "refuted"
    assert search_claim(below(Fraction(1, 4)), drawn, Effort(), (space,)).status == "held"


def test_vocabularies_that_a_claim_assumes_are_tried() -> None:
    large = Assumption("V >= 4", lambda p1, q1, p2, q2: len(p1) >= 4)
    claim = Claim("token <= 2", lambda p1, q1, p2, q2: at_most(token(p1, q1, p2, q2), 2), (large,))
    finding = wide_search(claim, Effort(), domain_of(claim).wide)
    assert finding is not None
    assert (finding.status, finding.cases) == ("held", 49 * len(SIZES))
    false = Claim("token <= 1", lambda p1, q1, p2, q2: at_most(token(p1, q1, p2, q2), 1), (large,))
    finding = wide_search(false, Effort(), domain_of(false).wide)
    assert finding is not None
    assert finding.status == "refuted"


def test_the_solver_is_not_asked_of_vocabularies_that_are_excluded() -> None:
    """Nothing after such an assumption need have a value there."""
    large = Assumption("V >= 4", lambda p, q: len(p) >= 4)
    fourth = Assumption("p3 > 0", lambda p, q: p[3] > 0)
    for assumes in ((large,), (large, fourth)):
        finding = prove_claim(Claim("p3 <= 1", lambda p, q: at_most(p[3], 1), assumes), 2)
        assert (finding.status, finding.note) == ("undecided", CONTRADICT)
    assert prove_claim(Claim("p3 <= 1", lambda p, q: at_most(p[3], 1), (large, fourth)), 4).status == "held"


def test_positive_speaks_of_all_pmfs() -> None:
    row, edge = (HALF, HALF), (Fraction(0), Fraction(1))
    inside = {"p1": row, "q1": row, "p2": (row, row), "q2": (row, row)}
    assert POSITIVE.met(**inside)
    for name, value in (("p1", edge), ("q1", edge), ("p2", (row, edge)), ("q2", (edge, row))):
        assert not POSITIVE.met(**{**inside, name: value})


def test_the_fixed_numbers_of_two_drafts() -> None:
    """At p = (1/3, 2/3), q = (2/3, 1/3) both times: token 10/9, block 11/9."""
    third = Fraction(1, 3)
    p, q = (third, 2 * third), (2 * third, third)
    case = {"p1": p, "q1": q, "p2": (p, p), "q2": (q, q)}
    assert (token(**case), block(**case)) == (Fraction(10, 9), Fraction(11, 9))
    assert judge(ratio(1_100_000), case).status == "held"
    assert judge(ratio(1_099_999), case).status == "refuted"


@pytest.mark.usefixtures("brief")
def test_wrong_parameters_are_named_in_one_line() -> None:
    called = "is called with p1, q1, p2, q2 by name"
    refused(lambda: try_claim(Claim("c", lambda p, q, p2, q2: at_most(0, 1))), ClaimError, called)
    odd = Assumption("p <= 2q", lambda p, q: p[0] <= 2 * q[0])
    refused(lambda: try_claim(Claim("c", ORDER.holds, (odd,))), ClaimError, called)
