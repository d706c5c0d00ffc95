"""Toy engines are judged: the rule that runs stands, the others are refuted, at the stated rate."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from spectheory.drafting import read_stop
from spectheory.errors import TextError
from spectheory.judging.comparison import Comparison
from spectheory.judging.counting import Counted, counted
from spectheory.judging.judgement import Judgement, align_texts, judge
from spectheory.judging.standing import FALSE_ALARMS, Standing
from spectheory.trace import TextInfo, Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters
from spectheory.verification import LookupMatch
from tests.judging.toy_engines import ToyEngine, read, toy_pair
from tests.made_up import each

PAIR = toy_pair(3)
RULES = ("token", "block", "race", "independent", "argmax")
ENGINE_LOG = ToyEngine(PAIR, "greedy").log(1)
RIGHT = 1e-7
"""False-fail rate of an assertion that a right rule stands."""


def judged(engine: ToyEngine, log: CallLog, **how: object) -> Judgement:
    return judge(log, read(engine.pair, log), **how)  # type: ignore[arg-type]


def of(answer: Judgement, rule: str) -> Standing:
    return next(one for one in answer.standings if rule in (one.rule, *one.same))


@each("rule", RULES)
def test_the_rule_that_runs_stands_and_others_are_refuted(rule: str) -> None:
    """60 texts of 30 tokens tell the rules apart by totals and starts; 150 by totals of calls alone, but for a few."""
    engine = ToyEngine(PAIR, rule)
    answer = judged(engine, engine.log(60, seed=1))
    assert of(answer, rule).p > RIGHT
    assert [one.rule for one in answer.fitting] == [of(answer, rule).rule]
    assert not answer.refuted
    other = "block" if rule == "token" else "token"
    for stated in (rule, other):
        assert replace(answer, stated=(stated,)).refuted == (stated == other)
    totals = judged(engine, replace(engine, lists_calls=False).log(150))
    assert of(totals, rule).p > RIGHT
    assert {one.rule for one in totals.fitting} <= {of(totals, rule).rule, "race", "token"}
    assert not of(totals, rule).positions


@each("past_end, prefill", [(False, True), (False, False), (True, True), (True, False)])
def test_every_way_of_counting_is_expected(past_end: bool, prefill: bool) -> None:
    """Short texts, so that their ends matter: a third of the calls are cut."""
    engine = ToyEngine(PAIR, prefill=prefill, past_end=past_end, k=4)
    log = engine.log(200, length=8)
    for said in (past_end, None):
        answer = judged(engine, replace(log, counts_past_end=said))
        assert of(answer, "token").p > RIGHT
        assert of(answer, "block").refuted
    answer = judged(engine, replace(log, prefill_emits_token=None))
    assert answer.counting.prefill == prefill, "its calls say which"


@pytest.mark.evidence
def test_false_alarms_and_z_are_as_frequent_and_as_large_as_stated() -> None:
    """P <= a in at most a share a of 100 logs; another rule's p is small far more often (the negative control).

    The mean square of z, of calls and at known starts, is 1 within 5 deviations of a normal one's.
    """
    engine, level = ToyEngine(PAIR, past_end=True), 0.05
    answers = [judged(engine, engine.log(4, length=16, seed=seed)) for seed in range(100)]
    most = int(stats.binom.isf(RIGHT, len(answers), level))
    assert sum(of(one, "token").p <= level for one in answers) <= most
    assert sum(of(one, "independent").p <= level for one in answers) > most
    right = [of(one, "token") for one in answers]
    p = np.array([one.calls.p for one in right])
    assert all((p <= a).sum() <= stats.binom.isf(RIGHT, len(p), a) for a in (0.01, 0.05, 0.2, 0.5))
    for values in ([one.calls.z for one in right], *np.array([[s.z for s in one.starts] for one in right]).T):
        squares = np.square(values)
        assert abs(squares.mean() - 1) < 5 * np.sqrt(2 / len(squares))


def test_lengths_that_the_draft_decides() -> None:
    """An engine that stops after a token of q < 0.3: expected with the rule, refuted without it and with another."""
    engine = ToyEngine(PAIR, stops_below=0.3)
    log = engine.log(150, seed=2)
    assert of(judged(engine, log, stop=read_stop("token<0.3")), "token").p > RIGHT
    assert of(judged(engine, log), "token").refuted
    assert of(judged(engine, log, stop=read_stop("token<0.6")), "token").refuted
    assert of(judged(engine, log, stop=read_stop("token<0.3")), "block").refuted


def test_temperature_0_demands_equality() -> None:
    engine = ToyEngine(PAIR, "greedy")
    log = engine.log(20)
    answer = judged(engine, log)
    assert [(one.rule, one.p, one.calls.z) for one in answer.standings] == [("greedy", 1, 0)]
    assert answer.output == ()
    request = log.requests[4]
    longer = {"accepted": (*request.accepted, 0), "drafted": (*request.drafted, 0)}
    off = replace(request, calls=None, total_accepted=None, total_drafted=None, **longer)
    one_more = replace(log, requests=(*log.requests[:4], off, *log.requests[5:]))
    answer = judged(engine, one_more)
    assert answer.refuted
    assert answer.standings[0].texts == ("4",)
    assert answer.standings[0].p == 0


def test_copied_drafts_are_judged_where_they_are_stated() -> None:
    """Prompt lookup on greedy text: one call accepts two tokens of the three that repeat what stood before."""
    log = CallLog((Request("0", (1,), (5, 6, 7, 5, 6, 7, 8), accepted=(0, 0, 2, 0)),), k=2, temperature=0.0)
    columns = {name: column[:7] for name, column in read(PAIR, ENGINE_LOG).columns.items()}
    matches = {"lookup_match": np.array([0, 0, 0, 2, 0, 0, 0]), "lookup_drafted": np.array([0, 0, 0, 2, 2, 2, 2])}
    columns |= {"token": np.array(log.requests[0].output), **matches}
    answer = judge(log, Trace(columns, (TextInfo("0", 7),)), rules=[LookupMatch()])
    assert [one.rule for one in answer.questioned] == ["lookup"]
    assert not answer.refuted
    assert answer.questioned[0].calls.low == 4


def test_totals_of_the_engine_are_judged_in_place_of_the_requests() -> None:
    engine = ToyEngine(PAIR)
    log = engine.log(60)
    bare = replace(log, requests=tuple(replace(r, accepted=(), drafted=(), calls=None) for r in log.requests))
    accepted = [a for r in log.requests for a in r.accepted]
    survival = tuple(sum(a >= i for a in accepted) / len(accepted) for i in (1, 2, 3))
    totals = Counters(calls=len(accepted), accepted=sum(accepted), survival=survival)
    answer = judged(engine, bare, counters=totals)
    whole = judged(engine, log)
    assert of(answer, "token").calls == of(whole, "token").calls
    assert of(answer, "token").positions == of(whole, "token").positions
    assert of(answer, "independent").refuted
    wrong = replace(totals, calls=len(accepted) + 200, survival=())
    assert of(judged(engine, bare, counters=wrong), "token").refuted


def _short(count: int) -> tuple[CallLog, Trace]:
    """A log of outputs of two tokens, many of them equal after different prompts, and its trace."""
    log = ToyEngine(PAIR).log(count, length=2)
    return log, read(PAIR, log)


def _turned(trace: Trace, *, renamed: bool = False) -> Trace:
    """The texts in the opposite order."""
    rows = np.arange(2 * len(trace.texts)).reshape(-1, 2)[::-1].ravel()
    texts = tuple(replace(text, id=f"{n}x" if renamed else text.id) for n, text in enumerate(reversed(trace.texts)))
    return Trace({name: column[rows] for name, column in trace.columns.items()}, texts, trace.provenance)


def test_equal_outputs_after_different_prompts_are_joined_by_id() -> None:
    log, trace = _short(200)
    assert len({r.output for r in log.requests}) < len({(r.prompt, r.output) for r in log.requests})
    in_order = align_texts(_turned(trace), log)
    assert all(np.array_equal(in_order.columns[name], column) for name, column in trace.columns.items())


def test_equal_outputs_without_ids_are_refused() -> None:
    log, trace = _short(200)
    with pytest.raises(TextError, match="texts after different prompts: a request is found by its id"):
        align_texts(_turned(trace, renamed=True), log)


def test_a_text_of_another_prompt_is_not_taken() -> None:
    """Two requests with one output: the trace has one of them only, under neither's id."""
    log, trace = _short(200)
    same: dict[tuple[int, ...], list[int]] = {}
    for number, request in enumerate(log.requests):
        same.setdefault(request.output, []).append(number)
    one, other = next(
        (a, b)
        for places in same.values()
        for a, b in itertools.pairwise(places)
        if log.requests[a].prompt != log.requests[b].prompt
    )
    rows = [2 * one, 2 * one + 1]
    alone = Trace(
        {name: c[rows] for name, c in trace.columns.items()}, (replace(trace.texts[one], id="?"),), trace.provenance
    )
    with pytest.raises(TextError, match="different prompts"):
        align_texts(alone, replace(log, requests=(log.requests[one], log.requests[other])))
    assert align_texts(alone, replace(log, requests=(log.requests[one],))) is alone


