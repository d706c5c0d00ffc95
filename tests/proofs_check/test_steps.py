"""Steps of proofs: one that carries the argument is no identity as it is written; the others are marked."""

from __future__ import annotations

import pytest

from proofs_check import at_most, equal
from proofs_check.evidence.entries import Entry
from proofs_check.evidence.solver import DIVIDES
from proofs_check.evidence.symbolic import (
    AS_WRITTEN,
    Step,
    cited,
    damaged,
    in_words,
    parts,
    prove,
    same,
    valid,
)
from proofs_check.run.ledger import ledger
from proofs_check.statement import calculus
from proofs_check.statement.findings import Effort
from proofs_check.statement.fractions import Fraction
from tests.made_up import each

PROOFS = [evidence for entry in ledger().values() for evidence in entry.evidence if evidence.kind == "symbolic"]
STEPS = list({id(step): step for proof in PROOFS for step in proof.steps}.values())

EXPANDED = same("the square", lambda a, b: ((a + b) ** 2, a * a + 2 * a * b + b * b))
AS_IT_STANDS = same("a/b of b", lambda a, b: (a / b * b, a))
WORDS = in_words("a/b of b", lambda a, b: (a / b * b, a))
NAMED = cited("convexity", "jensen1906")


@each("step", STEPS)
def test_a_step_that_carries_the_argument_is_no_identity_as_it_is_written(step: Step) -> None:
    assert step.as_written() == (step.part == "words")


def test_an_identity_as_it_is_written_is_told_from_one_that_is_shown() -> None:
    """Negative controls of the above, for algebra and solver."""
    assert AS_IT_STANDS.as_written()
    assert not EXPANDED.as_written()
    assert valid("a <= a", lambda a: at_most(a, a)).as_written()
    assert valid("1 <= 2", lambda a: at_most(1, 2)).as_written()
    assert not valid("ab = ba", lambda a, b: equal(a * b, b * a)).as_written()
    assert not valid("2 <= 1", lambda a: at_most(2, 1)).as_written()


def test_a_formula_that_shows_nothing_is_not_accepted() -> None:
    for step in (AS_IT_STANDS, valid("a = a", lambda a: equal(a, a))):
        finding = step.check(5)
        assert (finding.status, finding.note) == ("undecided", AS_WRITTEN)
        assert prove([EXPANDED, step], Effort()).status == "undecided"
    assert in_words("not as written", lambda a: ((a + 1) ** 2, a * a + 2 * a + 1)).check(5).status == "undecided"
    assert in_words("false", lambda a: (a, 2 * a)).check(5).status == "undecided"
    assert valid("2 <= 1", lambda a: at_most(2, 1)).check(5).status == "refuted"


def test_a_fraction_is_exact_in_a_step() -> None:
    """A third is none of the floats, and what is added to 1 is not lost."""
    nearest = Fraction(1 / 3)
    assert nearest != Fraction(1, 3)
    assert same("a third", lambda a: (a * Fraction(1, 3), a * nearest)).check(5).status == "refuted"
    assert same("a square", lambda a: ((a + 1) ** 2 + Fraction(1, 10**19), a * a + 2 * a + 1)).check(5).status != "held"


def test_calculus_is_worked_out_by_the_check() -> None:
    """Slopes, limits and integrals are no identities as they are written; wrong ones are refuted."""

    def slope(power: int) -> Step:
        return same("slope", lambda x: (calculus.slope(x**3, x), 3 * x**power))

    def limit(value: int) -> Step:
        return same("limit", lambda x: (calculus.limit((1 + x) / x, x, float("inf")), value))

    def area(parts_: int) -> Step:
        return same("area", lambda x, u: (calculus.integral(u, u, 0, x), x * x / parts_))

    for right, wrong in ((slope(2), slope(1)), (limit(1), limit(2)), (area(2), area(3))):
        assert not right.as_written()
        assert (right.check(5).status, wrong.check(5).status) == ("held", "refuted")


def test_a_damaged_proof_is_rejected() -> None:
    """An assumption dropped where there is one that counts, or else a side changed; words have nothing to damage."""
    needs = valid("a <= a b", lambda a, b: at_most(a, a * b), lambda a, b: [a > 0, b >= 1])
    finding = damaged([EXPANDED, WORDS, needs], Effort())
    assert (finding.status, finding.cases, finding.note) == ("refuted", 2, "1 a side changed, 1 an assumption dropped")
    assert next(iter(needs.damaged(5)))[0] == "without the assumption a > 0"


def test_a_damage_that_divides_by_zero_is_none() -> None:
    """Without a > 0 the solver takes any number for 0/0; every number but that satisfies the step."""
    step = valid("a/a >= 0", lambda a: at_most(0, a / a), lambda a: [a > 0])
    (what, finding), *_ = step.damaged(5)
    assert (what, finding.status, finding.note) == ("without the assumption a > 0", "undecided", DIVIDES)


def test_a_step_that_nothing_changes_is_noticed() -> None:
    """Negative control of the above: so loose a step holds whatever is changed in it."""
    loose = valid("a <= a + 5", lambda a: at_most(a, a + 5), lambda a: [a > 0])
    assert prove([loose], Effort()).status == "held"
    assert damaged([EXPANDED, loose], Effort()).status == "held"


def test_the_parts_of_a_proof_are_counted() -> None:
    finding = prove([EXPANDED, WORDS, NAMED, EXPANDED], Effort())
    assert (finding.status, finding.cases, finding.note) == ("held", 1, "1 in words, 1 cited")
    assert parts([EXPANDED, WORDS, NAMED, EXPANDED]) == {"argument": 1, "words": 1, "cited": 1}
    with pytest.raises(ValueError, match="without steps that carry the argument"):
        prove([WORDS, NAMED], Effort())


@each("entry", [e for e in ledger().values() if any(v.tokens for v in e.evidence)])
def test_a_proof_for_some_vocabularies_stands_beside_one_for_all(entry: Entry) -> None:
    """Otherwise the statement's row would say *proved* of a few vocabularies alone."""
    proofs = [evidence for evidence in entry.evidence if evidence.kind == "symbolic"]
    assert any(not proof.tokens for proof in proofs)
