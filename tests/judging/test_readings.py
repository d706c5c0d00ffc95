"""Counts without texts: readings at every k against runs at that k, their noise, and what they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.errors import SettingError, TextError
from spectheory.intervals import Interval
from spectheory.judging.counting import Counting
from spectheory.judging.expected import ExpectedCounts
from spectheory.judging.first_choices import _calls_of, _first_choice_bounds
from spectheory.judging.readings import (
    FALSE_ALARM,
    FROM_MEAN,
    _share_of_calls,
    first_draft_gap,
    readings,
)
from spectheory.prediction.over_prompts import reach
from spectheory.prediction.renewal import _survival_of
from spectheory.reports.readings import readings_report
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters, pooled
from spectheory.verification import PATH_RULES
from tests.made_up import all_refused, each
from tests.trace.counter_cases import HELD, sample

ONE = Counters(calls=100, drafted=200, accepted=90, survival=(0.6, 0.3), k=2)


def texts(seed: int, n: int = 40, tokens: int = 120) -> list[Any]:
    """Whether the tokens of texts match the draft: easy and hard stretches, as a two-state chain."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        easy = np.cumsum(rng.random(tokens) < 0.1) % 2 == 0
        rows.append(rng.random(tokens) < np.where(easy, 0.95, 0.4))
    return rows


def run_of(match: Sequence[bool], k: int, name: str = "r") -> Request:
    """The calls of k drafts over a text, one after another, as an engine would make them."""
    accepted, at = [], 0
    while at < len(match):
        run = 0
        while run < k and at + run < len(match) and match[at + run]:
            run += 1
        accepted.append(run)
        at += run + 1
    return Request(name, accepted=tuple(accepted), drafted=(k,) * len(accepted))


def log_of(rows: list[Any], k: int) -> CallLog:
    return CallLog(tuple(run_of(row, k, str(i)) for i, row in enumerate(rows)), k=k)


def test_first_choices_bound_the_calls_at_every_k() -> None:
    """The counts of one k hold those of every other k between their ends, and those of their own exactly."""
    rows = texts(1)
    for logged in (1, 2, 5):
        log = log_of(rows, logged)
        for k in (1, 2, 3, 5, 9):
            fewest, most = _first_choice_bounds(log, k) or (np.empty(0), np.empty(0))
            counted = np.array([len(run_of(row, k).accepted) for row in rows])
            assert np.all(fewest <= counted)
            assert np.all(counted <= most)
            if k == logged:
                assert np.array_equal(fewest, most)
    ends = _first_choice_bounds(log_of(rows, 5), 2) or (np.empty(0), np.empty(0))
    assert ends[1].sum() - ends[0].sum() < 0.1 * ends[1].sum(), "a long chain says nearly all about a short one"


def test_wrong_matches_are_outside_the_ends() -> None:
    """The control: calls of texts with one match in ten turned are outside the ends."""
    rows, log = texts(2), log_of(texts(2), 5)
    turned = [row ^ (np.random.default_rng(3).random(len(row)) < 0.1) for row in rows]
    fewest, most = _first_choice_bounds(log, 2) or (np.empty(0), np.empty(0))
    counted = sum(_calls_of(row, 2) for row in turned)
    assert not fewest.sum() <= counted <= most.sum()


def test_ends_need_accepted_tokens_of_every_call() -> None:
    assert _first_choice_bounds(CallLog((Request("a", calls=3, total_accepted=2),), k=2), 1) is None
    assert _first_choice_bounds(CallLog((Request("a", accepted=(1, 0)),)), 1) is None
    assert _first_choice_bounds(CallLog(()), 1) is None


def test_readings_of_own_starts_are_estimates_and_differ_from_runs() -> None:
    """A run at k = 1 accepts more at position 1 than one at k = 6, whose calls start at harder tokens."""
    long, short = readings(log_of(texts(4, n=200), 6)), readings(log_of(texts(4, n=200), 1))
    assert [row.basis for row in long.rows[:7]] == ["own starts"] * 5 + ["counted", "constant hazard"]
    assert long.rows[0].tokens_per_call.kind == "estimate"
    assert long.counted.tokens_per_call.kind == "statistical"
    assert short.rows[0].tokens_per_call.best > long.rows[0].survival.high + 1
    gap = first_draft_gap(short.counters, long.counters)
    assert gap is not None
    assert gap.differ
    assert "beyond the noise" in gap.sentence(("one", "other"))
    ends = long.rows[0].first_choices
    assert ends is not None
    assert ends.low <= short.counted.tokens_per_call.best <= ends.high


