"""The gallery of claims: its verdicts are those of trials, its counterexamples refute, its formulas are the rules'."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from proofs_check import Claim, try_claim
from proofs_check.algorithms.enumeration import block_verification, token_verification
from proofs_check.evidence.judge import judge
from proofs_check.evidence.solver import prove_claim
from proofs_check.library.cases import random_pmf
from proofs_check.library.domains import of_pairs
from proofs_check.statement.claims import Case
from tests.docs.gallery import PAGE, claims, names, row, rows, table
from tests.made_up import each

SHOWN = {shown.claim: shown for shown in rows()}
REFUTED = [claim for claim in claims() if SHOWN[claim.says].counterexample]
PROVED = [claim for claim in claims() if SHOWN[claim.says].proved_for]


def case_of(text: str) -> Case:
    """A case as the table shows it.

    Examples
    --------
    >>> case_of("p1 = (1/2, 1), p2 = ((1, 0), (0, 1))")["p2"][1][1]
    Fraction(1, 1)
    """
    parts = re.split(r",? ?([pq][12]?) = ", text)[1:]
    numbers = [re.sub(r"\d+(/\d+)?", lambda number: f"Fraction('{number[0]}')", part) for part in parts[1::2]]
    return {name: eval(made, {"Fraction": Fraction}) for name, made in zip(parts[::2], numbers, strict=True)}


def test_the_table_has_every_claim_and_both_kinds() -> None:
    assert [shown.claim for shown in rows()] == [claim.says for claim in claims()]
    assert len(SHOWN) == 20
    assert table(rows()) in PAGE.read_text(encoding="utf-8")
    assert {shown.verdict for shown in rows()} == {"refuted", "undecided", "proved for some V", "not refuted"}
    assert all(bool(shown.counterexample) == (shown.verdict == "refuted") for shown in rows())
    assert len({claim.about for claim in REFUTED}) == len({claim.about for claim in PROVED}) == 2


@each("claim", REFUTED)
def test_its_counterexamples_refute(claim: Claim) -> None:
    case = case_of(SHOWN[claim.says].counterexample)
    assert claim.unmet(case) is None
    assert judge(claim, case).status == "refuted"


def test_a_case_that_refutes_nothing_would_be_seen() -> None:
    """Negative control: of other claims the same cases are no counterexamples."""
    case = case_of(SHOWN["block = 2 - TV(first) - TV(both)"].counterexample)
    true = next(claim for claim in claims() if claim.says == "block <= 2 - TV(first) - TV(both)")
    assert judge(true, case).status == "held"


@each("claim", PROVED)
def test_what_it_calls_proved_is_proved_again_on_two_tokens(claim: Claim) -> None:
    assert SHOWN[claim.says].proved_for.startswith("2")
    assert prove_claim(claim, 2).status == "held"


@each("name, rule", [("token", token_verification), ("block", block_verification)])
def test_its_formulas_are_what_the_algorithms_accept(name: str, rule: Callable[..., Any]) -> None:
    """Against all outcomes of a call of two drafts, in fractions, on 2 and 3 tokens."""
    rng, accepted, other = random.Random(7), names()[name], names()["block" if name == "token" else "token"]
    differ = 0
    for tokens, _ in product((2, 3), range(6)):
        first, *following = (
            {"p": random_pmf(rng, tokens, 3), "q": random_pmf(rng, tokens, 3)} for _ in range(1 + tokens)
        )
        case = of_pairs(first, following)

        def model(side: str, first: Case = first, following: list[Case] = following) -> Callable[..., Any]:
            flat = (Fraction(1, len(first["p"])),) * len(first["p"])
            return lambda prefix: (
                first[side] if not prefix else following[prefix[0]][side] if len(prefix) == 1 else flat
            )

        law = rule(model("p"), model("q"), (), 2)
        mean = sum(count * share for (_, count), share in law.items())
        assert accepted(**case) == mean
        differ += other(**case) != mean
    assert differ > 0


@pytest.mark.evidence
def test_trials_give_the_verdicts_that_the_page_shows() -> None:
    """Another counterexample of the same claim would do: ``python -m tests.docs.gallery`` writes what was found."""
    for claim in claims():
        assert row(try_claim(claim))[:3] == SHOWN[claim.says][:3]
