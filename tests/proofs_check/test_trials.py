"""Trials of a claim: the verdict says on which vocabularies it was proved, and larger ones are searched too."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from proofs_check import (
    POSITIVE,
    Assumption,
    AssumptionError,
    Claim,
    ClaimError,
    Effort,
    at_least,
    at_most,
    equal,
    larger,
    log,
    smaller,
    try_claim,
)
from proofs_check.evidence.judge import judge
from proofs_check.evidence.solver import prove_claim
from proofs_check.evidence.symbolic import valid
from proofs_check.library.wide import SIZES, wide_search
from proofs_check.statement import fractions
from proofs_check.statement.claims import Compared
from proofs_check.statement.findings import Finding
from spectheory.errors import SpectheoryError
from tests.made_up import each, refused
from tests.proofs_check.claim_cases import PINSKER, TOO_MUCH, distance, kl, overlap

HALF = Fraction(1, 2)
TRIED = "2 to 10, 12, 14, 16, 20, 24, 32, 48, 64"

pytestmark = pytest.mark.usefixtures("brief")


def squares(p: Sequence[Any]) -> Any:
    return sum(a * a for a in p)


def most(p: Sequence[Any]) -> Any:
    largest = p[0]
    for share in p[1:]:
        largest = larger(largest, share)
    return largest


AFFINITY = Claim("p.q <= 1 - TV", lambda p, q: at_most(sum(a * b for a, b in zip(p, q, strict=True)), overlap(p, q)))


# For which vocabularies


@pytest.mark.parametrize(
    ("measure", "tokens"), [(squares, 6), (squares, 40), (most, 7), (most, 63)], ids=lambda value: str(value)[:14]
)
def test_what_holds_on_few_tokens_alone_is_refuted_on_more(measure: Callable[[Any], Any], tokens: int) -> None:
    """The flat pmf has sum p^2 = max p = 1/V: either is at least 1/n exactly for V <= n."""
    claim = Claim(f"at least 1/{tokens}", lambda p, q: at_least(tokens * measure(p), 1))
    assert [prove_claim(claim, few).status for few in (2, 3)] == ["held", "held"]
    trial = try_claim(claim)
    assert trial.verdict == "refuted"
    assert trial.counterexample is not None
    assert (trial.counterexample.at.count(",") + 1) // 2 > tokens


def test_the_smallest_vocabulary_that_refutes_is_the_one_shown() -> None:
    """Every size up to ten is tried, the smallest first."""
    for tokens in range(4, 10):
        claim = Claim("", lambda p, q, n=tokens: at_least(n * squares(p), 1))
        finding = wide_search(claim, Effort())
        assert finding is not None
        assert finding.status == "refuted"
        assert finding.at.startswith(f"p = ({', '.join([f'1/{tokens + 1}'] * (tokens + 1))})")


def test_the_verdict_says_for_which_vocabularies() -> None:
    trial = try_claim(AFFINITY)
    assert trial.wide is not None
    assert (trial.verdict, trial.proved_for, trial.largest) == ("proved for some V", (2, 3), 64)
    count = sum(finding.cases for finding in trial.findings)
    assert trial.sizes == (2, 3, *SIZES)
    assert trial.summary == f"proved for V = 2, 3; not refuted at V = {TRIED} ({count:,} cases)"
    assert str(trial).startswith(f"p.q <= 1 - TV: {trial.summary}\n")
    answer = trial.as_dict()
    assert (answer["verdict"], answer["summary"]) == (trial.verdict, trial.summary)
    assert (answer["proved_for"], answer["largest"], answer["sizes"]) == ([2, 3], 64, [2, 3, *SIZES])
    assert try_claim(AFFINITY, tokens=(2,)).summary.startswith(f"proved for V = 2; not refuted at V = {TRIED} (")


@pytest.mark.evidence
def test_a_claim_without_a_proof_is_searched_as_far() -> None:
    trial = try_claim(PINSKER)
    assert (trial.verdict, trial.proofs, trial.proved_for) == ("not refuted", {}, ())
    assert "the log of" in trial.no_proof
    assert trial.summary.startswith(f"not refuted at V = {TRIED} (")
    trial = try_claim(TOO_MUCH)
    assert trial.verdict == trial.summary == "refuted"
    assert "counterexample" in str(trial)


def test_a_solver_that_gives_up_leaves_the_sizes_it_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the three sizes of a claim whose third the solver cannot decide: undecided, and it says which stand."""
    proof = {2: Finding("held", 1), 3: Finding("held", 1), 4: Finding("undecided", 1, note="undecided by the solver")}
    monkeypatch.setattr("proofs_check.run.trial.prove_claim", lambda claim, tokens, seconds: proof[tokens])
    trial = try_claim(AFFINITY, tokens=(2, 3, 4))
    assert trial.verdict == "undecided"
    assert trial.summary.startswith(f"undecided; proved for V = 2, 3; not refuted at V = {TRIED} (")