def test_counted_values_are_those_of_the_log() -> None:
    for name in HELD:
        counters = sample(name)
        if counters.length is None or not (counters.k or counters.mean_drafted):
            continue
        answer = readings(counters)
        assert answer.counted.tokens_per_call.best == pytest.approx(counters.length, abs=len(answer.rows) * 5e-4)
        assert [row.k for row in answer.rows] == list(range(1, 17))
        sums = 1 + np.cumsum([row.survival.best for row in answer.rows])
        for k, length in counters.lengths:
            assert answer.rows[k - 1].tokens_per_call.best == pytest.approx(length, rel=1e-9), "each is counted"
            assert answer.rows[k - 1].basis == "counted"
        for row, summed in zip(answer.rows, sums, strict=True):
            if row.summed is None:
                assert counters.lengths or row.tokens_per_call.best == pytest.approx(summed, abs=5e-3)
            else:
                assert row.summed == pytest.approx(summed, abs=5e-3)
                assert row.tokens_per_call.low <= min(row.summed, row.renewal or 0) + 1e-9


PAIR = Path(__file__).parents[2] / "docs" / "figures" / "pair"
RENEWING, OTHERS = ("token", "argmax"), ("block",)


def counts_on(trace: Trace, rule: str, k: int) -> Counters:
    """The counters of an engine of this rule and k on the texts of a trace: expected values, exact (§7)."""
    survival = np.asarray(PATH_RULES[rule].path_survival(trace.columns, k), dtype=float)
    sums = ExpectedCounts(survival, trace.lengths, Counting(k, past_end=False)).low.expected.sum(axis=0)
    shares = tuple((sums[1:] / sums[0]).tolist())
    calls = 10**9
    return Counters(calls=calls, drafted=k * calls, survival=shares, k=k, rounding=1e-9)


@each("draft", ["distilled", "draft"])
def test_readings_of_other_k_against_every_k_of_real_texts(draft: str) -> None:
    """The truth at every k is known. Control: the summed shares miss what the renewal reading meets.

    Renewal: 0.2% down and 0.4% up for rules that decide position by position. For block, and where no rule is named,
    the range holds the truth.
    """
    trace = Trace.read(PAIR / draft / "trace.parquet")
    for rule in (*RENEWING, *OTHERS):
        counted = {k: counts_on(trace, rule, k) for k in (1, 2, 3, 5, 8)}
        true = {k: counters.length or 0 for k, counters in counted.items()}
        for ran in (8, 3):
            counters = counted[ran]
            of_rule, unknown = readings(counters, k_max=8, rule=rule), readings(counters, k_max=8)
            for k in true.keys() - {ran}:
                mine, wide = of_rule.rows[k - 1], unknown.rows[k - 1].tokens_per_call
                slack = (2e-3 if k < ran else 4e-3) * true[k]
                assert wide.low - slack <= true[k] <= wide.high + slack
                assert wide.low < wide.high
                if rule in RENEWING:
                    assert mine.tokens_per_call.best == pytest.approx(true[k], abs=slack)
                    assert abs((mine.summed or 0) / true[k] - 1) > 5e-3, "the control"
                else:
                    assert mine.tokens_per_call == wide
                    assert mine.tokens_per_call.best == pytest.approx(true[k], rel=0.01 if k < ran else 0.03)


