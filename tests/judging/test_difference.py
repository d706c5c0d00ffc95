"""Two runs against each other, and the gate: intervals under clustering and pairing, parts, stated rates, bad input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom, poisson

from spectheory.answers.base import plain
from spectheory.cli import main
from spectheory.errors import SettingError, TextError
from spectheory.judging import Difference, Gate, Judgement, compare, gate
from spectheory.judging.acceptance_gate import POWER
from spectheory.judging.counting import Counting
from spectheory.judging.difference import FALSE_ALARM, Change, difference
from spectheory.judging.readings import readings
from spectheory.judging.runs import Run, expected_run
from spectheory.reports.difference import difference_report, gate_report
from spectheory.trace import TextInfo, Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters, pooled
from tests.commands import refused
from tests.judging.toy_engines import ToyEngine, read, toy_pair
from tests.made_up import each

K, PROMPTS, TOKENS, RUNS = 3, 40, 60, 300
FAILS = 1e-7
"""Chance that one of the statistical tests here fails without a fault; each says what it would see."""
Floats = NDArray[np.float64]


def prompts_of(rng: np.random.Generator, level: float, spread: float = 0.12, prompts: int = PROMPTS) -> Floats:
    """Acceptance probabilities ``[prompts, tokens]``: prompts differ, as real ones do."""
    means = np.clip(level + spread * rng.standard_normal((prompts, 1)), 0.05, 0.98)
    return np.broadcast_to(means, (prompts, TOKENS))


def decoded(acceptances: Floats, rng: np.random.Generator) -> CallLog:
    """A log of calls of K drafts over texts whose tokens are accepted with these probabilities."""
    requests = []
    for name, row in enumerate(acceptances):
        accepted, at = [], 1
        while at < len(row):
            taken = 0
            while taken < K and at + taken < len(row) and rng.random() < row[at + taken]:
                taken += 1
            accepted.append(min(taken, len(row) - at - 1) if at + taken >= len(row) else taken)
            at += accepted[-1] + 1
        output = tuple(range(name, name + len(row)))
        requests.append(Request(str(name), (name,), output, accepted=tuple(accepted), drafted=(K,) * len(accepted)))
    return CallLog(tuple(requests), k=K, temperature=1.0, prefill_emits_token=True)


def trace_of(acceptances: Floats) -> Trace:
    """The statistics of the same texts: q/p is the acceptance probability of the text's token."""
    rows = np.concatenate(list(acceptances))
    target = np.full(len(rows), np.log(0.5))
    length = acceptances.shape[1]
    tokens = np.concatenate([np.arange(name, name + length) for name in range(len(acceptances))])
    columns = {"token": tokens, "log_target": target, "log_draft": target + np.log(rows)}
    texts = tuple(TextInfo(str(name), length, prompt=f"p{name}") for name in range(len(acceptances)))
    return Trace(columns, texts, {"settings": {"sampling": {"temperature": 1.0}}})


def missed(changes: list[Change]) -> int:
    """How many 95% intervals of runs that are equal miss 0."""
    return sum(not each.difference.low <= 0 <= each.difference.high for each in changes)


MOST_MISSED = int(binom.isf(FAILS, RUNS, 1.1 * 0.05))
"""Of so many intervals with a rate of misses up to 1.1 times the stated one: errors of ratios are linearised."""


@pytest.mark.evidence
def test_clustered_runs_differ_as_often_as_stated() -> None:
    """Equal runs on other prompts: 95% intervals miss in 5%.

    Control: as if calls were independent they miss far more often.
    """
    rng = np.random.default_rng(11)
    changes, naive = [], []
    for _ in range(RUNS):
        one, other = (decoded(prompts_of(rng, 0.6), rng) for _ in range(2))
        changes.append(compare(_renamed(one, "a"), _renamed(other, "b")).tokens)
        naive.append(compare(pooled(one), pooled(other)).tokens)
    assert missed(changes) <= MOST_MISSED
    assert missed(naive) > MOST_MISSED, "the control"


def _renamed(log: CallLog, name: str) -> CallLog:
    """Requests of prompts that no other log has."""
    return replace(log, requests=tuple(replace(r, id=f"{name}{r.id}", prompt=()) for r in log.requests))


