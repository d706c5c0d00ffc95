"""The path theorem (§7): whole algorithms enumerated in fractions, several calls in a row, against what it predicts.

The enumeration (:mod:`proofs_check.enumeration`) runs the papers' algorithms; the theorem's exact twin
(:mod:`proofs_check.path_theorem`) must equal it as fractions, the library to rounding.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from proofs_check import enumeration, path_theorem
from proofs_check.enumeration import Decoding, Model, Pmf, Prefix, given_text, output_law, text_law
from proofs_check.path_theorem import Survival
from proofs_check.strategies import Floats, theorem
from spectheory.paths import TextCalls, calls_of_chains, calls_of_texts, one_call_terms
from spectheory.verification import (
    ArgmaxDraft,
    BlockVerification,
    IndependentMatch,
    RaceVerification,
    Rule,
    TokenVerification,
)

ROUNDING = 1e-12
"""The library against fractions: some twenty operations on numbers near one, each within 1e-16, with logarithms."""

LINEAR_PROGRAM = 1e-6
"""The solver's feasibility tolerance is 1e-7, and text probabilities as small as 1/50 divide the result."""

SQUARES = 1e-11
"""Variances: a difference of two squares of up to a few hundred."""


# Chains: the pmf at a prefix is drawn from a seed and the prefix, so nothing is stationary or Markov.


def chain(seed: str, tokens: int, zeros: bool) -> Model:
    """A model whose pmf at every prefix has its own small integer weights."""
    cache: dict[Prefix, Pmf] = {}

    def model(prefix: Prefix) -> Pmf:
        if prefix not in cache:
            rng = random.Random(f"{seed} {prefix}")
            weights = [rng.randint(0 if zeros else 1, 5) for _ in range(tokens)]
            if sum(weights) == 0:
                weights[rng.randrange(tokens)] = 1
            cache[prefix] = tuple(Fraction(weight, sum(weights)) for weight in weights)
        return cache[prefix]

    return model


def constant(*weights: int) -> Model:
    pmf = tuple(Fraction(weight, sum(weights)) for weight in weights)
    return lambda _: pmf


@dataclass(frozen=True)
class Case:
    """A target, a draft, the length of the text."""

    target: Model
    draft: Model
    length: int

    def texts(self) -> dict[Prefix, Fraction]:
        """The target's law of the text."""
        return text_law(self.target, self.length)

    def columns(self, text: Prefix) -> dict[str, NDArray[np.float64]]:
        """The trace of one text, from the pmfs along it."""
        at = [(self.target(text[:n]), self.draft(text[:n]), x) for n, x in enumerate(text)]
        with np.errstate(divide="ignore"):
            return {
                "log_target": np.log([float(p[x]) for p, _, x in at]),
                "log_draft": np.log([float(q[x]) for _, q, x in at]),
                "race_g": np.array([float(race_g(p, q, x)) for p, q, x in at]),
                "draft_rank": np.array([1 + sum((-q[y], y) < (-q[x], x) for y in range(len(q))) for _, q, x in at]),
            }


def race_g(p: Pmf, q: Pmf, x: int) -> float:
    """g(p_x/q_x), read off the enumerated race: 1/P(draft = x | output = x) - 1."""
    agree = enumeration.race_coupling(p, q).get((x, x), Fraction(0)) / p[x]
    return float(1 / agree - 1) if agree > 0 else math.inf


CASES = {
    "two tokens": Case(chain("target", 2, False), chain("draft", 2, False), 4),
    "three tokens": Case(chain("target", 3, False), chain("draft", 3, False), 3),
    "zeros in both, two tokens": Case(chain("t0", 2, True), chain("d0", 2, True), 4),
    "zeros in both, three tokens": Case(chain("t1", 3, True), chain("d1", 3, True), 3),
    "draft lacks tokens": Case(chain("target", 3, False), chain("d2", 3, True), 3),
    "target lacks tokens": Case(chain("t3", 3, True), chain("draft", 3, False), 3),
    "equal": Case(chain("target", 2, True), chain("target", 2, True), 4),
    "disjoint": Case(constant(1, 1, 0), constant(0, 0, 1), 3),
    "disjoint at times": Case(
        lambda prefix: constant(1, 0)(prefix) if len(prefix) % 2 else constant(2, 1)(prefix),
        lambda prefix: constant(0, 1)(prefix) if len(prefix) % 2 else constant(1, 2)(prefix),
        4,
    ),
}


