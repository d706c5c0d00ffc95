"""Near-ties of the draft: rounding decides its first choice, both outcomes are right, and faults are still found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.judging.expected import _extremes
from spectheory.judging.judgement import Judgement, judge
from spectheory.judging.standing import Standing, _near_ties
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.decoders import Method, decode
from spectheory.measure.judged import judged_trace
from spectheory.pairs import resolve
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from tests.made_up import each

SEEDS = 20
PROMPTS = 24


def walked(accepted: tuple[int, ...], k: int, rewards: np.ndarray) -> np.ndarray:
    """Counts of one text by walking it call by call; the last token of a text is never drafted."""
    n, total = 0, np.zeros(rewards.shape[1])
    while n < len(accepted):
        run = 0
        while run < k and n + run < len(accepted) - 1 and accepted[n + run]:
            run += 1
        total += rewards[run]
        n += run + 1
    return total


def survival_of(accepted: tuple[int, ...], k: int) -> np.ndarray:
    rows = [[all(accepted[n : n + i]) and n + i < len(accepted) for i in range(1, k + 1)] for n in range(len(accepted))]
    return np.array(rows, dtype=float)


@each("seed", range(12))
def test_extremes_are_those_of_every_outcome(seed: int) -> None:
    """All outcomes of up to seven undecided drafts, enumerated."""
    rng = np.random.default_rng(seed)
    length, k = int(rng.integers(4, 11)), int(rng.integers(1, 5))
    state = rng.integers(0, 3, length)  # rejected, accepted, undecided
    state[np.flatnonzero(state == 2)[7:]] = 1
    rewards = np.arange(k + 1)[:, None] >= np.arange(k + 1)
    free = np.flatnonzero(state == 2)
    totals = []
    for outcome in product((0, 1), repeat=len(free)):
        text = state.copy()
        text[free] = outcome
        totals.append(walked(tuple(text.tolist()), k, rewards))
    low, high = (survival_of(tuple(np.where(state == 2, end, state).tolist()), k) for end in (0, 1))
    least, most = _extremes(low, high, np.array([length]), rewards)
    np.testing.assert_array_equal(least[0], np.min(totals, axis=0))
    np.testing.assert_array_equal(most[0], np.max(totals, axis=0))


@cache
def pair_in(dtype: str) -> ModelPair:
    return load_pair(resolve("builtin:target"), resolve("builtin:draft"), dtype=dtype, device="cpu")


@cache
def ran(dtype: str, rule: str, temperature: float, seed: int, tokens: int = 48) -> CallLog:
    """What our decoder logs in a precision."""
    rng = np.random.default_rng(seed)
    texts = [torch.tensor(rng.integers(0, 50, 4)) for _ in range(PROMPTS)]
    method = Method(rule, Chain(4))
    done = decode(pair_in(dtype), texts, method, tokens=tokens, sampling=Sampling(temperature), seed=seed, batch=8)
    requests = tuple(
        Request(
            str(n),
            tuple(ids.tolist()),
            tuple(one.output_ids.tolist()),
            accepted=tuple(call.accepted for call in one.calls),
            drafted=tuple(call.drafted for call in one.calls),
        )
        for n, (ids, one) in enumerate(zip(texts, done, strict=True))
    )
    return CallLog(requests, "ours", "1", 4, temperature, prefill_emits_token=False, provenance={"dtype": dtype})


@cache
def read(rule: str, temperature: float, seed: int) -> tuple[CallLog, Trace]:
    """A log in bfloat16, and both models' statistics of its texts in float32."""
    log = ran("bfloat16", rule, temperature, seed)
    return log, judged_trace(pair_in("float32"), log)


def standing(answer: Judgement, rule: str) -> Standing:
    return next(one for one in answer.standings if rule in (one.rule, *one.same))


def totals(log: CallLog) -> CallLog:
    """The log with numbers of calls alone."""
    return replace(log, requests=tuple(replace(one, accepted=(), drafted=()) for one in log.requests))


@each("rule, temperature", [("argmax", 1.0), ("greedy", 0.0)])
def test_a_right_engine_in_bfloat16_stands(rule: str, temperature: float) -> None:
    """Read in float32: its calls differ by near-ties. Control: an engine of float32 with these calls is refuted."""
    log, trace = read(rule, temperature, 1)
    answer = judge(log, trace)
    assert not standing(answer, rule).refuted
    assert not answer.output_refuted
    unknown = judge(replace(log, provenance={}), trace)
    assert not standing(unknown, rule).refuted
    assert any("does not say its precision: bfloat16 is taken" in note for note in unknown.notes)
    assert standing(judge(replace(log, provenance={"dtype": "float32"}), trace), rule).refuted
    calls = standing(judge(totals(log), trace), rule).calls
    assert calls.p == 1
    assert calls.low <= calls.counted <= calls.high < 1.25 * calls.low
    assert all(standing(answer, other).refuted for other in ("token", "block") if temperature)


def test_a_call_that_ends_where_nothing_is_near_is_refuted() -> None:
    """One draft of a thousand is rejected though the draft's first choice is clear: power against a single fault."""
    log, trace = read("argmax", 1.0, 1)
    ties = _near_ties(trace, "bfloat16")
    assert 0.02 < ties.mean() < 0.2
    for number, one in enumerate(log.requests):
        starts = np.concatenate([[0], np.cumsum(np.array(one.accepted) + 1)])[:-1] + number * len(one.output)
        at = next((i for i, n in enumerate(starts) if one.accepted[i] > 1 and not ties[n]), None)
        if at is not None:
            break
    accepted, drafted = list(one.accepted), list(one.drafted)
    accepted[at : at + 1], drafted[at : at + 1] = [0, accepted[at] - 1], [drafted[at], accepted[at] - 1]
    changed = replace(
        one, accepted=tuple(accepted), drafted=tuple(drafted), calls=None, total_accepted=None, total_drafted=None
    )
    requests = tuple(changed if request is one else request for request in log.requests)
    assert standing(judge(replace(log, requests=requests), trace), "argmax").refuted


@pytest.mark.evidence
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_engines_of_three_precisions_over_twenty_seeds(dtype: str) -> None:
    """No alarm in 80 judgements of a precision: 24 prompts, read in float32 and in the engine's own.

    Near-ties are taken out by an estimate of rounding about twice the largest seen; a right engine may be refuted where
    it fails. The loss of power is the share of positions that are near-ties, on average over the seeds: 10% in bfloat16
    and 1% in float16; 12% and 1.4% at T = 0, where texts repeat themselves (16% and 4% in the worst of twenty logs).
    """
    most = {"bfloat16": 0.15, "float16": 0.03, "float32": 1e-3}
    for rule, temperature in (("argmax", 1.0), ("greedy", 0.0)):
        shares = []
        for seed in range(SEEDS):
            log = ran(dtype, rule, temperature, seed, tokens=24)
            for reader in {"float32", dtype}:
                trace = judged_trace(pair_in(reader), log)
                shares.append(_near_ties(trace, dtype).mean())
                answer = judge(log, trace)
                assert not standing(answer, rule).refuted, (rule, seed, reader)
                assert not answer.output_refuted, (rule, seed, reader)
        assert np.mean(shares) < most[dtype]
