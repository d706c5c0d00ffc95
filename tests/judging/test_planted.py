"""Faults planted in an engine are found, each with so many prompts; a right engine is not refuted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from spectheory.judging.counting import Counted, counting_of
from spectheory.judging.expected import ExpectedCounts
from spectheory.judging.judgement import COUNTS_ALONE, Judgement, judge
from spectheory.judging.output import POWER
from spectheory.judging.standing import FALSE_ALARMS
from spectheory.reports.judgement import judgement_report
from spectheory.verification import TokenVerification
from tests.judging.planted import FAULTS, LOGITS, RIGHT, Engine, read
from tests.judging.toy_texts import pmfs
from tests.made_up import each

FOUND_AT = {
    "target sampled again instead of the residual": 6,
    "residual of the exchanged models": 6,
    "recovered token from the draft": 6,
    "most probable token of the residual": 6,
    "bonus token from the draft": 24,
    "bonus token is the most probable": 12,
    "typical acceptance": 6,
    "acceptance 1.3 times too generous": 24,
    "acceptance 2 times too generous": 6,
    "acceptance 0.8 times too strict": 24,
    "acceptance by the target's probability alone": 6,
    "acceptance by the inverse ratio": 6,
    "every draft accepted": 6,
    "drafts at temperature 0.7, read at 1": 12,
    "drafts cut to the 4 most probable": 12,
    "draft read one position late": 6,
    "one uniform number for draft and acceptance": 96,
    "target at temperature 0.9": 48,
    "nothing accepted beyond depth 2": 6,
    "one draft in ten lost": 24,
    "a call too many in each request": 384,
}
"""Prompts of 96 tokens at which a fault is found with each of the seeds."""
CAUSED = {
    "target sampled again instead of the residual": "residual not taken",
    "bonus token from the draft": "bonus of another law",
    "bonus token is the most probable": "bonus of another law",
    "nothing accepted beyond depth 2": "dead beyond a depth",
    "a call too many in each request": "prompt's token",
}
"""Faults that are causes. The others are not: without the models nothing else explains these counts."""


@cache
def judged(name: str, prompts: int, seed: int) -> Judgement:
    log = FAULTS[name].log(prompts, seed) if name else RIGHT.log(prompts, seed)
    return judge(log, read(log))


@each("name", [name for name, prompts in FOUND_AT.items() if prompts <= 24])
def test_a_planted_fault_is_found(name: str) -> None:
    answer = judged(name, FOUND_AT[name], 1)
    assert answer.refuted or answer.doubtful or answer.output_refuted
    assert [one.cause for one in answer.causes] == ([CAUSED[name]] if name in CAUSED else [])


@pytest.mark.evidence
@each("name", FOUND_AT)
@each("seed", range(1, 7))
def test_a_planted_fault_is_found_with_other_seeds(name: str, seed: int) -> None:
    answer = judged(name, FOUND_AT[name], seed)
    assert answer.refuted or answer.doubtful or answer.output_refuted
    assert {one.cause for one in answer.causes} <= {CAUSED.get(name)}


@pytest.mark.evidence
@each("prompts", (6, 24, 96))
@each("seed", range(20))
def test_a_right_engine_stands(prompts: int, seed: int) -> None:
    """Refuted with probability 1e-3 by its counts, 1e-3 by its output: 0.12 in these 60 runs of fixed seeds."""
    answer = judged("", prompts, seed)
    assert not answer.refuted
    assert not answer.doubtful
    assert not answer.output_refuted


def test_a_cause_of_the_counts_does_not_explain_a_wrong_output() -> None:
    """Nothing is accepted beyond depth 2, and the target has another temperature."""
    log = replace(FAULTS["nothing accepted beyond depth 2"], target=pmfs(LOGITS, 0.8)).log(12, 1)
    answer = judge(log, read(log))
    assert answer.output_refuted
    assert [one.cause for one in answer.causes] == ["dead beyond a depth"]
    assert COUNTS_ALONE in answer.notes
    right = judged("nothing accepted beyond depth 2", 6, 1)
    assert right.causes
    assert COUNTS_ALONE not in right.notes


def test_first_choices_are_a_rule_of_their_own() -> None:
    answer = judged("first choices of the draft", 6, 1)
    assert [one.rule for one in answer.fitting] == ["argmax"]
    assert not answer.output_refuted


def test_the_smallest_loss_named_is_found() -> None:
    """An engine that loses this share of its drafts is refuted by its number of calls in 90% of runs or more.

    With a power of 0.9, 43 or fewer of 60 runs have a probability of 6e-5; half the loss, the control, is not found.
    """
    prompts, right = 12, judged("", 12, 1)
    assert right.smallest is not None
    said = judgement_report(right).notes[0]
    assert said.startswith(f"This log would show, with probability {POWER:g}: acceptance lower by ")

    def caught(loss: float) -> int:
        return sum(_refuted(Engine(loses=loss), prompts, seed) for seed in range(60))

    assert caught(right.smallest) > 43
    assert caught(right.smallest / 2) < 43


def _refuted(engine: Engine, prompts: int, seed: int) -> bool:
    """Whether token verification is refuted by its calls, at the level of one of all comparisons."""
    log = engine.log(prompts, seed)
    trace = read(log)
    counting = counting_of(log)
    survival = np.asarray(TokenVerification().path_survival(trace.columns, counting.k))
    calls = sum(request.calls or len(request.accepted) for request in log.requests)
    expected = ExpectedCounts(survival, np.array([len(request.output) for request in log.requests]), counting)
    return expected.comparisons(Counted(calls))[0].p < FALSE_ALARMS / (2 * counting.k + 3)