@pytest.mark.evidence
def test_shared_prompts_are_compared_one_by_one() -> None:
    """Two runs of the same texts: the interval is shorter than without pairing, and still misses as stated."""
    rng = np.random.default_rng(12)
    changes, shorter = [], []
    for _ in range(RUNS):
        texts = prompts_of(rng, 0.6)
        one, other = (decoded(texts, rng) for _ in range(2))
        paired = compare(one, other)
        assert paired.paired == PROMPTS
        changes.append(paired.tokens)
        shorter.append(paired.tokens.deviation / compare(_renamed(one, "a"), _renamed(other, "b")).tokens.deviation)
    assert missed(changes) <= MOST_MISSED
    assert np.median(shorter) < 0.8


def test_few_prompts_widen_intervals_by_students_t() -> None:
    """Three prompts a run: 95% intervals miss no more often than with forty. Control: normal ones miss far more."""
    rng, runs = np.random.default_rng(18), 600
    changes = []
    for _ in range(runs):
        logs = [_renamed(decoded(prompts_of(rng, 0.6, prompts=3), rng), name) for name in "ab"]
        changes.append(compare(*logs).tokens)
    assert missed(changes) <= binom.isf(FAILS, runs, 1.1 * 0.05)
    assert missed([replace(each, freedom=np.inf) for each in changes]) > binom.isf(FAILS, runs, 1.1 * 0.05)


def test_what_engines_count_at_the_end_of_a_text_is_no_difference() -> None:
    """One engine cuts its last call, the other counts drafts past the end: with calls listed neither end counts."""
    log = decoded(prompts_of(np.random.default_rng(19), 0.6), np.random.default_rng(20))
    requests = [replace(each, accepted=(*each.accepted[:-1], K), total_accepted=None) for each in log.requests]
    longer = replace(log, requests=tuple(requests), counts_past_end=True)
    assert all(change.difference.best == 0 for change in compare(log, longer).changes)
    assert compare(pooled(log), pooled(longer)).tokens.difference.best > 0.01, "the control: totals hold them"


def test_totals_are_as_clustered_as_the_other_run() -> None:
    rng = np.random.default_rng(13)
    log, other = (decoded(prompts_of(rng, 0.6), rng) for _ in range(2))
    raised, alone = compare(log, pooled(other)), compare(pooled(log), pooled(other))
    assert raised.clustering > 1.5
    assert alone.clustering == 1
    known = compare(_renamed(log, "a"), _renamed(other, "b"))
    assert raised.tokens.deviation == pytest.approx(known.tokens.deviation, rel=0.35)
    assert raised.tokens.deviation > 1.2 * alone.tokens.deviation


def test_harder_texts_are_told_from_a_fault() -> None:
    """The second texts are harder; with a fault that accepts 12% less the rest is beyond noise, without it within."""
    rng = np.random.default_rng(14)
    easy, hard = prompts_of(rng, 0.75), prompts_of(rng, 0.6)
    log, right, faulty = decoded(easy, rng), decoded(hard, rng), decoded(0.88 * hard, rng)
    texts = [trace_of(easy), trace_of(hard)]
    fine, broken = (compare(log, other, texts=texts) for other in (right, faulty))
    for answer in (fine, broken):
        expected = [Run.of("", trace, k=K).shares for trace in texts]
        assert [change.difference.best for change in answer.texts] == pytest.approx(
            (expected[1] - expected[0]).tolist()
        )
        for whole, part, rest in zip(answer.changes, answer.texts, answer.rest, strict=True):
            assert whole.difference.best == pytest.approx(part.difference.best + rest.difference.best)
    assert fine.differs(fine.tokens)
    assert not fine.differs(fine.rest[0])
    assert broken.differs(broken.rest[0])
    assert broken.rest[0].difference.best < 0


def _words(answer: Difference) -> str:
    return difference_report(answer).headline


def _of_draft(trace: Trace, fingerprint: str) -> Trace:
    return replace(trace, provenance={**trace.provenance, "draft": {"fingerprint": fingerprint}})