# Assumptions about the vocabulary


def within(low: int, high: int) -> Claim:
    met = Assumption(f"V is {low} to {high}", lambda p, q: low <= len(p) <= high)
    return Claim("p.q <= 1 - TV", AFFINITY.holds, (met,))


def test_a_claim_is_tried_on_the_vocabularies_that_it_assumes() -> None:
    """Few, four and more, and more than the draws have; a false one is refuted there."""
    few, four, six = (try_claim(within(*sizes)) for sizes in ((2, 3), (4, 64), (6, 9)))
    assert [few.sizes, four.sizes, six.sizes] == [(2, 3), SIZES, (6, 7, 8, 9)]
    assert (few.verdict, few.wide) == ("proved for some V", None)
    assert (four.verdict, four.grid, four.proofs) == ("not refuted", None, {})
    assert four.no_proof == "no pair on 2, 3 tokens meets the assumptions"
    assert (six.search, six.summary.split(" (")[0]) == (None, "not refuted at V = 6 to 9")
    assert four.as_dict()["grid"] is None
    false = Claim("sum p^2 >= 1/5", lambda p, q: at_least(5 * squares(p), 1), within(4, 64).assumes)
    assert try_claim(false).verdict == "refuted"


def test_a_claim_about_a_vocabulary_that_is_not_tried_says_which_are() -> None:
    for tokens in (1, 11):
        refused(lambda n=tokens: try_claim(within(n, n)), AssumptionError, f"pairs on {TRIED} tokens were tried")


# Faces of the simplex


def jensen_shannon(p: Sequence[Any], q: Sequence[Any]) -> Any:
    return sum(a * log(2 * a / (a + b)) + b * log(2 * b / (a + b)) for a, b in zip(p, q, strict=True)) / 2


def below_its_bound(share: Fraction) -> Claim:
    """JS <= log 2 TV - share TV (1 - TV): false where p and q have one token in common and nearly one each beside."""

    def holds(p: Sequence[Any], q: Sequence[Any]) -> Compared:
        tv = distance(p, q)
        return at_most(jensen_shannon(p, q), log(2) * tv - share * tv * (1 - tv))

    return Claim("JS below log 2 TV", holds, (POSITIVE,))


def test_a_claim_that_fails_next_to_a_face_is_refuted() -> None:
    near = Fraction(1, 10**7)
    known = {"p": (HALF, HALF - near, near), "q": (HALF, near, HALF - near)}
    assert judge(below_its_bound(Fraction(1, 10**4)), known).status == "refuted"
    for share in (Fraction(1, 10**4), Fraction(1, 10**9)):
        assert try_claim(below_its_bound(share)).verdict == "refuted"
    assert judge(below_its_bound(Fraction(0)), known).status == "held"