@dataclass(frozen=True)
class Kind:
    """One rule three times: its algorithm, its survival in fractions, the library's object."""

    algorithm: enumeration.Rule
    survival: Callable[[Model, Model, Prefix], Survival]
    library: Rule


def _product(accept: path_theorem.PositionLaw) -> Callable[[Model, Model, Prefix], Survival]:
    return lambda target, draft, text: path_theorem.product_survival(accept, target, draft, text)


KINDS = {
    "token": Kind(enumeration.token_verification, _product(path_theorem.token_acceptance), TokenVerification()),
    "block": Kind(enumeration.block_verification, path_theorem.block_survival, BlockVerification()),
    "race": Kind(enumeration.race_verification, _product(path_theorem.race_acceptance), RaceVerification()),
    "independent": Kind(
        enumeration.independent_match, _product(path_theorem.independent_acceptance), IndependentMatch()
    ),
    "argmax": Kind(enumeration.argmax_draft, _product(path_theorem.argmax_acceptance), ArgmaxDraft()),
}

LAWS: dict[tuple[str, str, int], enumeration.TextLaw] = {}


def enumerated(kind: str, case: str, k: int) -> enumeration.TextLaw:
    """The law of the whole algorithm, worked out once."""
    key = (kind, case, k)
    if key not in LAWS:
        LAWS[key] = Decoding(KINDS[kind].algorithm, k, CASES[case].length).law(CASES[case].target, CASES[case].draft)
    return LAWS[key]


def mean_and_variance(calls: dict[int, Fraction]) -> tuple[Fraction, Fraction]:
    mean = sum((count * share for count, share in calls.items()), Fraction(0))
    return mean, sum((count * count * share for count, share in calls.items()), Fraction(0)) - mean**2


def number_of_calls(law: dict[tuple[int, ...], Fraction]) -> dict[int, Fraction]:
    calls: dict[int, Fraction] = {}
    for accepted, share in law.items():
        calls[len(accepted)] = calls.get(len(accepted), Fraction(0)) + share
    return calls


every_kind = pytest.mark.parametrize("kind", sorted(KINDS))
every_case = pytest.mark.parametrize("case", sorted(CASES))
every_k = pytest.mark.parametrize("k", [1, 2, 3])


# The theorem is exact: fractions against fractions


@every_k
@every_case
@every_kind
def test_the_output_is_a_sample_of_the_target(kind: str, case: str, k: int) -> None:
    """Every rule is lossless over several calls in a row: the law of the text is the target's, as fractions."""
    assert output_law(enumerated(kind, case, k)) == CASES[case].texts()


@every_k
@every_case
@every_kind
def test_survival_of_a_call_given_the_whole_text(kind: str, case: str, k: int) -> None:
    """P(tau >= i | whole text) of the first call is the path theorem's survival."""
    problem = CASES[case]
    for text in problem.texts():
        law = given_text(enumerated(kind, case, k), text)
        survival = KINDS[kind].survival(problem.target, problem.draft, text)
        for i in range(1, min(k, problem.length) + 1):
            assert sum((share for accepted, share in law.items() if accepted[0] >= i), Fraction(0)) == survival(0, i)


@every_k
@every_case
@every_kind
def test_calls_are_independent_given_the_text(kind: str, case: str, k: int) -> None:
    """The joint law of the accepted drafts of all calls is the product of the calls' own laws."""
    problem = CASES[case]
    for text in problem.texts():
        survival = KINDS[kind].survival(problem.target, problem.draft, text)
        predicted = path_theorem.all_calls_law(survival, k, problem.length)
        assert given_text(enumerated(kind, case, k), text) == predicted