def test_a_weaker_draft_is_told_from_texts_and_engine() -> None:
    """The second run has harder texts and a weaker draft; a third trace reads its texts with the first draft."""
    rng = np.random.default_rng(23)
    easy, hard = prompts_of(rng, 0.8), prompts_of(rng, 0.7)
    weak = 0.85 * hard
    one, other, faulty = decoded(easy, rng), decoded(weak, rng), decoded(0.8 * weak, rng)
    texts = [_of_draft(trace_of(each), name) for each, name in ((easy, "a"), (weak, "b"), (hard, "a"))]
    fine, broken, two = (
        compare(one, other, texts=texts),
        compare(one, faulty, texts=texts),
        compare(one, other, texts=texts[:2]),
    )
    for answer in (fine, broken):
        for change, *parts in zip(answer.changes, answer.texts, answer.draft, answer.rest, strict=True):
            assert change.difference.best == pytest.approx(sum(part.difference.best for part in parts))
        assert answer.texts[1].difference.best < -0.05
        assert answer.draft[1].difference.best < -0.05
    assert "The draft is weaker by" in _words(fine)
    assert "is within noise" in _words(fine)
    assert "is the engine; The calls of the second run do not fit the rule" in _words(broken)
    assert [judgement.refuted for judgement in broken.judged if isinstance(judgement, Judgement)] == [False, True]
    assert two.with_drafts
    assert two.texts[1].difference.best == pytest.approx(fine.texts[1].difference.best + fine.draft[1].difference.best)
    assert "texts with their drafts are harder" in _words(two)


def test_a_fault_that_easier_texts_hide_is_said() -> None:
    """Tokens per call are equal, as easier texts make up for a fault."""
    rng = np.random.default_rng(24)
    hard, easy = prompts_of(rng, 0.55, 0.0), prompts_of(rng, 0.7, 0.0)
    answer = compare(decoded(hard, rng), decoded(0.55 / 0.7 * easy, rng), texts=[trace_of(hard), trace_of(easy)])
    assert not answer.differs(answer.tokens)
    assert "the texts are easier by" in _words(answer)
    assert "is the draft or the engine" in _words(answer)


def test_a_log_that_cannot_be_judged_says_why() -> None:
    texts = prompts_of(np.random.default_rng(25), 0.6)
    log = replace(decoded(texts, np.random.default_rng(26)), temperature=0.5)
    report = difference_report(compare(log, log, texts=[trace_of(texts)] * 2, names=("a", "b")))
    shown = plain(report.content)
    assert (shown["one"]["calls_fit"], shown["one"]["output_fits"]) == (None, None)
    assert any(note.startswith("a is not judged: ") and "0.5" in note for note in report.notes)


def test_a_wrong_output_is_said() -> None:
    """The second texts are read by another target: they are no sample of it, and the counts do not depend on it."""
    pair = toy_pair(3)
    log = ToyEngine(pair, "independent").log(40)
    texts = [read(pair, log), read(replace(toy_pair(4), draft=pair.draft), log)]
    answer = compare(log, log, rule="independent", texts=texts, names=("a", "b"))
    assert "The output of b is not what the target outputs" in _words(answer)
    shown = plain(difference_report(answer).content)
    assert [(shown[side]["calls_fit"], shown[side]["output_fits"]) for side in ("one", "other")] == [
        (True, True),
        (True, False),
    ]
    assert "The output of a and of b fits the target" in _words(
        compare(log, log, rule="independent", texts=texts[:1] * 2, names=("a", "b"))
    )


def test_at_temperature_0_nothing_is_left() -> None:
    """Greedy counts are certain given the texts: the texts explain two pairs' difference to the last call."""
    pairs = [toy_pair(3), toy_pair(5)]
    logs = [ToyEngine(pair, "greedy").log(8) for pair in pairs]
    answer = compare(*logs, texts=[read(*each) for each in zip(pairs, logs, strict=True)])
    assert answer.tokens.difference.best != 0
    assert [change.difference.best for change in answer.rest] == pytest.approx([0.0] * (K + 1), abs=1e-12)
    assert [change.z for change in answer.rest] == [0.0] * (K + 1)


@pytest.mark.evidence
def test_a_gate_fails_as_often_as_stated_and_catches_its_smallest_loss() -> None:
    """Expected by a trace of other prompts; the loss lowers every acceptance until tokens per call fall by that share.

    A rate of alarms of 2.5 times the stated one, or a power below .75, would be seen.
    """
    rng = np.random.default_rng(15)
    alarm, failed, caught = 0.05, 0, 0
    for _ in range(RUNS):
        expect = trace_of(prompts_of(rng, 0.6))
        answer = gate(decoded(prompts_of(rng, 0.6), rng), expect, alarm=alarm)
        failed += not answer.passed
        lower = Gate(_lowered(answer), alarm)
        caught += not lower.passed
    assert failed <= binom.isf(FAILS, RUNS, 1.1 * alarm)
    assert caught >= binom.isf(1 - FAILS, RUNS, POWER - 0.05)


