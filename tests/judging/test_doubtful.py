"""Counts that fit only rules which no serving engine is known to run: causes are named beside them, the closest first.

Seeds are fixed; a right rule is refuted, and the controls fail, at a fresh seed with probability FALSE_ALARMS at most.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from spectheory.distributions import Sampling
from spectheory.divergences import hockey_stick
from spectheory.judging.changes import _cut_to
from spectheory.judging.judgement import Judgement, judge
from spectheory.reports.judgement import headline, judgement_report
from spectheory.trace import TextInfo, Trace
from spectheory.trace.calls import CallLog
from tests.judging.test_changed_logits import Stated
from tests.judging.toy_engines import ToyEngine, read, toy_pair
from tests.judging.toy_texts import columns_of
from tests.made_up import each

STATED = Stated(Sampling())


def judged(log: CallLog) -> Judgement:
    """No rule is stated; the trace has the columns of races too."""

    def reread(**changes: Any) -> Trace:
        pair = STATED.pair(changes.get("target_change"), changes.get("draft_change"))
        last = np.concatenate([(*r.prompt, *r.output[:-1]) for r in log.requests])
        token = np.concatenate([r.output for r in log.requests])
        p, q, at = pair.target[last], pair.draft[last], np.arange(len(token))
        mass = np.where(q[at, token] > 0, q[at, token], 1.0)
        g = np.where(q[at, token] > 0, hockey_stick(p, q, p[at, token] / mass), np.inf)
        texts = tuple(TextInfo(r.id, len(r.output)) for r in log.requests)
        settings = {"settings": {"sampling": asdict(Sampling())}}
        return Trace({**columns_of(p, q, token), "race_g": g}, texts, settings)

    return judge(log, reread(), reread=reread)


@each("lists", (True, False))
def test_a_cut_draft_that_looks_like_a_race_is_named(lists: bool) -> None:
    """Twelve texts: rule race fits by chance. Token verification of the cut draft fits better."""
    engine = replace(ToyEngine(STATED.pair(None, _cut_to(10))), lists_calls=lists)
    answer = judged(replace(engine.log(12, 40, seed=7), **asdict(Sampling())))
    assert [one.rule for one in answer.fitting] == ["race"]
    assert not answer.refuted
    assert answer.doubtful
    assert (answer.causes[0].cause, answer.causes[0].rule) == ("draft cut", "token")
    closeness = [one.closeness for one in answer.causes if one.closeness]
    assert closeness == sorted(closeness, reverse=True)
    said = headline(answer)
    assert said.startswith("Counts fit NO rule that engines run, only race: ")
    assert " (rule token with draft cut fits better)" in said
    assert judgement_report(answer).as_dict()["doubtful"]


def test_an_engine_that_runs_a_race_is_doubted_and_not_blamed() -> None:
    engine = ToyEngine(toy_pair(3), "race")
    log = engine.log(60, seed=1)
    answer = judge(log, read(engine.pair, log))
    assert answer.doubtful
    assert answer.causes == ()
    assert "Counts fit NO rule that engines run, only race:" in headline(answer)
    assert not answer.standings[-1].served


def test_a_rule_that_engines_run_is_not_doubted() -> None:
    answer = judged(replace(ToyEngine(STATED.pair()).log(12, 40, seed=7), **asdict(Sampling())))
    assert not answer.doubtful
    assert answer.causes == ()
    assert "NO rule" not in headline(answer)