@every_k
@every_case
@every_kind
def test_mean_and_variance_of_the_calls(kind: str, case: str, k: int) -> None:
    """E and Var of the calls given the text obey the recursion: fractions equal, the library to 1e-12."""
    problem = CASES[case]
    for text in problem.texts():
        exact = mean_and_variance(number_of_calls(given_text(enumerated(kind, case, k), text)))
        survival = KINDS[kind].survival(problem.target, problem.draft, text)
        assert path_theorem.calls(survival, k, problem.length) == exact
        library = library_calls(kind, problem, text, k)
        assert library.expected[0] == pytest.approx(float(exact[0]), abs=ROUNDING)
        assert library.variance[0] == pytest.approx(float(exact[1]), abs=ROUNDING)


@every_k
@every_case
@every_kind
def test_full_acceptances(kind: str, case: str, k: int) -> None:
    """Calls, the last one left out, in which every draft was accepted: enumeration, twin and library agree."""
    problem = CASES[case]
    for text in problem.texts():
        law = given_text(enumerated(kind, case, k), text)
        exact = sum((share * accepted[:-1].count(k) for accepted, share in law.items()), Fraction(0))
        survival = KINDS[kind].survival(problem.target, problem.draft, text)
        assert path_theorem.full_acceptances(survival, k, problem.length) == exact
        assert library_calls(kind, problem, text, k).full[0] == pytest.approx(float(exact), abs=ROUNDING)


def library_calls(kind: str, case: Case, text: Prefix, k: int, prefill: bool = False) -> TextCalls:
    survival = KINDS[kind].library.path_survival(case.columns(text), k)
    return calls_of_texts(survival, np.array([len(text)]), prefill_emits_token=prefill)


@every_k
@every_case
@every_kind
def test_library_survival_is_the_twins(kind: str, case: str, k: int) -> None:
    problem = CASES[case]
    for text in problem.texts():
        survival = KINDS[kind].survival(problem.target, problem.draft, text)
        library = KINDS[kind].library.path_survival(problem.columns(text), k)
        assert library.shape == (problem.length, k)
        for n, i in product(range(problem.length), range(1, k + 1)):
            if n + i <= problem.length:
                assert library[n, i - 1] == pytest.approx(float(survival(n, i)), abs=ROUNDING)


@pytest.mark.parametrize("spare", [0, 1])
@every_kind
def test_cutting_the_drafts_at_the_end_changes_no_call(kind: str, spare: int) -> None:
    """An engine that drafts only what fits (or one less, for the last token) takes as many calls."""
    for case in ("two tokens", "zeros in both, three tokens"):
        problem = CASES[case]
        cut = Decoding(KINDS[kind].algorithm, 3, problem.length, spare=spare).law(problem.target, problem.draft)
        assert output_law(cut) == problem.texts()
        for text in problem.texts():
            whole = number_of_calls(given_text(enumerated(kind, case, 3), text))
            assert number_of_calls(given_text(cut, text)) == whole


@every_k
@every_kind
def test_a_prefill_that_emits_a_token(kind: str, k: int) -> None:
    """The prompt's own pass as a call without drafts: 1 + C(1), with the same variance."""
    for case in ("two tokens", "zeros in both, three tokens"):
        problem = CASES[case]
        law = Decoding(KINDS[kind].algorithm, k, problem.length, prefill=True).law(problem.target, problem.draft)
        for text in problem.texts():
            exact = mean_and_variance(number_of_calls(given_text(law, text)))
            survival = KINDS[kind].survival(problem.target, problem.draft, text)
            assert path_theorem.calls(survival, k, problem.length, prefill=True) == exact
            library = library_calls(kind, problem, text, k, prefill=True)
            assert library.expected[0] == pytest.approx(float(exact[0]), abs=ROUNDING)
            assert library.variance[0] == pytest.approx(float(exact[1]), abs=ROUNDING)


# Fixed numbers and the one-call bound


def mean_accepted(kind: str, k: int) -> Fraction:
    """E[tau] of one call for p = (1/3, 2/3), q = (2/3, 1/3), from the enumerated call itself."""
    call = KINDS[kind].algorithm(constant(1, 2), constant(2, 1), (), k)
    return sum((count * share for (_, count), share in call.items()), Fraction(0))


