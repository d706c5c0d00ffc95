"""Tests of sampled output: right texts pass at the stated rate, wrong ones are refuted, and both are counted."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from spectheory.judging import output
from spectheory.judging.output import FALSE_ALARM, TESTS, OutputTest, _evidence, _heights, output_tests
from spectheory.trace import READ, Trace
from tests.judging.toy_texts import (
    TOKENS,
    Floats,
    another_token_rule,
    judged,
    plain,
    pmfs,
    speculative,
    token_rule,
    toy_logits,
)
from tests.made_up import each

LOGITS = toy_logits(1)
P, Q = pmfs(LOGITS), pmfs(LOGITS + toy_logits(2, 1.0))
TEXTS, LENGTH = 24, 64

FALSE_FAIL = 1e-7
"""Probability that a comparison of counts below fails though all is right."""


def verdicts_of(trace: Trace) -> dict[str, OutputTest]:
    return {test.name: test for test in output_tests(trace)}


@pytest.fixture
def p_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine tenths of the time go to the smallest departure that would show, which many right texts are not asked."""
    monkeypatch.setattr(output, "_least", lambda *_: 0.0)
    monkeypatch.setattr(output, "_least_share", lambda *_: 0.0)


def without_heights(trace: Trace) -> Trace:
    """The same for the two martingales alone, which take a tenth of the time of all tests."""
    kept = {name: column for name, column in trace.columns.items() if name not in ("target_above", "target_tied")}
    return replace(trace, columns=kept)


def p_values(trials: int, texts: int, length: int, *, ends: bool, seed: int) -> Floats:
    """The p of each test ``[trials, tests]`` on right texts."""
    rng = np.random.default_rng(seed)
    texts_of_trials = plain(P, trials * texts, length, rng).reshape(trials, texts, length)
    return np.array([[test.p for test in output_tests(judged(P, each, ends=ends))] for each in texts_of_trials])


def holds_its_rate(p: Floats, rate: float) -> None:
    """No test refutes right texts more often than at its rate; counts are binomial, at most their upper quantile."""
    most = stats.binom.isf(FALSE_FAIL, len(p), rate)
    assert ((p < rate).sum(axis=0) <= most).all(), ((p < rate).sum(axis=0), most)


@pytest.mark.evidence
def test_right_texts_are_refuted_at_most_at_the_stated_rate(p_alone: None) -> None:
    """The exact p-value is near uniform too: a p that is always 1 would pass the first check alone."""
    for ends, seed in ((False, 1), (True, 2)):
        p = p_values(250, 12, 40, ends=ends, seed=seed)
        for rate in (0.05, 0.01, FALSE_ALARM):
            holds_its_rate(p, rate)
        asked = int((p[:, 2] < 0.2).sum())  # the others' p are bounds: they are below 1 rarely
        low, high = stats.binom.ppf([FALSE_FAIL, 1 - FALSE_FAIL], len(p), 0.2)
        assert low <= asked <= high


@pytest.mark.evidence
def test_a_nearly_certain_target_is_refuted_at_the_stated_rate(p_alone: None) -> None:
    """Two rare tokens of 100 are six deviations, in one text of 200: a normal z would refute 9 of 2000 right texts."""
    p = np.full((TOKENS, TOKENS), 0.001 / (TOKENS - 1))
    p[:, 3] = 0.999
    right = plain(p, 2000, 100, np.random.default_rng(15))
    tests = [verdicts_of(without_heights(judged(p, text[None]))) for text in right]
    for name in ("surprisal", "first choices"):
        assert sum(test[name].refuted for test in tests) <= stats.binom.isf(FALSE_FAIL, len(tests), FALSE_ALARM)
    assert max(test["surprisal"].statistic for test in tests) > 5, "the case is seen"


@pytest.mark.evidence
def test_right_texts_are_refuted_at_most_at_the_stated_rate_in_many_runs(p_alone: None) -> None:
    for ends, seed in ((False, 3), (True, 4)):
        p = p_values(8_000, 12, 40, ends=ends, seed=seed)
        for rate in (0.05, 0.01, 1e-3, FALSE_ALARM):
            holds_its_rate(p, rate)


def test_token_verification_passes_and_faulty_acceptance_is_refuted() -> None:
    """The negative control differs from the other run by its rule alone."""
    rng = np.random.default_rng(5)
    right = verdicts_of(judged(P, speculative(P, Q, TEXTS, LENGTH, rng, token_rule)))
    wrong = verdicts_of(judged(P, speculative(P, Q, TEXTS, LENGTH, rng, another_token_rule)))
    assert not any(test.refuted for test in right.values())
    assert wrong["bets"].refuted
    assert len(right) == len(TESTS)


@each("temperature", (0.8, 1.25))
def test_texts_of_another_temperature_are_refuted(temperature: float) -> None:
    tests = verdicts_of(judged(P, plain(pmfs(LOGITS, temperature), TEXTS, LENGTH, np.random.default_rng(6))))
    assert all(test.refuted for name, test in tests.items() if name not in ("single texts", "draft's share"))
    sign = np.sign(temperature - 1)  # hotter texts are more surprising and have fewer first choices
    assert np.sign(tests["surprisal"].statistic) == sign == -np.sign(tests["first choices"].statistic)


def test_one_wrong_text_among_many_is_named() -> None:
    texts = plain(P, TEXTS, LENGTH, np.random.default_rng(7))
    texts[5] = np.random.default_rng(8).integers(0, TOKENS, LENGTH)
    worst = verdicts_of(judged(P, texts))["single texts"]
    assert worst.refuted
    assert worst.text == "5"


