"""How much runs vary by chance, against runs that are decoded: other requests, and the same ones again."""

from __future__ import annotations

import numpy as np
import pytest

from spectheory.distributions import Floats
from spectheory.errors import SettingError
from spectheory.judging import noise
from spectheory.reports.difference import noise_report
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters

K, TEXTS, TOKENS, RUNS = 3, 300, 40, 4000
SIGMA = 6 / np.sqrt(2 * RUNS)
"""Six standard errors of a standard deviation from so many runs of normal values: a false alarm in 5e8."""


def population(rng: np.random.Generator) -> tuple[list[tuple[list[float], list[float]]], list[Floats]]:
    """Texts whose tokens are accepted more or less often, as log-probabilities and as probabilities."""
    rates = rng.beta(4, 2, (TEXTS, 1)) * rng.beta(5, 1, (TEXTS, TOKENS))
    return [([-1.0] * TOKENS, (np.log(rate) - 1.0).tolist()) for rate in rates], list(rates)


def decoded(rates: Floats, rng: np.random.Generator) -> tuple[int, int]:
    """Tokens and calls of one text after its prompt's own token, by token verification of k drafts, cut at its end."""
    at, calls = 1, 0
    while at < len(rates):
        kept = 0
        while kept < K and at + kept < len(rates) - 1 and rng.random() < rates[at + kept]:
            kept += 1
        at, calls = at + kept + 1, calls + 1
    return len(rates) - 1, calls


def spread(runs: list[list[tuple[int, int]]]) -> float:
    """Standard deviation of tokens per call between runs."""
    return float(np.std([sum(t for t, _ in run) / sum(c for _, c in run) for run in runs], ddof=1))


def test_runs_vary_as_much_as_is_said() -> None:
    """Runs of 40 other requests; and of the same texts decoded again. Half of the variance would be seen."""
    rng = np.random.default_rng(5)
    texts, rates = population(rng)
    trace = Trace.from_log_probabilities(texts)
    answer = noise(trace, requests=40, k=K)
    once = [decoded(rate, rng) for rate in rates for _ in range(20)]
    drawn = [[once[i] for i in rng.integers(len(once), size=40)] for _ in range(RUNS)]
    ratio = spread(drawn) / answer.tokens.others
    assert abs(ratio - 1) < SIGMA + 0.02, "and 2% for the linearised ratio and the 6,000 texts that runs are drawn from"
    assert abs(ratio - np.sqrt(0.5)) > 2 * (SIGMA + 0.02), "negative control"
    assert answer.again == "lower bound"


def test_few_prompts_and_many_requests() -> None:
    """100 runs of 100 requests stray as is said from the mean of all, and farther from the value of ten prompts.

    Fewer than 83 inside have the probability 3e-6 at a rate of 0.95. The user is told that the value is the other one.
    """
    rng = np.random.default_rng(8)
    texts, rates = population(rng)
    once = [decoded(rate, rng) for rate in rates for _ in range(10)]
    mean, of_mean, of_value = sum(t for t, _ in once) / sum(c for _, c in once), 0, 0
    for _ in range(100):
        trace = Trace.from_log_probabilities([texts[i] for i in rng.integers(len(texts), size=10)])
        answer = noise(trace, requests=100, k=K)
        run = [once[i] for i in rng.integers(len(once), size=100)]
        tokens, half = sum(t for t, _ in run) / sum(c for _, c in run), answer.half(answer.tokens.others)
        of_mean, of_value = of_mean + (abs(tokens - mean) < half), of_value + (abs(tokens - answer.tokens.value) < half)
    assert of_mean >= 83 > of_value
    assert any("The value is that of 10 prompts" in note for note in noise_report(answer).notes)
    assert not any("The value is that of" in note for note in noise_report(noise(trace, requests=10, k=K)).notes)