def test_fixed_numbers() -> None:
    """p=(1/3,2/3), q=(2/3,1/3), k=2: token 10/9, block 11/9, one-call bound 12/9."""
    assert mean_accepted("token", 2) == Fraction(10, 9)
    assert mean_accepted("block", 2) == Fraction(11, 9)
    case = Case(constant(1, 2), constant(2, 1), 2)
    assert one_call_bound(case, 2) == Fraction(12, 9)
    for kind, value in (("token", 10 / 9), ("block", 11 / 9)):
        weighted = sum(
            float(share) * KINDS[kind].library.path_survival(case.columns(text), 2)[0].sum()
            for text, share in case.texts().items()
        )
        assert weighted == pytest.approx(value, abs=ROUNDING)
    log_ratio, lengths = text_columns(case)
    terms, whole = one_call_terms(log_ratio, lengths, 2)
    shares = [float(share) for share in case.texts().values()]
    assert float(np.dot(terms[whole].sum(axis=1), shares)) == pytest.approx(12 / 9, abs=ROUNDING)


def text_columns(case: Case) -> tuple[Floats, NDArray[np.int64]]:
    """Log q - log p along every text, concatenated, and the texts' lengths."""
    columns = [case.columns(text) for text in case.texts()]
    return np.concatenate([c["log_draft"] - c["log_target"] for c in columns]), np.full(len(columns), case.length)


def one_call_bound(case: Case, k: int) -> Fraction:
    """Sum over i of 1 - TV between the target's and the draft's laws of i tokens, both written out."""
    bound = Fraction(0)
    for i in range(1, k + 1):
        target, draft = text_law(case.target, i), text_law(case.draft, i)
        bound += sum((min(share, draft.get(text, Fraction(0))) for text, share in target.items()), Fraction(0))
    return bound


@every_k
@every_case
def test_the_one_call_bound(case: str, k: int) -> None:
    """Sum_i (1 - TV of i tokens) = E sum_i min(1, prod rho); no rule that drafts from q accepts more in one call."""
    problem = CASES[case]
    bound = one_call_bound(problem, k)
    terms = Fraction(0)
    for text, share in text_law(problem.target, k).items():
        one_call = path_theorem.one_call_terms(problem.target, problem.draft, text)
        terms += share * sum((one_call(0, i) for i in range(1, k + 1)), Fraction(0))
    assert terms == bound
    accepted = {}
    for name in set(KINDS) - {"argmax"}:
        call = KINDS[name].algorithm(problem.target, problem.draft, (), k)
        accepted[name] = sum((count * share for (_, count), share in call.items()), Fraction(0))
        assert accepted[name] <= bound
    assert accepted["token"] <= accepted["block"]


def test_the_one_call_bound_is_for_drafts_drawn_from_q() -> None:
    """Argmax drafts are not: p = (1, 0), q = (5/8, 3/8) accepts one draft of one, where 1 - TV is 5/8."""
    case = Case(constant(1, 0), constant(5, 3), 1)
    call = enumeration.argmax_draft(case.target, case.draft, (), 1)
    assert sum(count * share for (_, count), share in call.items()) == 1
    assert one_call_bound(case, 1) == Fraction(5, 8)


def test_the_one_call_bound_in_the_library() -> None:
    """Its mean over target-sampled texts, weighted exactly, is the bound; starts too near the end are marked."""
    problem = CASES["draft lacks tokens"]
    log_ratio, lengths = text_columns(problem)
    shares = [float(share) for share in problem.texts().values()]
    for k in (1, 2, 3):
        terms, whole = one_call_terms(log_ratio, lengths, k)
        left = np.tile(np.arange(problem.length, 0, -1), len(lengths))
        np.testing.assert_array_equal(whole, left >= k)
        first = terms[:: problem.length].sum(axis=1)
        assert float(np.dot(first, shares)) == pytest.approx(float(one_call_bound(problem, k)), abs=ROUNDING)


def test_one_call_terms_are_no_survival_function() -> None:
    """Negative control: min(1, prod rho) in the recursion disagrees with every algorithm, and is not even monotone."""
    problem = CASES["two tokens"]
    wrong_calls, rises = 0, 0
    for text in problem.texts():
        look_alike = path_theorem.one_call_terms(problem.target, problem.draft, text)
        wrong = path_theorem.calls(look_alike, 3, problem.length)[0]
        exact = mean_and_variance(number_of_calls(given_text(enumerated("block", "two tokens", 3), text)))[0]
        wrong_calls += wrong != exact
        rises += any(look_alike(0, i + 1) > look_alike(0, i) for i in range(1, 3))
    assert wrong_calls > 0
    assert rises > 0