def test_texts_are_found_by_their_ids() -> None:
    """A trace with more texts, in another order."""
    engine = ToyEngine(PAIR)
    log = engine.log(20)
    some = replace(log, requests=tuple(reversed(log.requests[3:11])))
    answer = judge(some, read(PAIR, log))
    assert answer.standings == judge(some, read(PAIR, some)).standings
    assert pytest.approx(1e-3) == FALSE_ALARMS


@each("places", [2, 3, 9])
def test_counts_by_position_are_read_from_shares_that_decide_them(places: int) -> None:
    """A share rounded to two places of 100 calls may be of two counts: then their number by position is unknown."""
    calls, accepted = 100, (61, 40)
    survival = tuple(round(n / calls, places) for n in accepted)
    counters = Counters(calls=calls, survival=survival, rounding=0.5 * 10.0**-places)
    expected = Counted(calls, accepted if places > 2 else ())
    assert counted(ToyEngine(PAIR, "greedy").log(4), 2, counters) == expected
    with pytest.raises(TextError, match="the totals hold 100 calls, and the log 30 tokens"):
        counted(ENGINE_LOG, 2, counters)


def test_a_rule_has_as_many_chances_to_be_refuted_as_comparisons() -> None:
    """Bonferroni: the smallest of five p-values times five, and no more than 1."""
    each_p = [Comparison("calls", 5, 4.0, 4.0, 1.0, p) for p in (0.4, 0.02, 0.5, 0.9)]
    made = Standing("token", (), each_p[0], tuple(each_p[1:3]), (each_p[3],), likelihood=0.3)
    assert made.p == pytest.approx(5 * 0.02)
    assert replace(made, likelihood=1e-4).p == pytest.approx(5e-4)
    assert replace(made, positions=()).p == pytest.approx(3 * 0.3)
    assert Standing("token", (), each_p[3]).p == 0.9
    assert replace(made, likelihood=0.3, positions=(each_p[2],) * 9).p == 1.0


def test_a_text_after_a_prompt_of_another_length_is_not_taken() -> None:
    """Whose output and id are those of the request; unknown lengths fit."""
    log, trace = _short(1)
    prompt = len(log.requests[0].prompt)
    for said, taken in ((prompt, True), (None, True), (prompt + 1, False)):
        other = Trace(trace.columns, (replace(trace.texts[0], prompt_tokens=said),), trace.provenance)
        if taken:
            assert align_texts(other, log) is other
        else:
            with pytest.raises(TextError, match="its output is no text of the trace"):
                align_texts(other, log)