def test_the_same_texts_vary_by_the_decoders_draws() -> None:
    """Six standard errors over 400 decodings (a false alarm in 5e8), and 2% for the linearised ratio."""
    rng = np.random.default_rng(6)
    texts, rates = population(rng)
    texts, rates = texts[:40], rates[:40]
    answer = noise(Trace.from_log_probabilities(texts), requests=40, k=K)
    again = [[decoded(rate, rng) for rate in rates] for _ in range(400)]
    assert answer.tokens.again is not None
    ratio = spread(again) / answer.tokens.again
    assert abs(ratio - 1) < 6 / np.sqrt(800) + 0.02
    assert abs(spread(again) / answer.tokens.others - 1) > 0.2, "negative control: other texts vary more"


def log(requests: list[Request], temperature: float | None) -> CallLog:
    return CallLog(tuple(requests), k=2, temperature=temperature, prefill_emits_token=False)


def request(number: int, prompt: int, accepted: list[int]) -> Request:
    return Request(
        str(number), prompt=(prompt,), output=tuple(range(sum(accepted) + len(accepted))), accepted=tuple(accepted)
    )


def test_what_the_same_requests_say() -> None:
    """At temperature 0 nothing is random; texts of one prompt give the spread within prompts, by hand here."""
    rows = [[2, 2, 0], [2, 0, 0], [0, 0, 0], [0, 1, 0]]
    alone = [request(i, i, accepted) for i, accepted in enumerate(rows)]
    greedy = noise(log(alone, 0.0), requests=4)
    assert greedy.again == "exact"
    assert greedy.tokens.again == 0 < greedy.tokens.others
    assert noise(log(alone, 1.0), requests=4).again == "unknown"
    twice = noise(log([request(i, i // 2, accepted) for i, accepted in enumerate(rows)], 1.0), requests=4)
    mean = twice.tokens.value
    off = np.array([sum(accepted) + 3 - mean * 3 for accepted in rows]) / 3
    within = ((off[0] - off[1]) ** 2 + (off[2] - off[3]) ** 2) / 2 / 2
    assert twice.again == "estimate"
    assert twice.tokens.again == pytest.approx(np.sqrt(within / 4))
    assert twice.tokens.others == pytest.approx(np.sqrt((off**2).mean() * 2 / 4))
    unlike = noise(log([request(i, i // 2, accepted) for i, accepted in enumerate(rows)], 0.0), requests=4)
    assert (unlike.again, unlike.tokens.again) == ("estimate", twice.tokens.again), "temperature 0 is not all it takes"
    alike = noise(log([request(i, 0, accepted) for i, accepted in enumerate([rows[0]] * 3)], 0.0), requests=4)
    assert (alike.again, alike.tokens.again) == ("exact", 0)


def test_windows_of_calls() -> None:
    """So many calls are so many requests of the mean size; of totals they count as independent, a lower bound."""
    rng = np.random.default_rng(7)
    trace = Trace.from_log_probabilities(population(rng)[0])
    some = noise(trace, requests=30, k=K)
    window = noise(trace, calls=round(some.calls), k=K)
    assert window.tokens.others == pytest.approx(some.tokens.others, rel=0.5 / some.calls), "calls are rounded"
    totals = noise(Counters(calls=900, survival=(0.5,)), calls=100)
    assert totals.tokens.others == pytest.approx(np.sqrt(0.25 / 100))
    assert totals.prompts == 0
    assert noise_report(window).headline.startswith(f"{round(some.calls)} calls, of about 3")
    assert noise_report(noise(trace, requests=1, k=K)).headline.startswith("1 request:")


def test_what_has_no_spread_is_refused() -> None:
    with pytest.raises(SettingError, match="totals without requests"):
        noise(Counters(calls=900, survival=(0.5,)))
    for wrong in ({"requests": 0}, {"calls": 0}, {"k": 0}, {"requests": 3, "calls": 3}):
        with pytest.raises(SettingError):
            noise(Trace.from_log_probabilities([([-1.0] * 9, [-1.0] * 9)]), **wrong)  # type: ignore[arg-type]