@every_kind
def test_every_other_survival_is_refuted(kind: str) -> None:
    """Negative control: no rule's law is predicted by another rule's survival on a generic chain."""
    problem = CASES["three tokens"]
    for other in set(KINDS) - {kind}:
        agree = [
            path_theorem.all_calls_law(KINDS[other].survival(problem.target, problem.draft, text), 3, problem.length)
            == given_text(enumerated(kind, "three tokens", 3), text)
            for text in problem.texts()
        ]
        assert not all(agree), other


# No lossless rule accepts more than block verification


def most_accepted(target: Model, draft: Model, k: int, text: Prefix, i: int) -> float:
    """Largest P(tau >= i | text) of any lossless call of k drafts after which the target goes on by itself.

    A linear program over what a call may do with each drafted path: how many drafts it accepts, which token it puts
    after them; the law of the k + 1 tokens must be the target's.
    """
    law, paths = text_law(target, k + 1), list(enumeration.draft_paths(draft, (), k))
    texts = list(law)
    possible = {each[:n] for each in texts for n in range(1, k + 2)}
    acts = [
        (row, tau, (*path[:tau], y))
        for row, (path, _) in enumerate(paths)
        for tau in range(k + 1)
        for y in range(len(target(())))
        if (*path[:tau], y) in possible
    ]
    equations, gain = np.zeros((len(paths) + len(texts), len(acts))), np.zeros(len(acts))
    for column, (row, tau, output) in enumerate(acts):
        equations[row, column] = 1
        rest = text_law(lambda after, output=output: target(output + after), k + 1 - len(output))
        for after, share in rest.items():
            equations[len(paths) + texts.index(output + after), column] = float(share)
            gain[column] += float(share) * (output + after == text and tau >= i)
    shares = [float(share) for share in (*(share for _, share in paths), *law.values())]
    solved = scipy.optimize.linprog(-gain, A_eq=equations, b_eq=shares, method="highs")
    assert solved.status == 0, solved.message
    return -float(solved.fun) / float(law[text])


@pytest.mark.parametrize("case", ["two tokens", "zeros in both, two tokens", "zeros in both, three tokens"])
def test_block_verification_is_the_pointwise_maximum(case: str) -> None:
    """Text by text and depth by depth, no lossless call accepts more, if the target goes on by itself after it."""
    target, draft = CASES[case].target, CASES[case].draft
    for text in text_law(target, 3):
        survival = path_theorem.block_survival(target, draft, text)
        for i in (1, 2):
            most = most_accepted(target, draft, 2, text, i)
            assert most == pytest.approx(float(survival(0, i)), abs=LINEAR_PROGRAM)


# The solver


def random_survival(tokens: int, k: int, seed: int) -> Floats:
    """Survival of a made-up rule: products of numbers in [0, 1], one set per start."""
    return np.cumprod(np.random.default_rng(seed).random((tokens, k)), axis=1)


def twin(survival: Floats, *, prefill: bool = False) -> tuple[float, float]:
    """The recursion in fractions on the very floats the library gets."""
    exact = [[Fraction(1), *map(Fraction, row)] for row in survival.tolist()]
    mean, variance = path_theorem.calls(lambda n, i: exact[n][i], survival.shape[1], len(survival), prefill=prefill)
    return float(mean), float(variance)


@theorem
@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 10**6), st.booleans())
def test_the_solver_is_the_recursion(tokens: int, k: int, seed: int, prefill: bool) -> None:
    """The banded system gives C(n) = 1 + sum_i P(tau=i|n) C(n+i+1) and its second moment for any survival."""
    survival = random_survival(tokens, k, seed)
    library = calls_of_texts(survival, np.array([tokens]), prefill_emits_token=prefill)
    mean, variance = twin(survival, prefill=prefill)
    assert library.expected[0] == pytest.approx(mean, abs=ROUNDING)
    assert library.variance[0] == pytest.approx(variance, abs=SQUARES)


