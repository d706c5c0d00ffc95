"""Lengths that earlier calls decide: the recursion backwards, replays, and what an engine does."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest

from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.drafting import Chain, read_stop
from spectheory.drafting.history import POLICIES, Heuristic, LengthPolicy, MovingAverage, MovingThreshold
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.prediction import predict
from spectheory.prediction.adaptive import _Limits, adaptive_worth
from spectheory.prediction.history import REPLAYS, _by_history
from spectheory.prediction.over_prompts import reach
from spectheory.trace import TextInfo, Trace
from spectheory.verification import ArgmaxDraft, BlockVerification, PathRule, TokenVerification
from tests.made_up import by_start, each
from tests.toy_drafts import text_trace

TRACE = text_trace(4, 1.0, texts=9, tokens=50)
C = 0.1
PASSES = {tokens: Interval.exact(0.01 * tokens) for tokens in (1, 2, 17)}


@dataclass(frozen=True)
class Fixed(LengthPolicy):
    """Always k: a fixed length, written as a policy."""

    name: ClassVar[str] = "fixed"
    start: ClassVar[int] = 0

    def drafts(self, state: object) -> int:
        """K."""
        return self.most

    def after(self, state: object, accepted: int, judged: object = ()) -> int:
        """The only state."""
        return 0


class Drawn(Heuristic):
    """The heuristic, with drawn acceptances."""

    finite = False


def backwards(trace: Trace, rule: PathRule, policy: Heuristic) -> tuple[float, float]:
    """Calls and drafted tokens over all texts, from the end of each text back, by memory of (position, state)."""
    survival = rule.path_survival(trace.columns, policy.most)
    total = np.zeros(2)
    for end, length in zip(np.cumsum(trace.lengths).tolist(), trace.lengths.tolist(), strict=True):

        @cache
        def ahead(n: int, k: int, end: int = end) -> tuple[float, float]:
            if n >= end:
                return 0.0, 0.0
            reach = [1.0, *survival[n, :k].tolist(), 0.0]
            calls, drafted = 1.0, float(min(k, end - n - 1))
            for accepted in range(k + 1):
                chance = reach[accepted] - reach[accepted + 1]
                further = ahead(n + accepted + 1, policy.after(k, accepted))
                calls, drafted = calls + chance * further[0], drafted + chance * further[1]
            return calls, drafted

        total += ahead(end - length, policy.start)
    return float(total[0]), float(total[1])


@each("rule", [TokenVerification(), BlockVerification(), ArgmaxDraft()])
@each("first", [1, 20])
def test_the_recursion_over_states(rule: PathRule, first: int) -> None:
    """Calls and drafted tokens. Negative control: another first length, and no step up."""
    policy = Heuristic(most=6, first=first)
    answer = _by_history(TRACE, rule, policy).prediction
    calls, drafted = backwards(TRACE, rule, policy)
    assert len(TRACE) / answer.tokens_per_call.best == pytest.approx(calls, rel=1e-12)
    assert answer.drafted is not None
    assert answer.drafted.best == pytest.approx(drafted / calls, rel=1e-12)
    assert abs(backwards(TRACE, rule, Heuristic(most=6, first=3))[0] / calls - 1) > 1e-4


def test_a_fixed_length_is_a_policy() -> None:
    cost, chain = ConstantRatio(C), Chain(4)
    as_policy = _by_history(TRACE, TokenVerification(), Fixed(4), cost).prediction
    fixed = predict(TRACE, "token", chain, cost)
    assert as_policy.tokens_per_call.best == pytest.approx(fixed.tokens_per_call.best, rel=1e-12)
    assert as_policy.speedup is not None
    assert fixed.speedup is not None
    assert as_policy.speedup.best == pytest.approx(fixed.speedup.best, rel=0.02), "ends of texts draft less"
    assert as_policy.speedup.best >= fixed.speedup.best


def test_replays_agree_with_the_recursion() -> None:
    """Within four standard errors of the replays (false alarms: 4e-4). Negative control: a shorter first chain."""
    exact, drawn = (
        _by_history(TRACE, TokenVerification(), kind(most=6, first=6), seed=1) for kind in (Heuristic, Drawn)
    )
    assert exact.error == 0 < drawn.error
    off = abs(drawn.prediction.tokens_per_call.best - exact.prediction.tokens_per_call.best)
    assert off < 4 * drawn.error / reach(REPLAYS - 1)
    other = _by_history(TRACE, TokenVerification(), Fixed(2)).prediction.tokens_per_call.best
    assert abs(other - exact.prediction.tokens_per_call.best) > 4 * drawn.error / reach(REPLAYS - 1)


def certain_trace(matches: list[int]) -> Trace:
    """A trace whose drafts are the text's token for certain, or never."""
    columns = {"log_target": np.zeros(len(matches)), "log_draft": np.where(matches, 0.0, -np.inf)}
    return Trace(columns, (TextInfo("0", len(matches)),))


