"""The trace of an engine's outputs: its columns against brute force in numpy, changed settings, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.errors import SettingError, TextError
from spectheory.judging.changes import (
    DRAFT_CUTS,
    FILTERS_FIRST,
    FILTERS_TWICE,
    NO_FILTERS,
    NO_SETTINGS,
    NO_TEMPERATURE,
    SETTINGS_CHANGES,
    TEMPERATURE_TWICE,
    LogitChange,
    _cut_to,
)
from spectheory.judging.judgement import judge
from spectheory.judging.output import POSSIBLE, output_tests
from spectheory.measure import ModelPair, position_statistics, sample_continuations, teacher_forced
from spectheory.measure.judged import CUT_SLACK, judged_trace
from spectheory.reports import judgement_report
from spectheory.trace import IMPOSSIBLE, JUDGED, READ, Trace
from spectheory.trace.calls import CallLog, Request
from tests.conftest import VOCABULARY, WINDOW
from tests.made_up import all_refused, each

Floats = NDArray[np.float64]

SINGLE = 3e-6
"""Sums of float32 probabilities over 64 tokens are exact to about 1e-6."""
FILTERS = (Sampling(), Sampling(0.7, top_k=9), Sampling(1.3, top_p=0.8), Sampling(0.9, min_p=0.05))


def tied_logits(rows: int, seed: int) -> Floats:
    """Random logits ``[rows, V]`` on a coarse grid, so that many are equal; float32 holds them exactly."""
    return np.round(np.random.default_rng(seed).normal(0, 3, (rows, VOCABULARY)) * 4) / 4


def by_brute_force(logits: Floats, other: Floats, token: int, sampling: Sampling) -> dict[str, float]:
    """The columns of one position, token by token."""
    p = np.exp(sampling.log_pmf(logits))
    order = sorted(logits, reverse=True)
    return {
        "target_above": sum(p[y] for y in range(len(p)) if p[y] > 0 and logits[y] > logits[token]),
        "target_tied": sum(p[y] for y in range(len(p)) if logits[y] == logits[token]),
        "target_top": max(p),
        "target_gap": order[0] - logits[token],
        "target_margin": order[0] - order[1],
        "target_scale": max(abs(x) for x in logits),
        "draft_gap": max(other) - other[token],
        "draft_margin": np.diff(np.sort(other)[-2:])[0],
        "draft_scale": max(abs(x) for x in other),
    }


@each("sampling, seed", [(sampling, seed) for seed, sampling in enumerate(FILTERS)])
def test_columns_equal_brute_force(sampling: Sampling, seed: int) -> None:
    logits, other = tied_logits(200, seed), tied_logits(200, seed + 50)
    possible = np.isfinite(sampling.log_pmf(logits))
    tokens = np.array([np.random.default_rng(n).choice(np.flatnonzero(row)) for n, row in enumerate(possible)])
    statistics = position_statistics(
        *(torch.tensor(x, dtype=torch.float32) for x in (logits, other)),
        torch.tensor(tokens),
        sampling,
        race=False,
        judged=True,
    )
    assert set(JUDGED) <= set(statistics)
    for name in JUDGED:
        expected = [by_brute_force(*row, sampling)[name] for row in zip(logits, other, tokens, strict=True)]
        np.testing.assert_allclose(statistics[name].numpy(), expected, rtol=0, atol=SINGLE, err_msg=name)


def test_a_second_logit_may_be_missing() -> None:
    """One token alone, or one that is finite: the margin is infinite."""
    for logits in (torch.zeros(1, 1), torch.tensor([[-math.inf, 2.0]])):
        token = torch.tensor([logits.shape[1] - 1])
        statistics = position_statistics(logits, logits, token, Sampling(), race=False, judged=True)
        assert statistics["target_margin"].item() == math.inf
        assert (statistics["target_gap"].item(), statistics["target_above"].item()) == (0, 0)


# Whole logs


def log_of(pair: ModelPair, sampling: Sampling, *, texts: int = 3, tokens: int = 12) -> CallLog:
    """Outputs that the target itself sampled."""
    requests = []
    for i in range(texts):
        prompt, rng = torch.tensor([1 + i, 2, 3]), np.random.default_rng(i)
        (text,) = sample_continuations(pair, prompt, sampling, tokens=tokens, count=1, rng=rng)
        requests.append(Request(f"r{i}", tuple(prompt.tolist()), tuple(text.tolist()), ended=len(text) < tokens))
    return CallLog(tuple(requests), "toy", "1", temperature=sampling.temperature, **_filters(sampling))


def _filters(sampling: Sampling) -> dict[str, Any]:
    return {name: getattr(sampling, name) for name in ("top_k", "top_p", "min_p")}


@each("sampling", FILTERS)
def test_shared_columns_are_those_of_a_measurement(sampling: Sampling, tiny_pair: ModelPair) -> None:
    log = log_of(tiny_pair, sampling)
    trace = judged_trace(tiny_pair, log, chunk=5)
    assert [(t.id, t.tokens, t.ended) for t in trace.texts] == [(r.id, len(r.output), r.ended) for r in log.requests]
    assert [text.prompt_tokens for text in trace.texts] == [len(request.prompt) for request in log.requests]
    assert trace.sampling == sampling
    first = log.requests[0]
    ids = (torch.tensor(first.prompt), torch.tensor(first.output))
    measured = teacher_forced(tiny_pair, *ids, sampling, race=False, sampled=True)
    assert set(trace.columns) == set(measured) | set(JUDGED)
    for name, values in measured.items():  # the chunks differ: sums round in another order
        np.testing.assert_allclose(trace.columns[name][: len(values)], values, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.evidence
def test_sampled_output_is_right_at_its_own_temperature_alone(tiny_pair: ModelPair) -> None:
    """Texts of a real network sampled at 0.7; the tests' false-alarm rates add up to less than 1e-3."""
    log = log_of(tiny_pair, Sampling(0.7), texts=16, tokens=64)
    for stated, refuted in ((0.7, False), (1.0, True), (0.5, True)):
        tests = output_tests(judged_trace(tiny_pair, replace(log, temperature=stated)))
        assert len(tests) == 6
        assert any(test.refuted for test in tests) == refuted, stated