@pytest.mark.evidence
def test_totals_against_a_trace_fail_as_often_as_stated() -> None:
    """Counters without prompts, which hold the cut calls at the ends of texts (rates as above).

    Control: expected of calls with room for all drafts, four times as many runs fail.
    """
    rng, alarm, runs = np.random.default_rng(17), 0.05, 150
    failed, control = 0, 0
    for spread in (0.0, 0.1):
        for _ in range(runs):
            counts, expect = pooled(decoded(prompts_of(rng, 0.6, spread), rng)), trace_of(prompts_of(rng, 0.6, spread))
            failed += not gate(counts, expect, alarm=alarm).passed
            control += not Gate(difference(Run.of("", expect, k=K), Run.of("", counts)), alarm).passed
    assert failed <= binom.isf(FAILS, 2 * runs, 1.1 * alarm)
    assert control > binom.isf(FAILS, 2 * runs, 1.1 * alarm), "the control"


HAND = np.array([0.9, 0.3, 0.8, 0.5, 0.6])
"""Acceptances of a text of five tokens; the prompt's pass emits the first."""


def every_path(at: int, k: int, spare: int) -> list[tuple[float, tuple[tuple[int, int], ...]]]:
    """All ways to decode the text from a position on: probability, and calls as (tokens left, accepted).

    With r tokens left, r - 1 + `spare` accepted drafts count at most.
    """
    left = len(HAND) - at
    if left <= 0:
        return [(1.0, ())]
    known = HAND[at : at + k]
    accept = np.concatenate([known, np.full(k - len(known), HAND[-1] / 2)])  # some acceptance past the end
    paths = []
    for taken in range(k + 1):
        chance = float(np.prod(accept[:taken])) * (1 - accept[taken] if taken < k else 1)
        later = every_path(at + taken + 1, k, spare)
        paths += [(chance * more, ((left, min(taken, left - 1 + spare)), *calls)) for more, calls in later]
    return paths