def test_matches_that_renew_are_read_within_the_error_of_counting() -> None:
    """40 texts of a renewal process, k = 4 read as 2: 95% ranges miss the truth in 5 of 100 runs on average.

    14 or more have a chance below 1e-3; ranges of a quarter of the width miss at least 40 (the control).
    """
    hazards = np.array([0.4, 0.7, 0.85, 0.9])
    truth = 1 + _survival_of(hazards, 2).sum()
    missed = narrow = 0
    for seed in range(100):
        log = log_of(list(renewing(hazards, 40, 100, np.random.default_rng([7, seed]))), 4)
        per_call = readings(log, k_max=2, rule="token").rows[1].tokens_per_call
        missed += not per_call.low <= truth <= per_call.high
        narrow += abs(truth - per_call.best) > (per_call.high - per_call.low) / 8
    assert missed < 14
    assert narrow >= 40


def renewing(hazards: Any, texts: int, tokens: int, rng: np.random.Generator) -> Any:
    """Matches of texts whose chance depends on the age, ``[texts, tokens]``, from a stationary start."""
    age, heights, rows = np.zeros(texts, int), rng.random((tokens + 50, texts)), []
    for row in heights:
        match = row < hazards[np.minimum(age, len(hazards) - 1)]
        age = np.where(match, age + 1, 0)
        rows.append(match)
    return np.array(rows[50:]).T


def test_the_rule_of_counts_is_checked() -> None:
    with pytest.raises(SettingError, match="rule is 'tokens': there are"):
        readings(ONE, rule="tokens")


@pytest.mark.evidence
def test_noise_over_requests_holds_the_truth() -> None:
    """95% intervals over requests miss the mean of many texts in 5 of 100 runs (14 or more: chance below 1e-3).

    The control: texts of one stretch each make the calls of a text dependent, and the interval over calls misses more.
    """
    missed = narrow = outside = 0
    many = pooled(log_of(stretches(5, n=4000), 3))
    first, truth = many.survival[0], many.length or 0.0
    for seed in range(100):
        log = log_of(stretches(100 + seed, n=20), 3)
        answer = readings(log, k_max=3)
        over, share = answer.counted.tokens_per_call, answer.rows[0].survival
        missed += not over.low <= truth <= over.high
        calls = readings(pooled(log), k_max=3).counted.tokens_per_call
        narrow += not calls.low <= truth <= calls.high
        outside += not share.low <= first <= share.high
    assert missed < 14
    assert outside < 14
    assert narrow > 30, "the interval over calls is a lower bound of the noise"


def stretches(seed: int, n: int) -> list[Any]:
    """Texts that are easy or hard as a whole."""
    rng = np.random.default_rng(seed)
    return [rng.random(60) < rng.choice([0.3, 0.9]) for _ in range(n)]


def test_noise_over_calls_is_that_of_independent_calls() -> None:
    """Half the width is 1.96 standard errors of the accepted tokens of calls, by their law; far from the ends of 1..5.

    The control: the deviation from shares that are added up as if positions were independent is another one.
    """
    law = np.array([0.3, 0.1, 0.2, 0.15, 0.25])  # P(accepted = 0), ..., P(accepted = 4)
    survival, calls, lengths = 1 - law.cumsum()[:-1], 10_000, np.arange(5)
    per_call = readings(Counters(calls=calls, survival=tuple(survival.tolist()), k=4), k_max=4).counted.tokens_per_call
    deviation = np.sqrt(law @ lengths**2 - (law @ lengths) ** 2)
    assert (per_call.high - per_call.low) / 2 == pytest.approx(reach(np.inf) * deviation / np.sqrt(calls), rel=1e-9)
    assert per_call.best == pytest.approx(1 + law @ lengths)
    assert np.sqrt((survival * (1 - survival)).sum()) < 0.9 * deviation


def test_the_best_k_for_a_cost() -> None:
    free = readings(ONE, ConstantRatio(0.0), k_max=4)
    assert free.best is not None
    assert (free.best.k, free.best.speedup) == (2, free.best.tokens_per_call)
    assert free.best_beyond is not None
    assert free.best_beyond.k == 4
    dear = readings(ONE, ConstantRatio(0.9), k_max=4)
    assert dear.best is not None
    assert dear.best.speedup is not None
    assert (dear.best.k, dear.best_beyond) == (1, None)
    assert dear.best.summed == 1.6
    assert dear.best.speedup.best == pytest.approx(dear.best.tokens_per_call.best / 1.9)
    assert readings(ONE).best is None