def test_temperature_0_is_read_at_temperature_1(tiny_pair: ModelPair) -> None:
    """Tokens that are not the first choice have a gap in place of an error, and provenance says what was read."""
    log = log_of(tiny_pair, Sampling(0.0))
    trace = judged_trace(tiny_pair, replace(log, top_p=0.5))
    assert trace.provenance[READ] == "temperature 1"
    assert trace.sampling == Sampling()
    assert (trace.columns["target_gap"] == 0).all()
    assert (trace.columns["target_rank"] == 1).all()
    changed = replace(log.requests[0], output=(*log.requests[0].output[:-1], 5))
    assert judged_trace(tiny_pair, replace(log, requests=(changed,))).columns["target_gap"][-1] > 0


# Changed settings


def draft_pmfs(pair: ModelPair, log: CallLog) -> Floats:
    """Raw logits of the draft at every output token of the log's first request."""
    first = log.requests[0]
    with torch.inference_mode():
        logits = pair.draft.network(torch.tensor([first.prompt + first.output])).logits[0]
    return logits[len(first.prompt) - 1 : -1].double().numpy()


def applied(logits: Floats, *steps: Sampling) -> Floats:
    for sampling in steps:
        logits = sampling.log_pmf(logits)
    return logits


STATED = Sampling(0.6, top_k=20, top_p=0.9)
OTHER_WAYS: dict[LogitChange, tuple[Sampling, ...]] = {
    _cut_to(4): (Sampling(0.6, top_k=4, top_p=0.9),),
    NO_TEMPERATURE: (Sampling(1.0, top_k=20, top_p=0.9),),
    TEMPERATURE_TWICE: (Sampling(0.36, top_k=20, top_p=0.9),),
    NO_FILTERS: (Sampling(0.6),),
    NO_SETTINGS: (Sampling(),),
    FILTERS_FIRST: (Sampling(1.0, top_k=20, top_p=0.9), Sampling(0.6)),
    FILTERS_TWICE: (STATED, Sampling(1.0, top_k=20, top_p=0.9)),
}


