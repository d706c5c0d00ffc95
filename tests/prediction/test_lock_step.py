"""Lock-step batches (§12-lock-step): rounds of the slowest text, against recursion, simulation, and fewer prompts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectheory import Trace
from spectheory.prediction.lock_step import (
    plainly_unfinished,
    rounds_of_batch,
    rounds_of_draws,
    slowest,
    slowest_of_distinct,
    unfinished,
)
from spectheory.prediction.over_prompts import interval
from spectheory.prediction.paths import calls_of_texts
from spectheory.trace import TextInfo
from spectheory.verification import TokenVerification
from tests.made_up import each, trace

ROUNDING = 1e-9
SIGMA = 6.2
"""|z| of a right value exceeds this in 6e-10 of all runs (normal limit)."""
LENGTHS = np.array([30, 18, 25, 30])
Floats = NDArray[np.float64]


def texts(k: int = 3, seed: int = 0) -> Floats:
    """Survivals of four texts."""
    rng = np.random.default_rng(seed)
    return np.cumprod(rng.random((int(LENGTHS.sum()), k)) ** 0.5, axis=1)


def test_mean_and_variance_are_those_of_the_recursion() -> None:
    survival = texts()
    left, calls = unfinished(survival, LENGTHS), calls_of_texts(survival, LENGTHS)
    mean, square = left.sum(axis=0), (2 * np.arange(len(left)) + 1) @ left
    np.testing.assert_allclose(mean, calls.expected, rtol=ROUNDING)
    np.testing.assert_allclose(square - mean**2, calls.variance, rtol=1e-7)


def test_plain_decoding_is_a_chain_of_no_drafts() -> None:
    np.testing.assert_array_equal(unfinished(np.zeros((int(LENGTHS.sum()), 1)), LENGTHS), plainly_unfinished(LENGTHS))
    assert rounds_of_batch(plainly_unfinished(LENGTHS))[1:].tolist() == [0, 5, 7, 18]


def calls_drawn(survival: Floats, runs: int, seed: int) -> NDArray[np.int64]:
    """Calls of each text, ``[texts, runs]``: drawn one after the other."""
    rng = np.random.default_rng(seed)
    counts = []
    for end, length in zip(np.cumsum(LENGTHS), LENGTHS, strict=True):
        at, calls = np.full(runs, end - length), np.zeros(runs, int)
        while (going := at < end).any():
            accepted = (rng.random((runs, 1)) < survival[np.minimum(at, end - 1)]).sum(axis=1)
            at, calls = np.where(going, at + accepted + 1, at), calls + going
        counts.append(calls)
    return np.stack(counts)


def test_rounds_against_simulation() -> None:
    """20,000 batches of four texts: false alarm in 6e-10; an error of 0.12 rounds is seen.

    Controls: the mean of single texts, the largest mean, and the rule for draws with replacement are refused.
    """
    survival, runs = texts(), 20_000
    left, rounds = unfinished(survival, LENGTHS), calls_drawn(survival, runs, 1).max(axis=0)
    error = float(rounds.std(ddof=1)) / math.sqrt(runs)
    said = float(rounds_of_batch(left)[1:].sum())
    assert abs(rounds.mean() - said) < SIGMA * error
    assert (SIGMA + 5) * error < 0.12
    single = left.sum(axis=0)
    for wrong in (single.mean(), single.max(), rounds_of_draws(left, 4)[1:].sum()):
        assert abs(rounds.mean() - wrong) > SIGMA * error


def test_continuous_batching_gives_the_tokens_of_a_call_per_place() -> None:
    """A place that takes text after text: B sum N / sum C tokens a step (renewal), within 6.2 deviations; 40,000 texts.

    Control: B times the mean of N/C of single texts is refused.
    """
    survival, runs = texts(), 40_000
    survival[: LENGTHS[0]] **= 8  # a text that is hard to draft
    counts = calls_drawn(survival, runs, 2)
    chosen = np.random.default_rng(3).integers(len(LENGTHS), size=runs)
    tokens, calls = LENGTHS[chosen].astype(float), counts[chosen, np.arange(runs)].astype(float)
    expected = calls_of_texts(survival, LENGTHS).expected
    rate, said = tokens.sum() / calls.sum(), LENGTHS.sum() / expected.sum()
    error = float((tokens - rate * calls).std(ddof=1)) / math.sqrt(runs) / calls.mean()
    assert abs(rate - said) < SIGMA * error
    assert abs(rate - np.mean(LENGTHS / expected)) > SIGMA * error


def test_live_texts_add_up_to_all_calls() -> None:
    left = unfinished(texts(), LENGTHS)
    for rounds in (rounds_of_batch(left), rounds_of_draws(left, 4)):
        assert math.isclose(rounds @ np.arange(5), left.sum(), rel_tol=ROUNDING)
    all_texts = rounds_of_batch(left)[1:].sum()
    assert math.isclose(slowest_of_distinct(left, 4), all_texts, rel_tol=ROUNDING)


@each("batch", (1, 2, 3, 4))
def test_draws_with_replacement_wait_no_longer(batch: int) -> None:
    left = unfinished(texts(), LENGTHS)
    of_draws, distinct = float(rounds_of_draws(left, batch)[1:].sum()), slowest_of_distinct(left, batch)
    assert of_draws <= distinct + ROUNDING
    assert (of_draws < distinct - 0.01) == (batch > 1)


def test_large_batches_keep_small_probabilities() -> None:
    """Chances of 1e-12 matter among 10^6 texts."""
    left = np.array([[1.0], [1e-12]])
    rounds = rounds_of_draws(left, 10**6)
    assert math.isclose(rounds[1:].sum(), 1 + 1e-6, rel_tol=1e-9)


def test_the_interval_leaves_out_whole_prompts() -> None:
    """The jackknife against traces that lack a prompt; two texts belong to one prompt."""
    lengths, prompts = (20, 30, 25, 15, 40) * 4, "abacdefghijklmnopqrs"
    whole = trace(*lengths)
    named = Trace(
        whole.columns, tuple(TextInfo(str(i), n, p) for i, (n, p) in enumerate(zip(lengths, prompts, strict=True)))
    )
    rule = TokenVerification()
    rounds = slowest(named, rule, 3, 2)

    def without(prompt: str) -> float:
        kept = np.repeat(np.array([*prompts]) != prompt, lengths)
        infos = tuple(info for info in named.texts if info.prompt != prompt)
        return slowest(Trace({n: c[kept] for n, c in named.columns.items()}, infos), rule, 3, 2).best

    values = np.array([rounds.best, *(without(p) for p in sorted(set(prompts)))])
    expected = interval(values, np.array([20.0, 18, *[19] * 18]))
    assert rounds.kind == "statistical"
    np.testing.assert_allclose((rounds.low, rounds.high), (expected.low, expected.high), rtol=ROUNDING)
    assert slowest(named, rule, 3, 3).kind == "estimate", "fewer than 8 prompts for each text of a batch"