def test_latencies_reach_as_far_as_they_were_measured() -> None:
    second = Interval.exact
    table = LatencyTable({1: second(1.0), 3: second(1.2)}, {1: second(0.1), 2: second(0.1)}, context=64)
    answer = readings(ONE, table, k_max=4)
    assert [row.speedup is None for row in answer.rows] == [False, False, True, True]


def test_a_head_reads_what_was_accepted() -> None:
    """Passes that take .1 for each token, a target pass 1: by hand. Control: a draft model's, on two tokens at most."""
    counters = Counters(calls=1000, drafted=4000, accepted=2000, survival=(0.8, 0.6, 0.4, 0.2), k=4)
    passes = {m: Interval.exact(0.1 * m) for m in (1, 2, 8)}, {m: Interval.exact(1.0) for m in (1, 8)}
    gains = []
    for kind in ({"kind": "eagle3"}, {}):
        served = readings(counters, LatencyTable(passes[1], passes[0], 64, {"draft": kind})).rows[3]
        assert served.speedup is not None
        gains.append(served.speedup.best)
    assert gains == pytest.approx([3 / (1 + 0.1 * (1 + 2) + 0.3), 3 / (1 + 0.1 * (1 + 0.2) + 0.3)], rel=1e-9)


def test_the_times_of_a_log_give_its_cost() -> None:
    """The draftOverhead s of TensorRT-LLM is k c / (1 + k c)."""
    answer = readings(sample("trtllm_iterations.jsonl"))
    c = 2.2 / (9.1 - 2.2) / 3
    assert answer.best is not None
    assert answer.best.speedup is not None
    assert answer.best.speedup.best == pytest.approx(2.5 / (1 + 3 * c))
    assert answer.best.speedup.kind == "estimate"
    assert any("from the log's own times" in line for line in answer.assumptions)


def test_a_variable_number_of_drafts_does_not_bias_hazards() -> None:
    """Calls of tokens that match with 0.8 whatever came before, with 1 to 4 drafts at random: hazards are 0.8.

    Sizes: 20,000 calls, so a hazard has a standard error below 0.005, and 0.02 is four of them. The control: survival
    over all calls is lower than 0.8 ** i by far.
    """
    rng = np.random.default_rng(11)
    drafted = rng.integers(1, 5, 20_000)
    accepted = np.minimum(drafted, rng.geometric(0.2, 20_000) - 1)
    log = CallLog((Request("a", accepted=tuple(accepted.tolist()), drafted=tuple(drafted.tolist())),))
    answer = readings(log, k_max=6)
    assert [row.basis for row in answer.rows[:5]] == ["drafted so far"] * 4 + ["constant hazard"]
    assert [row.hazard for row in answer.rows] == pytest.approx([0.8] * 6, abs=0.02)
    assert answer.counted.tokens_per_call.kind == "estimate"
    assert answer.counters.survival[3] < 0.8**4 / 3
    assert any("variable number" in line for line in answer.assumptions)
    assert "biased down" in answer.counters.biases[0]


def test_a_mean_alone_is_read_with_a_constant_hazard() -> None:
    answer = readings(sample("sglang_log.txt"), k_max=5)
    hazards = {round(row.hazard or 0, 9) for row in answer.rows}
    assert len(hazards) == 1
    assert answer.counted.tokens_per_call.best == pytest.approx(1.9)
    assert answer.counted.tokens_per_call.kind == "estimate"
    assert FROM_MEAN in answer.assumptions


test_counts_that_say_too_little_are_refused = all_refused(
    {
        "no calls": (lambda: readings(sample("llama_older.txt")), TextError, "do not say tokens per call"),
        "no k": (lambda: readings(sample("trtllm_metrics.txt")), TextError, "do not say k"),
        "too long": (lambda: readings(Counters(mean_length=4.5, k=3)), TextError, "at most k + 1"),
        "nothing": (lambda: readings(Counters(calls=0, drafted=0, accepted=0, k=2)), TextError, "tokens per call"),
    }
)