@each("change, steps", OTHER_WAYS.items())
def test_changes_of_the_draft_equal_settings_applied_one_by_one(
    change: LogitChange, steps: tuple[Sampling, ...], tiny_pair: ModelPair
) -> None:
    log = log_of(tiny_pair, STATED, texts=1, tokens=20)
    trace, plain = judged_trace(tiny_pair, log, draft_change=change), judged_trace(tiny_pair, log)
    tokens = np.array(log.requests[0].output)
    expected = applied(draft_pmfs(tiny_pair, log), *steps)[np.arange(len(tokens)), tokens]
    np.testing.assert_allclose(trace.columns["log_draft"], expected, rtol=1e-4, atol=1e-4)
    # A draft without cuts is computed over the whole vocabulary in single precision, the others on their supports.
    np.testing.assert_allclose(trace.columns["log_target"], plain.columns["log_target"], rtol=1e-6)
    assert change.differs(STATED)
    assert trace.provenance["changes"] == {"draft": change.says}
    assert plain.provenance["changes"] == {}


def test_a_change_of_the_target_leaves_the_draft(tiny_pair: ModelPair) -> None:
    log = log_of(tiny_pair, Sampling(0.6))
    plain, changed = judged_trace(tiny_pair, log), judged_trace(tiny_pair, log, target_change=NO_TEMPERATURE)
    np.testing.assert_array_equal(changed.columns["log_draft"], plain.columns["log_draft"])
    np.testing.assert_allclose(
        changed.columns["log_target"], judged_trace(tiny_pair, replace(log, temperature=1.0)).columns["log_target"]
    )


def test_changes_without_effect_are_known() -> None:
    """A reading that cannot differ is not tried: at temperature 1 without filters nothing but a cut can."""
    assert not any(change.differs(Sampling()) for change in SETTINGS_CHANGES)
    assert all(change.differs(Sampling()) for change in DRAFT_CUTS)
    assert not any(change.differs(Sampling(0.0, top_p=0.5)) for change in (*SETTINGS_CHANGES, *DRAFT_CUTS))
    by_rank = Sampling(0.5, top_k=10)
    assert not FILTERS_FIRST.differs(by_rank)
    assert not FILTERS_TWICE.differs(by_rank)
    logits = np.random.default_rng(1).normal(0, 3, (50, 40))
    for stated in (by_rank, Sampling(1.0, top_p=0.7), Sampling(0.5, min_p=0.1)):
        if not FILTERS_TWICE.differs(stated):
            twice = applied(logits, stated, replace(stated, temperature=1.0))
            np.testing.assert_allclose(twice, stated.log_pmf(logits), atol=1e-12)
        if not FILTERS_FIRST.differs(stated):
            first = applied(logits, replace(stated, temperature=1.0), Sampling(stated.temperature))
            np.testing.assert_allclose(first, stated.log_pmf(logits), atol=1e-12)


# What is refused, and what is not


def test_a_token_just_outside_a_cut_is_admitted_and_one_far_outside_refused(tiny_pair: ModelPair) -> None:
    """Engines round: the token next to a top-k cut may be output, a much less probable one may not."""
    log = log_of(tiny_pair, Sampling(1.0), texts=1)
    ranks = judged_trace(tiny_pair, log).columns["target_rank"]
    deepest = int(ranks.max())
    assert deepest > 3, "the text has no improbable token"
    near = judged_trace(tiny_pair, replace(log, top_k=deepest - 1))
    assert np.isfinite(near.columns["log_target"]).all()
    assert IMPOSSIBLE not in near.provenance
    far = judged_trace(tiny_pair, replace(log, top_k=deepest - 2))
    at = int(ranks.argmax())
    assert far.provenance[IMPOSSIBLE][0] == f"text 'r0', token {at + 1} (id {log.requests[0].output[at]})"
    (test,) = output_tests(far)
    assert (test.name, test.statistic, test.p, test.refuted) == (POSSIBLE, len(far.provenance[IMPOSSIBLE]), 0, True)
    assert 0 < CUT_SLACK < 0.1


