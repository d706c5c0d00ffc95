"""Every cause is found in a toy engine that has the fault, and in none that has not.

A right engine is blamed only where its rule is refuted, so the negative controls fail at a fresh seed with
probability FALSE_ALARMS at most; seeds are fixed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spectheory.judging.causes import CAUSES, Finding
from spectheory.judging.judgement import judge
from spectheory.trace.calls import CallLog, Request
from spectheory.verification.registry import path_rule
from tests.judging.toy_engines import Floats, ToyEngine, dead_beyond, decaying, read, toy_pair
from tests.made_up import each

PAIR = toy_pair(3)
RIGHT = ToyEngine(PAIR, past_end=True)
TOKEN = [path_rule("token")]


def spoilt(q: Floats, at: int, n: int) -> Floats:
    """A worse draft, the same at every depth and position."""
    return 0.7 * q + 0.3 * np.eye(len(q))[int(np.argmin(q))]


def blamed(engine: ToyEngine, log: CallLog, *, stated: bool = True) -> dict[str, Finding]:
    answer = judge(log, read(engine.pair, log), rules=TOKEN if stated else ())
    return {cause.cause: cause for cause in answer.causes}


def in_total(request: Request) -> Request:
    """Calls by accepted tokens, in no order."""
    drafted = request.drafted[0]
    row = np.bincount(request.accepted, minlength=drafted + 1)
    return replace(request, accepted=(), drafted=(), by_drafted={drafted: tuple(row.tolist())})


SHORT = {"requests": 250, "length": 6}
"""Many short texts: what happens at their ends counts."""
FAULTS = [
    ("argmax drafts", replace(RIGHT, rule="argmax"), {}, {}),
    ("prompt's token", replace(RIGHT, prompt_counted=True), SHORT, {}),
    ("prompt's token", replace(RIGHT, prefill=False), {}, {"prefill_emits_token": True}),
    ("prompt's token", replace(RIGHT, prefill=False, lists_calls=False), SHORT, {"prefill_emits_token": True}),
    ("calls without drafts", ToyEngine(PAIR, skips_undrafted=True), {}, {}),
    ("calls without drafts", ToyEngine(PAIR, skips_undrafted=True, lists_calls=False), SHORT, {}),
    ("dead beyond a depth", replace(RIGHT, bend=dead_beyond(1)), {}, {}),
    ("decay with context", replace(RIGHT, bend=decaying(30)), {}, {}),
    ("early-stopping draft", replace(RIGHT, stops_below=0.2), {}, {}),
    ("early-stopping draft", replace(RIGHT, stops_below=0.2, lists_calls=False), {}, {}),
]


@each("cause, engine, size, said", FAULTS)
def test_a_fault_is_found(cause: str, engine: ToyEngine, size: dict[str, int], said: dict[str, bool]) -> None:
    log = replace(engine.log(**{"requests": 50, **size}), **said)  # type: ignore[arg-type]
    assert set(blamed(engine, log)) == {cause}, "this cause and no other"


def test_every_cause_has_a_fault() -> None:
    assert {cause for cause, *_ in FAULTS} | {"past the end"} <= {cause.name for cause in CAUSES}


def test_tokens_past_the_end() -> None:
    """Against the log's word: by calls that lie past the end, and by totals that hold too many."""
    for k, lists in ((3, True), (6, False)):
        engine = replace(RIGHT, k=k, pair=toy_pair(3, likeness=0.9))
        log = replace(engine.log(250, length=6), counts_past_end=False)
        if not lists:
            log = replace(log, requests=tuple(map(in_total, log.requests)))
        assert set(blamed(engine, log)) == {"past the end"}
        assert not blamed(engine, replace(log, counts_past_end=True))
        assert not blamed(engine, replace(log, counts_past_end=None))


@each("seed", range(2))
def test_a_right_engine_is_not_blamed(seed: int) -> None:
    for engine in (RIGHT, ToyEngine(PAIR), ToyEngine(PAIR, prefill=False), replace(RIGHT, lists_calls=False)):
        assert not blamed(engine, engine.log(30, seed=seed))
        assert not blamed(engine, engine.log(30, seed=seed), stated=False)


def test_another_fault_is_not_mistaken_for_a_known_one() -> None:
    """A draft that is worse everywhere refutes the rule; none of the causes explains it."""
    engine = replace(RIGHT, bend=spoilt)
    log = engine.log(40)
    assert judge(log, read(PAIR, log), rules=TOKEN).refuted
    assert not blamed(engine, log)


def test_a_wrong_temperature_is_no_residual_that_is_not_taken() -> None:
    """Where drafts are good, bets tell hardly any law from that fault's: the texts must refute the target's by it."""
    pair = toy_pair(3, likeness=0.97)
    sharp = replace(pair, **{name: _colder(getattr(pair, name)) for name in ("target", "draft")})
    log = ToyEngine(sharp).log(60)
    answer = judge(log, read(pair, log))
    assert answer.output_refuted
    assert not answer.refuted
    assert not answer.causes


def _colder(pmf: Floats) -> Floats:
    powers = pmf ** (1 / 0.8)
    return powers / powers.sum(axis=-1, keepdims=True)