def test_the_moving_average_by_hand() -> None:
    """Replayed once, exactly: long runs of right drafts move k from 3 to 7, runs of wrong ones down to 1.

    The calls are counted here by the description of the engine alone, without the class.
    """
    matches = ([1] * 150 + [0] * 150) * 2
    k, average, calls, n, counts = 3, 2.0, 0, 0, []
    while n < len(matches):
        run = next((i for i, match in enumerate(matches[n : n + k]) if not match), min(k, len(matches) - n))
        counts.append(k)
        average, calls, n = 0.8 * average + 0.2 * run, calls + 1, n + run + 1
        if calls > 10 and calls % 5 == 0:
            lower = [step for step in (1, 3, 5, 7) if step < k]
            before = k
            while lower and average <= lower[-1] - 0.75:
                k = lower.pop()
            while k == before and k < 7 and average > k - 0.5:
                k = before = k + 2
    answer = _by_history(certain_trace(matches), TokenVerification(), MovingAverage(most=16))
    assert answer.error == 0
    assert len(matches) / answer.prediction.tokens_per_call.best == len(counts)
    assert {1, 3, 5, 7} >= set(counts) >= {1, 7}


@each("rule", [TokenVerification(), BlockVerification()])
def test_no_policy_beats_the_limit(rule: PathRule) -> None:
    cost = ConstantRatio(C)
    limit = _Limits(TRACE, rule, 6, cost, prefill_emits_token=False).of_rule()
    for kind in POLICIES[:2]:
        speedup = _by_history(TRACE, rule, kind(most=6), cost).prediction.speedup
        assert speedup is not None
        assert 0.5 < speedup.best <= limit.best


def test_adaptive_answers_have_the_policies() -> None:
    worth = adaptive_worth(TRACE, TokenVerification(), 4, ConstantRatio(C), thresholds=3)
    assert [each.policy.engine for each in worth.histories] == ["transformers", "sglang"]


@each("kind", POLICIES[:2])
def test_a_trace_of_short_calls_shortens_the_policy(kind: type[LengthPolicy]) -> None:
    """Drafts recorded to depth 3: the longest chain of the policy is 3, whatever was asked for."""
    given = Trace({**TRACE.columns, **by_start(TRACE.columns, 3)}, TRACE.texts, TRACE.provenance)
    long, short = (_by_history(given, TokenVerification(), kind(most=most), seed=2) for most in (16, 3))
    assert long == short
    assert long.policy.most == 3


def test_what_is_past_the_end_of_a_text_is_not_accepted() -> None:
    """Each of sixty texts ends after its first token, drafted wrongly; the next text begins with right drafts."""
    matches = [0, 1] * 60
    texts = tuple(TextInfo(str(i), 2) for i in range(60))
    given = Trace({**certain_trace(matches).columns}, texts)
    seen: list[int] = []

    class Watched(MovingAverage):
        def after(self, state: Hashable, accepted: int, judged: Sequence[float] = ()) -> tuple[int, float, int]:
            seen.append(accepted)
            return super().after(state, accepted)

    _by_history(given, TokenVerification(), Watched(most=7))
    assert seen == [0, 0] * 60


def roc_threshold(probabilities: list[float], right: list[bool]) -> float:
    """Every threshold tried, the largest first."""
    costs = {}
    for at in sorted(set(probabilities), reverse=True):
        wrong = [p >= at for p, each in zip(probabilities, right, strict=True) if not each]
        missed = [p < at for p, each in zip(probabilities, right, strict=True) if each]
        costs[at] = sum(wrong) / len(wrong) + 3 * sum(missed) / len(missed)
    return min(costs, key=lambda at: round(costs[at], 12))