def moments(k: int, spare: int, *, whole: bool = False, shares: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """Means over all paths of the counts, and variances of tokens and accepted drafts less their shares of calls."""
    rows, chances = [], []
    for chance, calls in every_path(1, k, spare):
        counted = [accepted for left, accepted in calls if not whole or left > k]
        rows.append([sum(accepted >= i for accepted in counted) for i in range(k + 1)])
        chances.append(chance)
    counts, weights = np.array(rows, float), np.array(chances)
    assert weights.sum() == pytest.approx(1)
    centred = np.column_stack([counts.sum(axis=1), counts[:, 1:]]) - counts[:, :1] * shares
    return weights @ counts, weights @ (centred - weights @ centred) ** 2


@each("k", [1, 2, 3])
def test_expected_counts_are_those_of_every_path(k: int) -> None:
    """Calls with room for all drafts are exact; all calls lie between the fewest and the most that engines count."""
    trace = trace_of(np.tile(HAND, (2, 1)))
    room = expected_run("", trace, "token", Counting(k), whole=True)
    assert room.counts == pytest.approx(np.tile(moments(k, k, whole=True)[0], (2, 1)))
    cut = expected_run("", trace, "token", Counting(k, past_end=False), whole=False)
    ends = [moments(k, spare, shares=cut.shares) for spare in (0, 1)]
    assert cut.counts == pytest.approx(np.tile((ends[0][0] + ends[1][0]) / 2, (2, 1)))
    assert cut.coins == pytest.approx(ends[0][1] / (2 * cut.counts[0, 0] ** 2))
    unknown = expected_run("", trace, "token", Counting(k), whole=False)
    slack = [abs(_shares(moments(k, spare)[0]) - unknown.shares) for spare in (0, 1, k)]
    known = np.broadcast_to(unknown.slack, k + 1)
    assert np.all(known >= np.max(slack, axis=0) - 1e-12)
    assert known[0] == pytest.approx(slack[0][0]), "the fewest"


def _shares(counts: Floats) -> Floats:
    return np.append(counts.sum(), counts[1:]) / counts[0]


def _lowered(answer: Gate) -> Difference:
    """The same runs where the second one has lost the smallest loss."""
    tokens = answer.difference.tokens
    less = replace(tokens, other=tokens.other - answer.smallest * tokens.one)
    return replace(answer.difference, changes=(less, *answer.difference.changes[1:]))


def test_no_prompt_in_common_and_totals_alone() -> None:
    """Against the pooled two-sample formula, by hand."""
    one, other = Counters(calls=400, survival=(0.8, 0.5)), Counters(calls=900, survival=(0.7, 0.5))
    answer = compare(one, other)
    second = answer.changes[1]
    assert second.deviation == pytest.approx(np.sqrt(0.8 * 0.2 / 400 + 0.7 * 0.3 / 900))
    variance = [s + 3 * t - (s + t) ** 2 for s, t in ((0.8, 0.5), (0.7, 0.5))]
    assert answer.tokens.deviation == pytest.approx(np.sqrt(variance[0] / 400 + variance[1] / 900))
    assert answer.differs(second) is bool(2 * ndtr(-abs(second.z)) < FALSE_ALARM / 3)
    assert second.z == pytest.approx(-0.1 / second.deviation)


@each(
    "content, counted, passes",
    [
        ({"k": 1, "tokens_per_call": 1.7}, 0.68, True),
        ({"k": 1, "tokens_per_call": 1.7}, 0.55, False),
        ({"tokens_per_call": {"low": 1.5, "best": 1.7, "high": 1.9, "kind": "statistical"}}, 0.55, True),
        ({"tokens_per_call": {"low": 1.56, "best": 1.7, "high": 1.9, "kind": "bound"}}, 0.55, True),
    ],
)
def test_an_expectation_may_be_a_small_file(
    content: dict[str, object], counted: float, passes: bool, tmp_path: Path
) -> None:
    path = tmp_path / "expected.json"
    path.write_text(json.dumps(content))
    assert gate(Counters(calls=1000, survival=(counted,)), path).passed is passes


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    one, longer = Counters(calls=9, survival=(0.5,)), Counters(calls=9, survival=(0.5, 0.2))
    with pytest.raises(SettingError, match="another k calls start elsewhere"):
        compare(one, longer)
    with pytest.raises(TextError, match="no counts by position"):
        compare(one, Counters(calls=9, accepted=3))
    with pytest.raises(SettingError, match="a run that is no log of calls"):
        compare(one, one, texts=[tmp_path])
    log = decoded(np.full((2, TOKENS), 0.6), np.random.default_rng(1))
    with pytest.raises(SettingError, match="1 traces of texts are given"):
        compare(log, log, texts=[tmp_path])
    with pytest.raises(SettingError, match="a run is 3"):
        compare(one, 3)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="k is not given"):
        compare(trace_of(np.full((2, TOKENS), 0.5)), trace_of(np.full((2, TOKENS), 0.5)))
    with pytest.raises(SettingError, match="counted is a trace: it has expected calls"):
        gate(trace_of(np.full((2, TOKENS), 0.5)), one)
    with pytest.raises(TextError, match="the first run has no call"):
        compare(trace_of(np.full((2, TOKENS), 0.5)), trace_of(np.full((2, TOKENS), 0.5)), k=TOKENS)
    with pytest.raises(SettingError, match="alarm is 0"):
        gate(one, one, alarm=0)
    path = tmp_path / "e.json"
    path.write_text('{"k": 2, "tokens_per_call": 2.5}')
    with pytest.raises(SettingError, match="calls draft 2 tokens in expected and 1 in counted"):
        gate(one, path)
    path.write_text('{"tokens_per_call": "many"}')
    with pytest.raises(TextError, match="states no tokens per call"):
        gate(one, path)


