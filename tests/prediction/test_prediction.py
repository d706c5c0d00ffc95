"""predict() and plan(): the numbers, their intervals, the limits beside them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.limits import branching_bound, branching_bound_from_text, tunstall_bound
from spectheory.limits.text import best_threshold, surprisal_walks
from spectheory.prediction import plan, predict
from spectheory.prediction.over_prompts import Prompts, reach
from spectheory.prediction.text_limit import one_call_bound
from spectheory.reports import prediction_report
from spectheory.trace import GIVEN_TEXT, TextInfo, Trace
from spectheory.verification import BlockVerification, GreedyMatch, KSeq, RaceVerification, TokenVerification
from tests.made_up import race_g

EXACT = 1e-12
"""Two float64 routes to one number of order one, some hundred operations each."""


def full_trace(rng: np.random.Generator, texts: int = 6, tokens: int = 30, **provenance: str) -> Trace:
    """A trace with every column the predictor reads, of made-up but consistent values."""
    rows = texts * tokens
    log_target = -rng.exponential(1.5, rows)
    rank = rng.dirichlet(np.ones(9), rows)[:, :8]
    log_draft = np.minimum(0.0, log_target + rng.normal(0.0, 0.8, rows))
    entropy = rng.exponential(1.5, rows)
    columns = {
        "log_target": log_target,
        "log_draft": log_draft,
        "race_g": race_g(rng, log_target, log_draft),
        "target_entropy": entropy,
        "target_second_moment": entropy**2 + rng.exponential(9.0, rows),
        "rejection_rank": rank,
    }
    return Trace(columns, tuple(TextInfo(f"t{i}", tokens) for i in range(texts)), provenance)


def calls_by_hand(accepted: np.ndarray, k: int) -> float:
    """The calls recursion of one text for a rule that decides each position by itself."""
    tokens = len(accepted)
    calls = [0.0] * (tokens + k + 2)
    for n in range(tokens - 1, -1, -1):
        calls[n] = 1.0
        reached = 1.0
        for i in range(k):
            if n + i >= tokens:
                break
            calls[n] += reached * (1 - accepted[n + i]) * calls[min(n + i + 1, tokens)]
            reached *= accepted[n + i]
        else:
            calls[n] += reached * calls[min(n + k + 1, tokens)]
    return calls[0]


@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_tokens_per_call_is_tokens_over_expected_calls(k: int) -> None:
    """N over the sum of C(0), the recursion written again as a loop."""
    trace = full_trace(np.random.default_rng(1))
    ratio = np.exp(np.minimum(0, trace.columns["log_draft"] - trace.columns["log_target"]))
    race = 1 / (1 + trace.columns["race_g"])
    for rule, accepted in ((TokenVerification(), ratio), (RaceVerification(), race)):
        calls = sum(calls_by_hand(part, k) for part in np.split(accepted, len(trace.texts)))
        assert predict(trace, rule, Chain(k)).tokens_per_call.best == pytest.approx(len(trace) / calls, rel=EXACT)


def test_plan_agrees_with_predict_and_finds_the_largest_speedup() -> None:
    trace, cost = full_trace(np.random.default_rng(2)), ConstantRatio(0.2)
    answer = plan(trace, cost, trees=False)
    assert len(answer.predictions) == 3 * 16
    assert answer.best.speedup is not None
    assert answer.best.speedup.best == max(p.speedup.best for p in answer.predictions if p.speedup)
    for prediction in answer.predictions[::7]:
        alone = predict(trace, prediction.rule, prediction.shape, cost)
        assert alone.tokens_per_call.best == pytest.approx(prediction.tokens_per_call.best, rel=EXACT)
        assert alone.limits.iid_branching == prediction.limits.iid_branching


def test_block_is_never_below_token() -> None:
    """Block verification accepts at least as much at every depth, so it never needs more calls."""
    answer = plan(full_trace(np.random.default_rng(3)), rules=[TokenVerification(), BlockVerification()])
    for token, block in zip(answer.of("token"), answer.of("block"), strict=True):
        assert block.tokens_per_call.best >= token.tokens_per_call.best * (1 - EXACT)


def test_iid_formula_uses_the_acceptance_of_the_first_draft() -> None:
    prediction = predict(full_trace(np.random.default_rng(4)), TokenVerification(), Chain(3))
    alpha = prediction.acceptance.best
    assert prediction.iid_tokens_per_call == pytest.approx(1 + alpha + alpha**2 + alpha**3, rel=EXACT)


def test_limits_are_those_of_the_calculators() -> None:
    trace = full_trace(np.random.default_rng(5), texts=8)
    limits = predict(trace, TokenVerification(), Chain(4)).limits
    mu, mu2 = trace.columns["target_entropy"].mean(), trace.columns["target_second_moment"].mean()
    assert limits.iid_branching == branching_bound(mu, mu2, 4) + 1
    law = trace.columns["rejection_rank"].mean(axis=0)
    law = np.append(law, 1 - law.sum())
    assert limits.iid_channel == pytest.approx(tunstall_bound(-np.sum(law * np.log(law)), 9, 4), rel=EXACT)
    assert limits.text is not None
    surprisals = np.split(-trace.columns["log_target"], 8)
    halves = [surprisals[0::2], surprisals[1::2]]
    thresholds = []
    for half in halves:
        walks, whole = surprisal_walks(np.concatenate(half), np.array([len(text) for text in half]), 4)
        thresholds.append(best_threshold(walks[whole], 4))
    # Equally many starts on both sides, each with the threshold of the other.
    crossed = [branching_bound_from_text(half, 4, t) for half, t in zip(halves, thresholds[::-1], strict=True)]
    assert limits.text.best == pytest.approx(np.mean(crossed) + 1, rel=EXACT)


def test_one_call_bound_by_hand() -> None:
    trace = full_trace(np.random.default_rng(6), texts=2, tokens=5)
    bounds = one_call_bound(Prompts(trace.texts), trace, [2])
    terms = []
    for ratio in np.split(trace.columns["log_draft"] - trace.columns["log_target"], 2):
        terms += [1 + math.exp(min(0, ratio[n])) + math.exp(min(0, ratio[n] + ratio[n + 1])) for n in range(4)]
    assert bounds[2].best == pytest.approx(np.mean(terms), rel=EXACT)


def test_given_text_has_no_limits_over_target_samples() -> None:
    trace = full_trace(np.random.default_rng(7), origin=GIVEN_TEXT)
    answer = plan(trace)
    assert answer.best.limits.decoding is answer.best.limits.text is answer.best.regret is None
    assert not one_call_bound(Prompts(trace.texts), trace, [1])
    assert any("given" in line for line in prediction_report(answer).notes)


def test_one_prompt_has_no_interval_and_few_have_rough_ones() -> None:
    trace = full_trace(np.random.default_rng(8), texts=1)
    interval = predict(trace, TokenVerification(), Chain(3), ConstantRatio(0.1))
    for value in (interval.tokens_per_call, interval.acceptance, interval.speedup):
        assert value is not None
        assert value == Interval.estimate(value.best)
    said = {
        n: " ".join(prediction_report(plan(full_trace(np.random.default_rng(8), texts=n))).notes) for n in (1, 7, 8)
    }
    assert "One prompt gives no 95% interval" in said[1]
    assert "Only 7 prompts: the 95% intervals are rough" in said[7]
    assert "prompts: the 95%" not in said[8]


def test_texts_of_one_prompt_are_drawn_together() -> None:
    """Copies of a text under the same prompt must not narrow the interval."""
    rng = np.random.default_rng(9)
    single = full_trace(rng)
    copies = 5
    columns = {name: np.concatenate([c] * copies) for name, c in single.columns.items()}
    texts = tuple(TextInfo(f"{t.id}#{i}", t.tokens, prompt=t.id) for i in range(copies) for t in single.texts)
    one = predict(single, TokenVerification(), Chain(3)).tokens_per_call
    many = predict(Trace(columns, texts), TokenVerification(), Chain(3)).tokens_per_call
    assert many.best == pytest.approx(one.best, rel=EXACT)
    assert many.high - many.low == pytest.approx(one.high - one.low, rel=1e-9)
    loose = tuple(TextInfo(f"{t.id}#{i}", t.tokens) for i in range(copies) for t in single.texts)
    naive = predict(Trace(columns, loose), TokenVerification(), Chain(3)).tokens_per_call
    assert naive.high - naive.low < 0.7 * (one.high - one.low), "the control: prompts ignored, interval too narrow"


def test_prefill_token_is_a_call_of_its_own() -> None:
    """With every draft accepted and k = 1, ten tokens take five calls; with a prefill token, one and five (9/2 up)."""
    trace = Trace.from_log_probabilities([([-1.0] * 10, [-1.0] * 10)] * 2)
    assert predict(trace, TokenVerification(), Chain(1)).tokens_per_call.best == pytest.approx(2.0)
    with_prefill = predict(trace, TokenVerification(), Chain(1), prefill_emits_token=True)
    assert with_prefill.tokens_per_call.best == pytest.approx(10 / 6)


def test_missing_columns_and_settings_are_named() -> None:
    trace = Trace.from_log_probabilities([([-1.0, -1.0], [-1.0, -2.0])])
    assert {p.rule.name for p in plan(trace).predictions} == {"token", "block"}
    with pytest.raises(TraceError, match="race_g"):
        predict(trace, RaceVerification(), Chain(1))
    with pytest.raises(TraceError, match="greedy_agreement"):
        predict(trace, GreedyMatch(), Chain(1))
    with pytest.raises(SettingError, match="rule 'kseq' has no path form"):
        predict(trace, KSeq(), Chain(1))  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"cost is 0\.1: needs a CostModel"):
        predict(trace, TokenVerification(), Chain(1), 0.1)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="k is 0"):
        Chain(0)


def test_json_has_the_fixed_names() -> None:
    content = prediction_report(plan(full_trace(np.random.default_rng(12)), ConstantRatio(0.1))).as_dict()
    for name in ("tokens_per_call", "accepted_length", "speedup"):
        assert set(content[name]) == {"low", "best", "high", "kind"}
    assert set(content) >= {"rule", "shape", "best", "limits", "provenance"}
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_headline_says_when_not_to_speculate() -> None:
    trace = full_trace(np.random.default_rng(13))
    dear, cheap, none = (prediction_report(plan(trace, c)).headline for c in (*map(ConstantRatio, (5.0, 0.05)), None))
    assert dear.startswith("Do not speculate")
    assert cheap.startswith("Best:")
    assert "Most tokens per call" in none


def test_limits_of_texts_that_end_by_themselves() -> None:
    """A hard token or three, then certain ones to the end: starts near the end belong to the mean.

    Counting only starts with k tokens left selects texts that went on, and put the "bound" at 3.1 where block
    verification gives 6.6 exactly.
    """
    rng = np.random.default_rng(14)
    targets = [np.array([-math.log(1000)] * int(rng.integers(1, 4)) + [0.0] * 15) for _ in range(200)]
    drafts = [np.where(t < 0, t - 1.5, 0.0) for t in targets]
    trace = Trace.from_log_probabilities(zip(targets, drafts, strict=True), ended=[True] * 200)
    prediction = predict(trace, BlockVerification(), Chain(16))
    limit = one_call_bound(Prompts(trace.texts), trace, [16])[16]
    assert limit.low > prediction.tokens_per_call.best
    by_hand = []
    for target, draft in zip(targets, drafts, strict=True):
        ratio = draft - target
        for n in range(len(ratio)):
            # Positions that a text as long as the longest would have k tokens after.
            if n + 16 <= max(map(len, targets)):
                by_hand.append(1 + np.exp(np.minimum(0, np.cumsum(ratio[n:])))[:16].sum())
    assert limit.best == pytest.approx(np.mean(by_hand), rel=EXACT)


def test_a_prefill_token_is_left_out_of_the_speedup() -> None:
    """Nine tokens, all drafts accepted: the prompt's pass emits one, a call of 8 drafts (cost 1.4) the other eight."""
    trace = Trace.from_log_probabilities([([-1.0] * 9, [-1.0] * 9)] * 2)
    cost = ConstantRatio(0.05)
    prediction = predict(trace, TokenVerification(), Chain(8), cost, prefill_emits_token=True)
    assert prediction.speedup is not None
    assert prediction.speedup.best == pytest.approx(8 / 1.4, rel=EXACT)
    assert prediction.tokens_per_call.best == pytest.approx(4.5, rel=EXACT)