def test_a_departure_of_the_size_named_is_caught(request: pytest.FixtureRequest) -> None:
    """Surprisal at the temperature where its mean differs by `smallest`: caught about as often as stated."""
    n = TEXTS * LENGTH
    least = verdicts_of(judged(P, plain(P, TEXTS, LENGTH, np.random.default_rng(9))))["surprisal"].smallest
    request.getfixturevalue("p_alone")
    grid = np.arange(1.0, 2.0, 0.002)
    temperature = grid[bisect_left(grid, least, key=_excess)]
    wrong = plain(pmfs(LOGITS, temperature), 200 * TEXTS, LENGTH, np.random.default_rng(10))
    caught = [verdicts_of(without_heights(judged(P, texts)))["surprisal"].refuted for texts in np.split(wrong, 200)]
    # At a power of 0.9, 165 of 200 or fewer have a probability of 8e-4; at the 0.78 of the null's variance 0.95.
    assert sum(caught) > 165
    assert least * np.sqrt(n) > 3


def test_a_share_of_the_size_named_is_caught(request: pytest.FixtureRequest) -> None:
    """Texts of which so many tokens are drawn from the draft: refuted in 90% of runs (see above)."""
    q = pmfs(LOGITS + toy_logits(2, 1.0))
    right = plain(P, TEXTS, LENGTH, np.random.default_rng(16))
    share = verdicts_of(without_heights(judged(P, right, draft=q)))["draft's share"].smallest
    assert 0.01 < share < 0.5
    request.getfixturevalue("p_alone")
    wrong = plain((1 - share) * P + share * q, 200 * TEXTS, LENGTH, np.random.default_rng(17))
    caught = [
        verdicts_of(without_heights(judged(P, texts, draft=q)))["draft's share"].refuted
        for texts in np.split(wrong, 200)
    ]
    assert sum(caught) > 165


@pytest.mark.evidence
def test_bets_on_the_draft_are_a_martingale(p_alone: None) -> None:
    """Their mean over right texts is 1, within its own standard error: two-sided false-fail rate 6e-7."""
    q = pmfs(LOGITS + toy_logits(2, 1.0))
    right = plain(P, 4000, 4, np.random.default_rng(18))
    values = np.exp(
        [verdicts_of(without_heights(judged(P, text[None], draft=q)))["draft's share"].statistic for text in right]
    )
    assert abs(values.mean() - 1) < 5 * values.std() / np.sqrt(len(values))


def _excess(temperature: float) -> float:
    """Mean surprisal beyond the entropy of texts of another temperature, nats per token."""
    samples = plain(pmfs(LOGITS, temperature), 400, 50, np.random.default_rng(11))
    columns = judged(P, samples).columns
    return float(-(columns["log_target"] + columns["target_entropy"]).mean())


def test_heights_are_uniform_with_ties_and_certain_tokens() -> None:
    """In every place of a pmf with ties; a token of probability 1 has any height."""
    trace = judged(P, plain(P, 200, 50, np.random.default_rng(12)))
    for token in (1, 2):  # tied everywhere
        at = trace.columns["token"] == token
        assert (trace.columns["target_tied"][at] > trace.columns["target_top"][at] * 0).all()
    assert stats.kstest(_heights(trace), "uniform").pvalue > FALSE_FAIL
    certain = {name: np.full(100, value) for name, value in (("target_above", 0.0), ("target_tied", 1.0))}
    sure = replace(trace, columns={"log_target": np.zeros(100), "log_draft": np.zeros(100), **certain}, texts=_one(100))
    assert stats.kstest(_heights(sure), "uniform").pvalue > FALSE_FAIL


def _one(tokens: int) -> tuple[Any, ...]:
    return (replace(judged(P, np.array([[1]])).texts[0], tokens=tokens),)


def test_the_bets_are_a_martingale() -> None:
    """The mean of exp(evidence) of few uniform heights is 1, within its own standard error."""
    rng = np.random.default_rng(13)
    values = np.array([np.exp(_evidence(rng.random(2))) for _ in range(6_000)])
    assert abs(values.mean() - 1) < 5 * values.std() / np.sqrt(len(values))  # two-sided false-fail rate 6e-7


def test_texts_of_temperature_0_are_not_tested_here() -> None:
    trace = judged(P, plain(P, 2, 8, np.random.default_rng(14)))
    for provenance in ({READ: "temperature 1"}, {"settings": {"sampling": {"temperature": 0.0}}}):
        assert output_tests(replace(trace, provenance=provenance)) == ()
    measured = {name: trace.columns[name] for name in ("log_target", "log_draft", "target_entropy")}
    assert output_tests(replace(trace, columns=measured)) == ()


def test_certain_targets_have_no_spread() -> None:
    """No randomness, no departure: z is 0; a token that a certain target does not choose has none that is finite."""
    zeros, ones = np.zeros(10), np.ones(10)
    columns = {"log_target": zeros, "log_draft": zeros, "target_top": ones, "target_rank": ones.astype(np.int64)}
    trace = Trace(columns, _one(10))
    assert verdicts_of(trace)["first choices"].statistic == 0
    off = replace(trace, columns={**columns, "target_rank": np.array([2, *[1] * 9])})
    assert verdicts_of(off)["first choices"].refuted