@pytest.mark.parametrize("prefill", [False, True])
def test_texts_together_are_texts_alone(prefill: bool) -> None:
    """Concatenated texts, some of one token, give each text's own result: nothing leaks over a boundary."""
    lengths = np.array([1, 5, 1, 2, 9, 3, 1])
    survival = random_survival(int(lengths.sum()), 4, 7)
    together = calls_of_texts(survival, lengths, prefill_emits_token=prefill)
    for index, rows in enumerate(np.split(survival, np.cumsum(lengths)[:-1])):
        alone = calls_of_texts(rows, lengths[index : index + 1], prefill_emits_token=prefill)
        assert together.expected[index] == pytest.approx(alone.expected[0], abs=ROUNDING)
        assert together.variance[index] == pytest.approx(alone.variance[0], abs=SQUARES)
        assert together.full[index] == pytest.approx(alone.full[0], abs=ROUNDING)
        assert (alone.expected[0], alone.variance[0]) == pytest.approx(twin(rows, prefill=prefill), abs=SQUARES)


def test_drafts_past_the_end_of_a_text_do_not_matter() -> None:
    """Entries of the survival that reach past the end may hold anything, NaN included, and k may exceed the text."""
    survival = random_survival(6, 5, 3)
    exact = calls_of_texts(survival, np.array([4, 2]))
    for n, left in enumerate([4, 3, 2, 1, 2, 1]):
        survival[n, left:] = math.nan
    again = calls_of_texts(survival, np.array([4, 2]))
    np.testing.assert_array_equal(exact.expected, again.expected)
    np.testing.assert_array_equal(exact.full, again.full)
    np.testing.assert_allclose(calls_of_texts(random_survival(3, 40, 1), np.array([3])).full, 0.0)


def test_several_chain_lengths_at_once_are_each_alone() -> None:
    lengths = np.array([7, 1, 12])
    survival = random_survival(20, 6, 11)
    together = calls_of_chains(survival, lengths, [6, 1, 3, 1], variance=True)
    assert sorted(together) == [1, 3, 6]
    for k, calls in together.items():
        alone = calls_of_texts(survival[:, :k], lengths)
        np.testing.assert_allclose(calls.expected, alone.expected, rtol=ROUNDING)
        np.testing.assert_allclose(calls.full, alone.full, atol=ROUNDING)
        np.testing.assert_allclose(calls.variance, alone.variance, atol=SQUARES)
        assert alone.expected[0] == pytest.approx(twin(survival[:7, :k])[0], abs=ROUNDING)
    assert np.all(np.isnan(calls_of_chains(survival, lengths, [3])[3].variance)), "not asked for"


def test_certain_outcomes() -> None:
    """Nothing accepted: a call per token, no spread. All accepted: ceil(N / (k + 1)) calls, all but one full."""
    for tokens, k in product((1, 5, 12), (1, 2, 5)):
        none = calls_of_texts(np.zeros((tokens, k)), np.array([tokens]))
        every = calls_of_texts(np.ones((tokens, k)), np.array([tokens]))
        assert (none.expected[0], none.full[0]) == (tokens, 0)
        assert every.expected[0] == math.ceil(tokens / (k + 1))
        assert every.full[0] == every.expected[0] - 1
        for calls in (none, every):
            assert calls.variance[0] == 0


@theorem
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.integers(1, 5))
def test_block_accepts_at_least_as_much_as_token(log_ratio: list[float], k: int) -> None:
    """At every start and depth: prod min(1, rho) <= min(1, min prod rho) <= min(1, prod rho)."""
    columns = {"log_draft": np.minimum(log_ratio, 0.0), "log_target": np.minimum(log_ratio, 0.0) - np.array(log_ratio)}
    token = TokenVerification().path_survival(columns, k)
    block = BlockVerification().path_survival(columns, k)
    terms, _ = one_call_terms(np.array(log_ratio), np.array([len(log_ratio)]), k)
    inside = np.add.outer(np.arange(len(log_ratio)), np.arange(1, k + 1)) <= len(log_ratio)
    assert np.all((token <= block + ROUNDING)[inside])
    assert np.all((block <= terms + ROUNDING)[inside])
    assert np.all(np.diff(block, axis=1)[inside[:, 1:]] <= 0)