def test_limits_need_starts_with_room() -> None:
    """Where fewer than an eighth of the positions leave room for a call, only those near the prompts would count."""
    trace = full_trace(np.random.default_rng(16), texts=10, tokens=64)
    near, far = (predict(trace, TokenVerification(), Chain(k)).limits for k in (56, 58))
    assert near.text is not None
    assert far.text is None
    assert list(one_call_bound(Prompts(trace.texts), trace, [56, 58])) == [56]


def test_greedy_verification_of_sampled_text_is_a_reading() -> None:
    trace = full_trace(np.random.default_rng(17))
    columns = {**trace.columns, "greedy_agreement": np.ones(len(trace), dtype=bool)}
    for temperature, said in ((1.0, True), (0, False)):
        provenance = {"settings": {"sampling": {"temperature": temperature}}}
        answer = plan(Trace(columns, trace.texts, provenance), rules=[GreedyMatch()], shapes=[Chain(1)])
        assert any("Greedy verification" in line for line in prediction_report(answer).notes) is said


def test_what_a_rule_adds_is_paired_by_prompt() -> None:
    """The ratio of both speed-ups, surer than their intervals: its error is that of calls left out one prompt at a
    time, from the definition. Without costs it is that of tokens per call; of one rule, or three, nothing is said.
    """
    trace = full_trace(np.random.default_rng(5), texts=12)
    for cost in (ConstantRatio(0.1), None):
        answer = plan(trace, cost, rules=["token", "block"], k_max=6)
        one, other = (max(answer.of(name), key=lambda p: p.gain) for name in ("block", "token"))
        assert answer.over is not None
        assert (answer.over.rule, answer.over.other) == ("block", "token")
        assert answer.over.ratio.best == pytest.approx(one.gain / other.gain, rel=EXACT)
        calls, less = (
            np.array([30 / predict(text, p.rule, p.shape).tokens_per_call.best for text in trace.blocks(positions=1)])
            for p in (one, other)
        )
        without = np.log([(less.sum() - b) / (calls.sum() - a) for a, b in zip(calls, less, strict=True)])
        spread, freedom = (len(without) - 1) * without.var(), calls.sum() ** 2 / (calls**2).sum() - 1
        width = math.log(answer.over.ratio.high / answer.over.ratio.best)
        assert width == pytest.approx(reach(freedom) * math.sqrt(spread), rel=1e-9)
        assert width < math.log(one.tokens_per_call.high / one.tokens_per_call.best)
    assert plan(trace, rules=["token"], k_max=2).over is None
    assert plan(trace, rules=["token", "block", "race"], k_max=2).over is None