def test_the_threshold_that_moves() -> None:
    """Replayed by hand at temperature 0: lengths, calls, and least and most drafts. Control: a threshold that stays."""
    rng = np.random.default_rng(5)
    right = rng.random(240) < 0.7
    matches, tops = right.astype(int).tolist(), (0.3 * right + 0.7 * rng.random(240)).round(2).tolist()
    columns = {**certain_trace(matches).columns, "draft_top": np.array(tops)}
    given = Trace(columns, (TextInfo("1", 240),), {"settings": {"sampling": {"temperature": 0.0}}})
    threshold, judged, n, calls, least, most = 0.4, list[tuple[float, bool]](), 0, 0, 0, 0
    thresholds = set()
    while n < 240:
        room = min(6, 240 - n - 1)
        ends = next((j + 1 for j in range(room) if tops[n + j] < threshold), room)
        accepted = next((j for j in range(ends) if not matches[n + j]), ends)
        sure = accepted == ends or tops[n + accepted] < threshold
        least, most = least + min(accepted + 1, ends), most + (ends if sure else room)
        judged += [(tops[n + j], j < accepted) for j in range(min(accepted + 1, ends))]
        if len(judged) > 5 and len({each for _, each in judged}) == 2:
            threshold = roc_threshold([p for p, _ in judged], [each for _, each in judged])
        thresholds.add(threshold)
        n, calls = n + accepted + 1, calls + 1
    answer = _by_history(given, TokenVerification(), MovingThreshold(most=6))
    assert (answer.error, 240 / answer.prediction.tokens_per_call.best) == (0, pytest.approx(calls, rel=1e-12))
    assert answer.prediction.drafted is not None
    assert answer.prediction.drafted.low * calls <= least + 1e-6
    assert answer.prediction.drafted.high * calls >= most - 1e-6
    assert len(thresholds) > 2
    stays = predict(given, "token", Chain(6, stop=read_stop("token<0.4"))).tokens_per_call.best
    assert abs(stays - 240 / calls) > 0.05
    with pytest.raises(TraceError, match="draft_top at temperature 0"):
        _by_history(TRACE, TokenVerification(), MovingThreshold(most=6))


def test_one_prompt_is_an_estimate() -> None:
    """Nobody knows how another prompt differs, with lengths that are exact for the text and with drawn ones."""
    alone = Trace({name: values[:50] for name, values in TRACE.columns.items()}, TRACE.texts[:1])
    for policy in (Heuristic(most=6), MovingAverage(most=6)):
        prediction = _by_history(alone, TokenVerification(), policy, ConstantRatio(C)).prediction
        assert prediction.drafted is not None
        assert prediction.speedup is not None
        assert {prediction.drafted.kind, prediction.speedup.kind} == {"estimate"}


@each("policy", [Heuristic(most=4), MovingAverage(most=4)])
def test_texts_of_the_prompt_s_token_alone(policy: LengthPolicy) -> None:
    """No call decodes: there is neither a speed-up nor a number of drafts, as with a fixed length."""
    given = Trace.from_log_probabilities([([-1.0], [-1.2])] * 3)
    at: dict[str, Any] = {"cost": ConstantRatio(C), "prefill_emits_token": True}
    prediction = _by_history(given, TokenVerification(), policy, **at).prediction
    stopped = predict(given, "token", Chain(4, stop=read_stop("token<0.4")), **at)
    for one in (prediction, stopped, predict(given, "token", Chain(4), **at)):
        assert (one.speedup, one.drafted, one.tokens_per_call.best) == (None, None, 1.0)


def test_a_parallel_head_knows_how_much_it_drafts() -> None:
    """Its pass is on the tokens of the call, on one more at most, and there is none before a text's last token."""
    cost = LatencyTable({1: Interval.exact(1.0), 17: Interval.exact(1.0)}, PASSES, 64)
    given = Trace(TRACE.columns, TRACE.texts, {**TRACE.provenance, "draft": {"parallel": True}})
    prediction = _by_history(given, TokenVerification(), Heuristic(most=16, first=1), cost).prediction
    assert prediction.drafted is not None
    assert prediction.speedup is not None
    time = prediction.tokens_per_call.best / prediction.speedup.best
    assert 1 + 0.01 * prediction.drafted.best <= time <= 1 + 0.01 * (prediction.drafted.best + 1)


def test_bad_lengths() -> None:
    with pytest.raises(SettingError, match="most is 0"):
        Heuristic(most=0)
    with pytest.raises(SettingError, match="first is 0"):
        Heuristic(most=4, first=0)