@pytest.mark.evidence
def test_filters_before_the_temperature_are_found(tiny_pair: ModelPair) -> None:
    """An engine that cuts the target's raw logits: tokens that the stated settings exclude, and the cause by name.

    Accepted drafts are drawn by the law of token verification given the text. Negative control: texts at the stated
    settings are right.
    """
    stated, rng = Sampling(0.6, top_p=0.7), np.random.default_rng(5)
    faulty = _engine(tiny_pair, stated, (Sampling(1.0, top_p=0.7), Sampling(0.6)), rng)
    trace = judged_trace(tiny_pair, faulty)
    assert trace.provenance[IMPOSSIBLE]
    judgement = judge(faulty, trace, reread=partial(judged_trace, tiny_pair, faulty))
    assert judgement.output_refuted
    assert "Output: WRONG, impossible under these settings" in judgement_report(judgement).headline
    cause = next(cause for cause in judgement.causes if cause.cause == "target settings")
    assert cause.evidence["change"] == FILTERS_FIRST.name
    right = _engine(tiny_pair, stated, (stated,), rng)
    assert not judge(right, judged_trace(tiny_pair, right)).output_refuted


def _engine(pair: ModelPair, stated: Sampling, steps: tuple[Sampling, ...], rng: np.random.Generator) -> CallLog:
    """Texts of a target sampled by these steps, and calls of one draft each at the stated settings."""
    ids = torch.tensor([[1 + start, 2, 3] for start in range(12)])
    for _ in range(48):
        with torch.inference_mode():
            logits = pair.target.network(ids).logits[:, -1].double().numpy()[:, :VOCABULARY]
        tokens = [int(rng.choice(VOCABULARY, p=pmf)) for pmf in np.exp(applied(logits, *steps))]
        ids = torch.cat([ids, torch.tensor(tokens)[:, None]], dim=1)
    texts = [Request(f"r{start}", tuple(row[:3]), tuple(row[3:])) for start, row in enumerate(ids.tolist())]
    log = CallLog(tuple(texts), "toy", "1", 1, stated.temperature, **_filters(stated))
    change = FILTERS_FIRST if len(steps) > 1 else None
    columns = judged_trace(pair, log, target_change=change).columns
    accepted = np.exp(np.minimum(0, columns["log_draft"] - columns["log_target"])).reshape(len(texts), -1)
    requests = (replace(text, **_calls(row, rng)) for text, row in zip(texts, accepted, strict=True))
    return replace(log, requests=tuple(requests))


def _calls(accepted: Floats, rng: np.random.Generator) -> dict[str, Any]:
    """Calls of one draft; the prompt's pass emits the first token, and the last call has no room for a draft."""
    calls, n = list[tuple[int, int]](), 1
    while n < len(accepted):
        drafted = int(n < len(accepted) - 1)
        calls.append((int(drafted and rng.random() < accepted[n]), drafted))
        n += 1 + calls[-1][0]
    return {"accepted": tuple(a for a, _ in calls), "drafted": tuple(d for _, d in calls)}


def test_logs_that_cannot_be_read_are_refused(tiny_pair: ModelPair) -> None:
    log = log_of(tiny_pair, Sampling(), texts=2)
    one, two = log.requests

    def read(*requests: Request, **changes: Any) -> Any:
        return lambda: judged_trace(tiny_pair, replace(log, requests=requests, **changes))

    all_refused(
        {
            "no request": (read(), TextError, "the log has no request"),
            "no temperature": (read(one, temperature=None), SettingError, "does not say its temperature"),
            "no prompt": (read(replace(one, prompt=())), TextError, "request 'r0' has no ids of its prompt"),
            "no output": (
                read(one, replace(two, output=(), tokens=4)),
                TextError,
                "request 'r1' has no ids of its output",
            ),
            "unknown id": (
                read(replace(one, output=(3, VOCABULARY), tokens=2)),
                TextError,
                f"request 'r0', token 2 of its output has id {VOCABULARY}: the pair has ids 0..{VOCABULARY - 1}",
            ),
            "negative id": (read(replace(one, prompt=(-1,))), TextError, "token 1 of its prompt has id -1"),
            "too long": (read(replace(one, prompt=(1,) * WINDOW)), TextError, f"the models take {WINDOW}"),
        }
    )()


def test_a_written_trace_keeps_the_columns(tiny_pair: ModelPair, tmp_path: Any) -> None:
    trace = judged_trace(tiny_pair, log_of(tiny_pair, Sampling(0.8)))
    trace.write(tmp_path / "trace.parquet")
    read = Trace.read(tmp_path)
    for name in JUDGED:
        np.testing.assert_array_equal(read.columns[name], trace.columns[name])