def test_the_commands_answer_as_python_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    one, other = Counters(calls=400, survival=(0.8,)), Counters(calls=400, survival=(0.6,))
    one.write(before)
    other.write(after)
    assert main(["compare", str(before), str(after), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["differs"]
    assert shown["changes"][0]["z"] == compare(one, other).tokens.z
    for expected, counted, status in ((before, after, 1), (after, before, 0)):
        assert main(["gate", str(counted), "--expect", str(expected), "--json"]) == status
        assert json.loads(capsys.readouterr().out)["passed"] is not bool(status)
    assert "absent" in refused(["compare", before, tmp_path / "absent"], capsys)


def test_an_answer_of_a_stopping_rule_is_refused(tmp_path: Path) -> None:
    """Its calls draft as many tokens as the rule lets; the same answer of a fixed length is compared."""
    path, log = tmp_path / "prediction.json", Counters(calls=4000, survival=(0.8, 0.6, 0.5))
    stated = {"k": 3, "shape": "chain k=3, token<0.3", "tokens_per_call": 2.9}
    path.write_text(json.dumps(stated | {"drafted": 2.1}))
    with pytest.raises(
        TextError, match=r"states chain k=3, token<0\.3, which a stopping rule ends: .* for a fixed length"
    ):
        compare(path, log)
    path.write_text(json.dumps(stated))
    assert compare(path, log).tokens.difference.best == pytest.approx(0.0)


def test_a_gate_of_totals_says_that_its_rates_are_lower_bounds() -> None:
    """Nothing says how prompts differ; a trace does, so that its gate is at the stated rate."""
    totals = Counters(calls=4000, survival=(0.8, 0.6, 0.5))
    for expect, independent in ((totals, True), (trace_of(prompts_of(np.random.default_rng(3), 0.6)), False)):
        answer = gate(totals, expect)
        assert answer.independent is independent
        assert ("False-alarm rate at least 0.001" in gate_report(answer).headline) is independent


def test_a_run_of_one_prompt_is_not_called_totals() -> None:
    log = decoded(prompts_of(np.random.default_rng(21), 0.6, prompts=1), np.random.default_rng(22))
    notes = " ".join(difference_report(compare(log, Counters(calls=9, survival=(0.5,) * K), names=("a", "b"))).notes)
    assert "a: one prompt; b: totals without prompts; their calls are taken as independent" in notes


def test_what_nothing_random_changes_is_beyond_noise() -> None:
    """Certain shares: equal ones do not differ, and others do, by infinitely many deviations (null in JSON)."""
    run = Run.of("a", Counters(calls=100, survival=(0.7, 0.4)))
    assert all(change.z == 0 for change in difference(run, run).changes)
    answer = compare(Counters(calls=900, survival=(1.0,)), Counters(calls=900, survival=(0.0,)))
    assert answer.tokens.deviation == 0
    assert answer.tokens.z == -np.inf
    assert answer.differs(answer.tokens)
    shown = plain(difference_report(answer).content)
    assert [change["z"] for change in shown["changes"]] == [None, None]
    assert shown["differs"] is True


def alarms(events: float) -> float:
    """The exact chance that a position that `events` of 1,000 calls reach is said to differ from what is expected."""
    many = 10.0**9
    expected = Run("expected", np.array([[many, many * events / 1000]]), rule="token")
    counts = np.arange(150)
    runs = [Run("counted", np.array([[1000.0, float(n)]])) for n in counts]
    found = [difference(expected, run) for run in runs]
    said = np.array([each.differs(each.changes[1]) for each in found])
    return float(poisson.pmf(counts[said], events).sum())


@each("events", [0.01, 0.1, 0.5, 1.0, 1.9, 3.0, 5.0, 8.0, 12.0, 30.0, 49.0])
def test_positions_that_few_calls_reach_are_not_said_to_differ(events: float) -> None:
    """Alarms at the rate stated for both numbers together, or fewer; the control has no least variance."""
    assert alarms(events) <= FALSE_ALARM


def test_without_a_least_variance_few_calls_raise_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spectheory.judging.difference.RARE", 0)
    assert alarms(1.9) > 10 * FALSE_ALARM


def test_what_an_answer_states_is_read_with_its_k_and_its_error(tmp_path: Path) -> None:
    """An estimate may lie anywhere in its range, a range over three prompts is of Student's t."""
    log = decoded(np.full((40, TOKENS), 0.6), np.random.default_rng(3))
    counted = pooled(log).length
    assert counted is not None
    (tmp_path / "counts.json").write_text(
        json.dumps({"k": K + 2, "best": {"k": K}, "tokens_per_call": counted}), encoding="utf-8"
    )
    assert compare(tmp_path / "counts.json", pooled(log)).k == K
    for kind, prompts in (("statistical", 3), ("statistical", None), ("estimate", None)):
        value = {"low": counted, "best": counted + 0.1, "high": counted + 0.2, "kind": kind}
        provenance = {"prompts": {"count": prompts}} if prompts else {}
        stated = {"k": K, "tokens_per_call": value, "provenance": provenance}
        (tmp_path / "stated.json").write_text(json.dumps(stated), encoding="utf-8")
        change = compare(tmp_path / "stated.json", pooled(log)).tokens
        assert (change.slack > 0) is (kind == "estimate")
        assert change.freedom == (2 if prompts else np.inf)
        beside_log = compare(tmp_path / "stated.json", log).tokens
        assert beside_log.slack > change.slack, "ends of texts"


def test_few_calls_that_accept_nothing_are_no_proof(tmp_path: Path) -> None:
    """Four calls of three drafts with nothing accepted: 1.1 tokens per call give that in two of three runs."""
    few, many = Counters(calls=4, survival=(0.0,) * K), Counters(calls=4000, survival=(0.0,) * K)
    (tmp_path / "stated.json").write_text(json.dumps({"k": K, "tokens_per_call": 1.1}), encoding="utf-8")
    with pytest.raises(TextError, match="too few calls for a gate"):
        gate(few, tmp_path / "stated.json")
    assert not gate(many, tmp_path / "stated.json").passed
    tokens = readings(few).counted.tokens_per_call
    assert tokens.low == 1 < tokens.high - 0.5


def test_an_answer_is_held_against_a_trace_under_its_own_rule(tmp_path: Path) -> None:
    stated = {"k": K, "rule": "block", "tokens_per_call": 2.0}
    (tmp_path / "stated.json").write_text(json.dumps(stated), encoding="utf-8")
    trace = trace_of(np.full((4, TOKENS), 0.6))
    with pytest.raises(SettingError, match="an answer for rule block"):
        compare(tmp_path / "stated.json", trace)
    assert compare(tmp_path / "stated.json", trace, rule="block").k == K


def test_counts_without_positions_are_refused_before_a_missing_k() -> None:
    with pytest.raises(TextError, match="no counts by position"):
        gate(Counters(calls=9, accepted=3), trace_of(np.full((4, TOKENS), 0.6)))


def scrape(calls: int, *reached: int, started: float | None = None) -> Counters:
    """Counts of a server since its start."""
    shares = tuple(count / calls for count in reached)
    known = {} if started is None else {"started": started}
    return Counters(calls=calls, accepted=sum(reached), survival=shares, cumulative=True, provenance=known)


@each(
    "later",
    [
        (scrape(900, 500, 260), True),
        (scrape(900, 299, 260), False),  # the count of a position went back
        (scrape(400, 300, 200), False),  # no call more
        (replace(scrape(900, 500, 260), cumulative=False), False),
        (scrape(900, 500, 260, started=2.0), False),  # made at another time
    ],
)
def test_a_later_scrape_of_the_same_counters_is_said(later: tuple[Counters, bool]) -> None:
    before, (after, said) = scrape(400, 300, 200), later
    compared, gated, back = compare(before, after), gate(after, before), compare(after, before)
    for report in (difference_report(compared), gate_report(gated), difference_report(back)):
        assert ("may be a later scrape of" in report.headline) is said
        assert report.brief is not None
        assert ("may be a later scrape of" in report.brief.verdict[0]) is said


def test_a_scrape_that_surely_contains_the_other_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counters that were made at one time are one server's; its difference is compared."""
    names = before, after = tmp_path / "before.json", tmp_path / "after.json"
    scrape(400, 300, 200, started=1.0).write(before)
    scrape(900, 500, 260, started=1.0).write(after)
    for command in (["compare", *names], ["compare", after, before], ["gate", after, "--expect", before]):
        line = refused(command, capsys)
        assert re.search(r"after.json is a later scrape of \S*before.json's counters", line)
        assert re.search(r"spectheory import \S*before\S* \S*after", line), "in the order of time"


@each("calls", [(40, "cannot be told apart"), (180, "may have fallen"), (400, "fell by")])
def test_the_verdict_says_at_which_level_it_decides(calls: tuple[int, str]) -> None:
    """No interval that excludes 0 stands beside "cannot be told apart"."""
    count, verdict = calls
    answer = compare(Counters(calls=count, survival=(0.8,)), Counters(calls=count, survival=(0.68,)))
    headline = difference_report(answer).headline
    assert headline.startswith(f"Tokens per call {verdict}")
    assert (answer.tokens.difference.high < 0) is (verdict != "cannot be told apart")
    assert ("beyond noise is p < 0.005 (0.01 over 2 rows)" in headline) is (verdict == "may have fallen")