@each("k, of", [(1, (0, 1)), (2, (0, 0))])
def test_all_or_nothing(k: int, of: tuple[int, int]) -> None:
    """Shares of 0 and 1 have intervals inside [0, 1]."""
    for share in of:
        answer = readings(Counters(calls=9, drafted=9 * k, accepted=9 * k * share, survival=(share,) * k, k=k))
        assert 0 <= answer.rows[0].survival.low <= share <= answer.rows[0].survival.high <= 1
        assert answer.counted.tokens_per_call.best == 1 + k * share


def test_lengths_at_some_k_give_those_between() -> None:
    """Those of the built-in pair at k = 1, 3, 5 and 8 give the others within 1%; that of k = 8 alone misses more."""
    whole = dict(sample("acceptance_lengths.yaml").lengths)
    some = tuple((k, whole[k]) for k in (1, 3, 5, 8))
    thinned = readings(Counters(k=8, mean_length=whole[8], lengths=some), ConstantRatio(0.05), k_max=8)
    alone = readings(Counters(k=8, mean_length=whole[8]), k_max=8)
    off, of_one = (
        {row.k: abs(row.tokens_per_call.best / whole[row.k] - 1) for row in a.rows} for a in (thinned, alone)
    )
    assert max(off.values()) < 0.01
    assert max(of_one.values()) > 2 * max(off.values())
    assert "as served" not in readings_report({"log": thinned}).headline


def test_the_rule_of_counts_is_said_first() -> None:
    logs = {"log": readings(sample("vllm_metrics.txt"), ConstantRatio(0.05), rule="block")}
    report = readings_report(logs)
    assert report.brief
    line = "Read as counts under block verification; other rules need a trace"
    assert line in report.headline
    assert line in report.brief.verdict


def test_the_verdict_names_every_log() -> None:
    logs = {name: readings(sample("vllm_metrics.txt"), ConstantRatio(0.05)) for name in ("one", "two")}
    brief = readings_report(logs).brief
    assert brief
    assert [line.split(":")[0] for line in brief.verdict] == ["one", "two"]


def test_equal_acceptances_are_seldom_called_different() -> None:
    """The false alarm of a comparison is the stated one: 1% of 4,000, and at most 70 with a chance below 1e-5."""
    rng = np.random.default_rng(7)
    hits = rng.binomial((400, 900), 0.7, size=(4000, 2)) / (400, 900)
    pairs = [(Counters(calls=400, survival=(a,)), Counters(calls=900, survival=(b,))) for a, b in hits]
    differing = sum(gap.differ for one, other in pairs if (gap := first_draft_gap(one, other)))
    assert 0 < differing <= 70
    assert FALSE_ALARM == 0.01
    assert first_draft_gap(ONE, Counters(calls=3)) is None
    assert first_draft_gap(Counters(calls=3, survival=(1.0,)), Counters(calls=4, survival=(1.0,))) is not None


def test_counts_at_one_position_say_what_they_lack() -> None:
    """Both readings are the same then, so that their range says nothing of how matches cluster."""
    one = readings(Counters(calls=100, drafted=100, accepted=60, survival=(0.6,), k=1), k_max=5)
    assert all(row.renewal == pytest.approx(row.summed) for row in one.rows[1:])
    assert any("do not show how matches cluster" in line for line in one.assumptions)
    assert not any("do not show how matches cluster" in line for line in readings(ONE).assumptions)


def test_totals_have_the_error_of_calls_that_accept_all_or_nothing() -> None:
    """Two of four drafts a call: at most the variance of 0 and 4 in equal shares, 4."""
    row = readings(Counters(calls=400, accepted=800, drafted=1600, k=4), k_max=4).rows[3].tokens_per_call
    assert row.best == pytest.approx(3)
    assert row.high - row.best == pytest.approx(1.959964 * 2 / 20)


def test_a_share_of_calls_has_wilsons_interval() -> None:
    """Under the probability at each end the share is 1.96 deviations away."""
    for share, calls in ((0.1, 20), (0.7, 55)):
        interval = _share_of_calls(share, calls)
        for p in (interval.low, interval.high):
            assert abs(share - p) == pytest.approx(reach(np.inf) * np.sqrt(p * (1 - p) / calls))
