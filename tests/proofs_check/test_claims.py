"""Claims, judges and trials: every kind of evidence accepts what is true, rejects what is false, or says it cannot."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from proofs_check import (
    POSITIVE,
    AssumptionError,
    Claim,
    at_least,
    at_most,
    equal,
    is_zero,
    larger,
    log,
    smaller,
    try_claim,
)
from proofs_check.evidence.judge import judge, judge_all
from proofs_check.evidence.search import pair_space, search_claim
from proofs_check.evidence.solver import prove_claim
from proofs_check.evidence.symbolic import cited, prove, same, valid
from proofs_check.library import cases, strategies
from proofs_check.library.wide import SIZES, wide_search
from proofs_check.statement import fractions
from proofs_check.statement.claims import Assumption, ClaimError, Compared, computed
from proofs_check.statement.findings import Effort, Finding
from spectheory.errors import SpectheoryError
from tests.made_up import each, refused
from tests.proofs_check.claim_cases import PINSKER, TOO_MUCH, distance, kl, overlap

THIRD = Fraction(1, 3)
PAIR = {"p": (THIRD, 2 * THIRD), "q": (2 * THIRD, THIRD)}

COUPLING = Claim("TV = 1 - sum min", lambda p, q: equal(distance(p, q), 1 - overlap(p, q)))


def test_one_claim_in_every_arithmetic() -> None:
    assert judge(COUPLING, PAIR).status == "held"
    assert prove_claim(COUPLING, 2).status == prove_claim(COUPLING, 3).status == "held"
    assert judge(PINSKER, PAIR).status == "held"
    assert not judge(PINSKER, PAIR).exact


def test_fractions_are_compared_without_slack() -> None:
    tiny = Fraction(1, 10**60)
    assert judge(Claim("x <= 1", lambda x: at_most(x, 1)), {"x": 1 + tiny}).status == "refuted"
    assert judge(Claim("x = 1", lambda x: equal(x, 1)), {"x": 1 + tiny}).status == "refuted"
    assert judge(Claim("x >= 1", lambda x: at_least(x, 1)), {"x": Fraction(1)}).status == "held"
    assert judge(Claim("(x, x)", lambda x: equal((x, {"a": x}), (x, {"a": x}))), {"x": THIRD}).status == "held"


@pytest.mark.parametrize(("factor", "status"), [(1 + 10**-9, "held"), (1 - 10**-9, "refuted")])
def test_intervals_decide_at_once_what_differs(factor: float, status: str) -> None:
    """The logarithm of 2 against itself times a number a billionth away from one."""
    near = Fraction(factor)
    assert judge(Claim("", lambda x: at_most(log(x), near_log(x, near))), {"x": Fraction(2)}).status == status


def near_log(x: Any, factor: Fraction) -> Any:
    return log(x) * factor.numerator / factor.denominator


def test_equal_logarithms_are_certified_up_to_the_slack() -> None:
    doubled = Claim("2 log x = log x^2", lambda x: equal(2 * log(x), log(x * x)))
    assert judge(doubled, {"x": THIRD}).status == "held"
    assert judge(Claim("not", lambda x: equal(2 * log(x), log(x * x * x))), {"x": THIRD}).status == "refuted"


def test_more_digits_are_taken_where_they_are_needed() -> None:
    """A difference far below the first precision: still told apart, or within the slack."""
    huge = Fraction(10**200)
    claim = Claim("log(1 + x) <= log x + 1/x", lambda x: at_most(log(1 + x), log(x) + 1 / x))
    assert judge(claim, {"x": huge}).status == "held"
    scaled = Claim("x (log(1 + x) - log x) <= 1", lambda x: at_most(x * (log(1 + x) - log(x)), 1))
    assert judge(scaled, {"x": huge}).status == "held"
    wrong = Claim("x (log(1 + x) - log x) <= 1/2", lambda x: at_most(2 * x * (log(1 + x) - log(x)), 1))
    assert judge(wrong, {"x": huge}).status == "refuted"


def test_floats_agree_but_for_their_rounding() -> None:
    tenth = Claim("0.1", lambda x: computed(0.1, x))
    assert judge(tenth, {"x": Fraction(1, 10)}).status == "held"
    assert judge(tenth, {"x": Fraction(1, 10) + Fraction(1, 10**11)}).status == "refuted"
    assert judge(Claim("log", lambda x: computed(-1.0986122886681098, log(x))), {"x": THIRD}).status == "held"
    assert judge(Claim("log", lambda x: computed(-1.0986122886, log(x))), {"x": THIRD}).status == "refuted"
    for value in (float("nan"), float("inf")):
        assert judge(Claim("no", lambda x, v=value: computed(v, x)), {"x": THIRD}).status == "refuted"


def test_the_first_counterexample_is_the_smallest() -> None:
    sum_of_squares = Claim("p.p <= 1/2", lambda p, q: at_most(2 * sum(a * a for a in p), 1))
    finding = judge_all(sum_of_squares, cases.pairs(2, 5))
    assert (finding.status, finding.cases, finding.at) == ("refuted", 1, "p = (0, 1), q = (0, 1)")


def test_grids_are_whole_and_without_repetition() -> None:
    grid = [(case["p"], case["q"]) for case in cases.pairs(3, 4)]
    assert len(set(grid)) == len(grid)
    shared = {tuple(Fraction(w, d) for w in (a, b, d - a - b)) for d in (4,) for a in range(5) for b in range(5 - a)}
    assert {(p, q) for p in shared for q in shared} <= set(grid)
    assert all(sum(p) == sum(q) == 1 for p, q in grid)


# Proofs


def test_proofs_stop_at_the_first_step_that_is_not_shown() -> None:
    true = same("binomial", lambda a, b: ((a - b) * (a + b), a**2 - b**2))
    false = valid("a <= a^2", lambda a: at_most(a, a * a), lambda a: [a > 0])
    assert prove([true, cited("Jensen", "jensen1906")], Effort()).note == "1 cited"
    finding = prove([true, false, true], Effort())
    assert (finding.status, finding.at) == ("refuted", "a = 1/2")


def test_a_timeout_is_undecided_and_no_proof() -> None:
    hard = Claim("S/2 <= race", lambda p, q: at_most(half_similarity(p, q), race(p, q)), (POSITIVE,))
    finding = prove_claim(hard, 3, 0.01)
    assert finding.status == "undecided"
    assert "0.01 s" in finding.note
    assert prove_claim(hard, 2).status == "held"


def half_similarity(p: Sequence[Any], q: Sequence[Any]) -> Any:
    return sum(a * b / (a + b) for a, b in zip(p, q, strict=True))


def race(p: Sequence[Any], q: Sequence[Any]) -> Any:
    pairs = list(zip(p, q, strict=True))
    return sum(1 / sum(larger(b / a_x, d / b_x) for b, d in pairs) for a_x, b_x in pairs)


def test_a_refutation_that_divides_by_zero_is_none() -> None:
    """Of z3 1/0 is any number; a pmf with a zero is no counterexample to a claim that has no value there."""
    claim = Claim("p0/p0 = 1", lambda p, q: equal(p[0] / p[0], 1))
    assert prove_claim(claim, 2).status == "undecided"
    assert prove_claim(Claim(claim.says, claim.holds, (POSITIVE,)), 2).status == "held"


def test_what_no_solver_can_take_is_said() -> None:
    for holds in (lambda p, q: at_most(kl(p, q), 1), lambda p, q: at_most(max(p[0], q[0]), 1)):
        with pytest.raises(ClaimError, match="cannot be written for the solver"):
            prove_claim(Claim("", holds), 2)
    odd = Claim("", lambda p, q: at_most(p[0], 1), (Assumption("", lambda p, q: "yes"),))
    with pytest.raises(ClaimError, match="'yes', which is no truth value"):
        prove_claim(odd, 2)


# Search


def test_the_search_finds_what_is_false_and_shrinks_it() -> None:
    false = Claim("p.q <= 0.9", lambda p, q: at_most(10 * sum(a * b for a, b in zip(p, q, strict=True)), 9))
    finding = search_claim(false, strategies.exact_pairs(), Effort())
    assert finding.status == "refuted"
    assert "1" in finding.at


@pytest.mark.evidence
def test_the_optimiser_walks_to_the_tightest_case() -> None:
    """The largest p.p of three tokens within 1/1000 of the boundary p0 <= 1/2 that the assumption draws."""
    half = Assumption("every share is at most 1/2", lambda p, q: all(2 * share <= 1 for share in p))
    claim = Claim("p.p <= 1/2", lambda p, q: at_most(2 * sum(a * a for a in p), 1), (half,))
    finding = search_claim(claim, strategies.exact_pairs(3, 3), Effort(), (pair_space(3),))
    assert finding.status == "held"
    assert finding.gap is not None
    assert 0 <= finding.gap < 1e-3
    wrong = Claim("p.p <= 49/100", lambda p, q: at_most(100 * sum(a * a for a in p), 49), (half,))
    nowhere = st.just({"p": (THIRD,) * 3, "q": (THIRD,) * 3})
    assert search_claim(wrong, nowhere, Effort(), (pair_space(3),)).status == "refuted"


@pytest.mark.evidence
def test_a_search_is_the_same_every_time_and_another_when_deep() -> None:
    runs = [search_claim(PINSKER, strategies.exact_pairs(3), Effort(), (pair_space(2),)) for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.evidence
@pytest.mark.parametrize("distance_wanted", [Fraction(0), Fraction(1, 7), Fraction(1)])
def test_pairs_of_a_given_distance(distance_wanted: Fraction) -> None:
    pair = find(strategies.pairs_at(distance_wanted), lambda case: True)
    assert distance(pair["p"], pair["q"]) == distance_wanted

    @given(strategies.pairs_at(distance_wanted))
    def check(case: dict[str, Any]) -> None:
        assert sum(case["p"]) == sum(case["q"]) == 1
        assert distance(case["p"], case["q"]) == distance_wanted

    check()


# Bad input


def test_bad_parts_of_a_claim_are_named() -> None:
    for assumes in (POSITIVE, (lambda p, q: True,)):
        with pytest.raises(ClaimError, match="tuple of Assumption"):
            Claim("c", lambda p, q: at_most(0, 1), assumes)  # type: ignore[arg-type]
    with pytest.raises(ClaimError, match="says 3"):
        Claim(3, lambda p, q: at_most(0, 1))  # type: ignore[arg-type]
    with pytest.raises(ClaimError, match="no function"):
        Claim("c", "p <= q")  # type: ignore[arg-type]
    for seed in (-1, "x"):
        with pytest.raises(SpectheoryError, match="seed"):
            Effort(seed=seed)  # type: ignore[arg-type]


def test_a_claim_may_fail_while_its_comparisons_are_drawn() -> None:
    def lazily(p: Any, q: Any) -> Any:
        yield at_most(1 / p[0], 1)

    with pytest.raises(ClaimError, match="POSITIVE"):
        judge(Claim("c", lazily), {"p": (Fraction(0), Fraction(1)), "q": (THIRD, 2 * THIRD)})


def test_fractions_among_intervals() -> None:
    assert judge(Claim("log x <= 0", lambda x: at_most(log(x), Fraction(0))), {"x": THIRD}).status == "held"
    assert judge(Claim("log x >= 0", lambda x: at_most(Fraction(0), log(x))), {"x": THIRD}).status == "refuted"


# What a solver must not be led to prove

ODD_SHARE = Fraction(17, 97)


def branching(p: Any, q: Any) -> Any:
    return at_most(1, 0) if p[0] == ODD_SHARE else at_most(0, 1)


VACUOUS: dict[str, Claim] = {
    "an equality of tuples assumed": Claim(
        "c", lambda p, q: at_most(1, 0), (Assumption("p = q", lambda p, q: p == q),)
    ),
    "an or of equalities assumed": Claim(
        "c", lambda p, q: at_most(1, 0), (Assumption("", lambda p, q: p[0] == q[0] or p[0] == ODD_SHARE),)
    ),
    "a branch on a share": Claim("c", branching),
    "a share taken not to be zero": Claim("c", lambda p, q: at_most(5 if is_zero(p[0]) else p[0], 1)),
    "a difference taken not to be zero": Claim("c", lambda p, q: at_most(int(is_zero(p[0] - ODD_SHARE)), 0)),
    "contradictory assumptions": Claim(
        "c",
        lambda p, q: at_most(1, 0),
        (Assumption("", lambda p, q: p[0] > q[0]), Assumption("", lambda p, q: p[0] < q[0])),
    ),
    "an empty list": Claim("c", lambda p, q: []),
    "rounding": Claim("c", lambda p, q: Compared(p[0], "~", p[0] + 1)),
}


@each("name", VACUOUS)
def test_the_solver_is_not_led_to_prove_what_is_false(name: str) -> None:
    for tokens in (2, 3):
        try:
            assert prove_claim(VACUOUS[name], tokens).status != "held"
        except (ClaimError, ValueError):
            continue


def test_steps_need_conditions_that_can_hold_and_something_stated() -> None:
    contradiction = valid("1 <= 0", lambda a: at_most(1 + 0 * a, 0), lambda a: [a > 0, a < 0])
    assert contradiction.check(5).status == "undecided"
    with pytest.raises(ValueError, match="nothing is stated"):
        valid("nothing", lambda a: []).check(5)
    with pytest.raises(ValueError, match="without steps"):
        prove((), Effort())


def test_a_zero_that_the_assumptions_exclude_is_none() -> None:
    claim = Claim("p0/p0 = 1", lambda p, q: equal(1 if is_zero(p[0]) else p[0] / p[0], 1))
    assert "undecided at zeros" in prove_claim(claim, 2).note
    assert prove_claim(Claim(claim.says, claim.holds, (POSITIVE,)), 2).status == "held"


def test_intervals_take_fractions_and_no_floats() -> None:
    with pytest.raises(ClaimError, match="float"):
        judge(Claim("c", lambda x: at_most(log(x) * 0 + 1 / 3, 1)), {"x": Fraction(2)})
    half = Claim("log 2 / 2 <= log x", lambda x: at_most(Fraction(1, 2) * log(2), log(x)))
    assert judge(half, {"x": Fraction(2)}).status == "held"
    keys = Claim("c", lambda x: equal({"a": log(x)}, {"b": log(x)}))
    assert judge(keys, {"x": Fraction(2)}).status == "refuted"


HALF = Fraction(1, 2)
TRIED = "2 to 10, 12, 14, 16, 20, 24, 32, 48, 64"


def squares(p: Sequence[Any]) -> Any:
    return sum(a * a for a in p)


def most(p: Sequence[Any]) -> Any:
    largest = p[0]
    for share in p[1:]:
        largest = larger(largest, share)
    return largest


AFFINITY = Claim("p.q <= 1 - TV", lambda p, q: at_most(sum(a * b for a, b in zip(p, q, strict=True)), overlap(p, q)))


# For which vocabularies


@pytest.mark.usefixtures("brief")
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


@pytest.mark.usefixtures("brief")
def test_the_smallest_vocabulary_that_refutes_is_the_one_shown() -> None:
    """Every size up to ten is tried, the smallest first."""
    for tokens in range(4, 10):
        claim = Claim("", lambda p, q, n=tokens: at_least(n * squares(p), 1))
        finding = wide_search(claim, Effort())
        assert finding is not None
        assert finding.status == "refuted"
        assert finding.at.startswith(f"p = ({', '.join([f'1/{tokens + 1}'] * (tokens + 1))})")


@pytest.mark.usefixtures("brief")
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


@pytest.mark.usefixtures("brief")
@pytest.mark.evidence
def test_a_claim_without_a_proof_is_searched_as_far() -> None:
    trial = try_claim(PINSKER)
    assert (trial.verdict, trial.proofs, trial.proved_for) == ("not refuted", {}, ())
    assert "the log of" in trial.no_proof
    assert trial.summary.startswith(f"not refuted at V = {TRIED} (")
    trial = try_claim(TOO_MUCH)
    assert trial.verdict == trial.summary == "refuted"
    assert "counterexample" in str(trial)


@pytest.mark.usefixtures("brief")
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


@pytest.mark.usefixtures("brief")
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


@pytest.mark.usefixtures("brief")
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


@pytest.mark.usefixtures("brief")
def test_a_claim_that_fails_next_to_a_face_is_refuted() -> None:
    near = Fraction(1, 10**7)
    known = {"p": (HALF, HALF - near, near), "q": (HALF, near, HALF - near)}
    assert judge(below_its_bound(Fraction(1, 10**4)), known).status == "refuted"
    for share in (Fraction(1, 10**4), Fraction(1, 10**9)):
        assert try_claim(below_its_bound(share)).verdict == "refuted"
    assert judge(below_its_bound(Fraction(0)), known).status == "held"


@pytest.mark.usefixtures("brief")
def test_a_claim_that_takes_too_long_on_many_tokens_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for larger vocabularies is bounded: of a claim in 2^V steps the last size is the one reached."""
    monkeypatch.setattr("proofs_check.library.wide.SECONDS", (0.0, 0.0))
    trial = try_claim(AFFINITY)
    assert (trial.wide, trial.sizes) == (None, (2, 3, 4, 5))  # the draws have up to five tokens
    assert "not refuted at V = 2 to 5 (" in trial.summary