def test_a_claim_that_takes_too_long_on_many_tokens_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for larger vocabularies is bounded: of a claim in 2^V steps the last size is the one reached."""
    monkeypatch.setattr("proofs_check.library.wide.SECONDS", (0.0, 0.0))
    trial = try_claim(AFFINITY)
    assert (trial.wide, trial.sizes) == (None, (2, 3, 4, 5))  # the draws have up to five tokens
    assert "not refuted at V = 2 to 5 (" in trial.summary


# Tuples


def test_tuples_are_compared_number_by_number() -> None:
    """By the solver, in fractions and by intervals alike; a list is as good as a tuple."""
    swapped = Claim(
        "min(p, q) = min(q, p)",
        lambda p, q: equal(tuple(map(smaller, p, q)), tuple(map(smaller, q, p))),
    )
    nested = Claim("sums", lambda p, q: equal({"p": (sum(p), [p[0] + q[0]])}, {"p": [1, (q[0] + p[0],)]}))
    for claim in (swapped, nested):
        trial = try_claim(claim)
        assert (trial.verdict, trial.proved_for) == ("proved for some V", (2, 3))
    wrong = Claim("p = q", lambda p, q: equal(p, q))
    assert [prove_claim(wrong, few).status for few in (2, 3)] == ["refuted", "refuted"]
    shorter = Claim("p = its beginning", lambda p, q: equal(p, p[:-1]))
    assert try_claim(shorter).verdict == prove_claim(shorter, 2).status == "refuted"
    assert judge(Claim("logs", lambda x: equal([log(x)], (log(x),))), {"x": HALF}).status == "held"
    assert judge(Claim("numbers", lambda x: equal([x, 1], (x, 1))), {"x": HALF}).status == "held"


def test_an_order_of_tuples_is_no_statement() -> None:
    ordered = Claim("p <= q", lambda p, q: at_most(p, q))
    with pytest.raises(ClaimError, match="tuple"):
        try_claim(ordered)
    with pytest.raises(ClaimError, match="number by number"):
        prove_claim(ordered, 2)
    with pytest.raises(ClaimError, match="number by number"):
        valid("pairs", lambda a, b: at_most((a, b), (a, b))).check(5)


def test_an_assumption_with_a_float_proves_nothing() -> None:
    """To a solver 0.3 is 3/10; the float is a little less, where the claim is false."""
    for bound, verdict in ((0.3, "not refuted"), (Fraction(3, 10), "proved for some V")):
        assumed = Assumption("p0", lambda p, q, bound=bound: p[0] >= bound)
        trial = try_claim(Claim("c", lambda p, q: at_least(p[0], Fraction(3, 10)), (assumed,)))
        assert trial.verdict == verdict


@pytest.mark.parametrize(
    "first",
    [
        lambda p: p[0] + fractions.Fraction(0),
        lambda p: fractions.Fraction(0) + p[0],
        lambda p: p[0] + Fraction(0),
        lambda p: Fraction(0) + p[0],
        lambda p: 0 - (-p[0]),
        lambda p: smaller(p[0], p[0]),
    ],
)
def test_what_an_assumption_works_out_refuses_floats_too(first: Callable[[Sequence[Any]], Any]) -> None:
    """Sums with either kind of fractions, and signs."""
    for bound in (0.3, Fraction(3, 10)):
        assumed = Assumption("p0", lambda p, q, bound=bound: first(p) >= bound)
        trial = try_claim(Claim("c", lambda p, q: at_least(p[0], Fraction(3, 10)), (assumed,)), tokens=(2,))
        assert ("the float 0.3" in str(trial)) == isinstance(bound, float)
        assert trial.verdict.startswith("not refuted" if isinstance(bound, float) else "proved")


def test_numbers_that_no_float_holds_are_compared() -> None:
    large = Claim("c", lambda p, q: at_most(p[0], 10**400))
    assert (try_claim(large).verdict, judge(large, {"p": [HALF], "q": ()}).gap) == ("proved for some V", math.inf)
    assert judge(Claim("c", lambda x: at_most(x, -(10**400))), {"x": HALF}).gap == -math.inf


# Bad input


def _ends() -> Any:
    raise GeneratorExit


BAD: dict[str, tuple[Claim, str]] = {
    "no comparison": (Claim("c", lambda p, q: overlap(p, q)), "needs at_most"),
    "a float": (Claim("c", lambda p, q: at_most(0.5 * overlap(p, q), 1)), "fractions give fractions"),
    "no number": (Claim("c", lambda p, q: at_most("1", 1)), "str"),
    "a truth": (Claim("c", lambda p, q: Compared(True, "==", True)), "bool"),
    "division by zero": (Claim("c", lambda p, q: at_most(kl(p, q), 1)), "POSITIVE"),
    "other parameters": (Claim("c", lambda a: at_most(a, 1)), "is called with p, q"),
    "nothing": (Claim("c", lambda p, q: []), "needs at_most"),
    "no name": (Claim("c", lambda p, q: nowhere), "NameError"),  # type: ignore[name-defined]  # noqa: F821
    "nan": (Claim("c", lambda p, q: at_most(float("nan"), 1)), "fractions give fractions"),
    "a huge number": (Claim("c", lambda p, q: at_most(p[0], 10**400_000)), "1,000,000 bits"),
    "an exit": (Claim("c", lambda p, q: sys.exit(3)), "SystemExit"),
    "another end": (Claim("c", lambda p, q: _ends()), "GeneratorExit"),
    "an assumption that breaks": (
        Claim("c", lambda p, q: at_most(0, 1), (Assumption("odd", lambda p, q: 1 / p[0] > 0),)),
        "assumption 'odd'",
    ),
    "an assumption never met": (
        Claim("c", lambda p, q: at_most(0, 1), (Assumption("p sums to 2", lambda p, q: sum(p) == 2),)),
        "meets the assumption 'p sums to 2'",
    ),
}


@each("claim, fragment", BAD.values())
def test_bad_claims_are_named_in_one_line(claim: Claim, fragment: str) -> None:
    refused(lambda: try_claim(claim), SpectheoryError, fragment)
