"""Engines that draft by a head are judged by start and depth: right calls fit, faults are named."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.cli import loading
from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.judging.changes import NO_TEMPERATURE
from spectheory.judging.judgement import judge
from spectheory.measure import ModelPair, load_pair, teacher_forced
from spectheory.measure.decoders.decode import decode
from spectheory.measure.decoders.methods import Method
from spectheory.measure.judged import judged_trace
from spectheory.pairs import resolve
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from tests.commands import answer
from tests.toy_heads import TOYS, ToyHead, ToyParallelHead, with_head

K, WARM = 4, Sampling(0.8)


@pytest.fixture(scope="module", params=TOYS)
def head(request: pytest.FixtureRequest, tiny_pair: ModelPair) -> ModelPair:
    return with_head(tiny_pair, request.param)


def log_of(pair: ModelPair, sampling: Sampling, rule: str = "token", prompts: int = 2, tokens: int = 40) -> CallLog:
    """What our own decoder logs of some prompts."""
    requests = []
    for number in range(prompts):
        ids = torch.tensor([number + 1, 2, 9])
        (text,) = decode(pair, [ids], Method(rule, Chain(K)), tokens=tokens, sampling=sampling, seed=number)
        calls = tuple(call.accepted for call in text.calls)
        output = tuple(text.output_ids.tolist())
        requests.append(Request(str(number), tuple(ids.tolist()), output, accepted=calls, calls=len(calls)))
    stated = {"k": K, "temperature": sampling.temperature, "prefill_emits_token": False, "counts_past_end": False}
    return CallLog(tuple(requests), "toy", "1", **stated, provenance={"dtype": "float32"})


def read_per_position(trace: Trace) -> Trace:
    """The same trace as if the pmfs of a head did not depend on where a call starts."""
    return replace(trace, columns={n: c for n, c in trace.columns.items() if not n.startswith("start_")})


def test_greedy_calls_are_exact_but_for_near_ties(head: ModelPair) -> None:
    """The control: read per position, the same calls are impossible."""
    log = log_of(head, Sampling(0.0), prompts=4, tokens=60)
    trace = judged_trace(head, log)
    answered = judge(log, trace)
    assert (answered.refuted, answered.output_refuted) == (False, False)
    assert answered.standings[0].calls.low == answered.standings[0].calls.counted
    assert judge(log, read_per_position(trace)).refuted
    # In bfloat16 a first choice by less than rounding may go either way, by start; else every call is certain.
    refused = (replace(r, accepted=(0,) * len(r.output), calls=len(r.output), total_accepted=0) for r in log.requests)
    wrong = replace(log, requests=tuple(refused))
    tied = dict.fromkeys(("start_draft_margin", "start_draft_gap"), np.zeros_like(trace.columns["start_draft_gap"]))
    assert judge(wrong, trace).refuted
    assert not judge(wrong, replace(trace, columns={**trace.columns, **tied})).refuted


def test_the_rule_of_sampled_calls_fits_and_first_choices_are_found(tiny_pair: ModelPair) -> None:
    """A right rule is refuted with probability 1e-3; the control are first choices, which nothing else explains."""
    head = with_head(tiny_pair, ToyHead)
    log = log_of(head, WARM)
    assert not judge(log, judged_trace(head, log), rules=["token"]).refuted
    other = log_of(head, WARM, "argmax", prompts=4)
    answered = judge(other, judged_trace(head, other), rules=["token"])
    assert answered.refuted
    assert [cause.cause for cause in answered.causes][:1] == ["argmax drafts"]


STATED = Sampling(0.5)


def test_a_changed_draft_is_read_at_every_start(head: ModelPair) -> None:
    """Drafts without the temperature are those of a measurement at temperature 1; the target stays as it is."""
    log = log_of(head, STATED, prompts=1, tokens=12)
    plain, changed = (judged_trace(head, log, draft_change=change).columns for change in (None, NO_TEMPERATURE))
    (request,) = log.requests
    ids = torch.tensor(request.prompt), torch.tensor(request.output)
    for columns, sampling in ((plain, STATED), (changed, Sampling())):
        measured = teacher_forced(head, *ids, sampling, race=False, depth=K)["start_log_draft"]
        np.testing.assert_allclose(columns["start_log_draft"], measured, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(plain["log_target"], changed["log_target"])


@pytest.mark.evidence
def test_drafts_without_the_temperature_are_named() -> None:
    """The pair is read again at every start. The control: drafts at the temperature are right.

    The fault is planted in the built-in head: its logits times the temperature, which sampling divides by.
    """
    pair = load_pair(resolve("builtin:target"), resolve("builtin:dflash"), device="cpu")
    right = log_of(pair, STATED, prompts=4, tokens=60)
    again = partial(judged_trace, pair, right)
    assert not judge(right, again(), rules=["token"], reread=again).refuted
    head: Any = pair.draft.network
    head.lm_head.weight = head.lm_head.weight * STATED.temperature
    wrong = log_of(pair, STATED, prompts=4, tokens=60)
    head.lm_head.weight = head.lm_head.weight / STATED.temperature
    again = partial(judged_trace, pair, wrong)
    answered = judge(wrong, again(), rules=["token"], reread=again)
    assert (answered.refuted, answered.output_refuted) == (True, False)
    (cause,) = (cause for cause in answered.causes if cause.cause == "draft settings")
    assert isinstance(cause.evidence, dict)
    assert cause.evidence["change"] == "no temperature"


def test_calls_that_the_head_cannot_draft_are_refused(tiny_pair: ModelPair) -> None:
    pair = with_head(tiny_pair, ToyParallelHead, deepest=2)
    log = CallLog((Request("a", (1, 2, 3), (4, 5), calls=1),), "toy", "1", k=3, temperature=1.0)
    with pytest.raises(SettingError, match="the log has calls of 3 drafts: the head 'toy head' drafts at most 2"):
        judged_trace(pair, log)


def test_the_command_reads_a_head_as_deep_as_calls_are(
    tiny_pair: ModelPair, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log does not say k."""
    pair = with_head(tiny_pair, ToyParallelHead)
    monkeypatch.setattr(loading, "load_named", lambda _: pair)
    replace(log_of(pair, WARM), k=None).write(tmp_path / "calls.jsonl")
    content = answer(capsys, "judge", tmp_path / "calls.jsonl", "--rule", "token", "--k", K)
    assert (content["refuted"], content["k"]) == (False, K)