# Tuples


@pytest.mark.usefixtures("brief")
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


@pytest.mark.usefixtures("brief")
def test_an_order_of_tuples_is_no_statement() -> None:
    ordered = Claim("p <= q", lambda p, q: at_most(p, q))
    with pytest.raises(ClaimError, match="tuple"):
        try_claim(ordered)
    with pytest.raises(ClaimError, match="number by number"):
        prove_claim(ordered, 2)
    with pytest.raises(ClaimError, match="number by number"):
        valid("pairs", lambda a, b: at_most((a, b), (a, b))).check(5)


@pytest.mark.usefixtures("brief")
def test_an_assumption_with_a_float_proves_nothing() -> None:
    """To a solver 0.3 is 3/10; the float is a little less, where the claim is false."""
    for bound, verdict in ((0.3, "not refuted"), (Fraction(3, 10), "proved for some V")):
        assumed = Assumption("p0", lambda p, q, bound=bound: p[0] >= bound)
        trial = try_claim(Claim("c", lambda p, q: at_least(p[0], Fraction(3, 10)), (assumed,)))
        assert trial.verdict == verdict


@pytest.mark.usefixtures("brief")
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


@pytest.mark.usefixtures("brief")
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


@pytest.mark.usefixtures("brief")
@each("claim, fragment", BAD.values())
def test_bad_claims_are_named_in_one_line(claim: Claim, fragment: str) -> None:
    refused(lambda: try_claim(claim), SpectheoryError, fragment)
