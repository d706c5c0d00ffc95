"""The captures of real engines, judged with the built-in pair that they ran: calls, output and log-probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from spectheory.judging.judgement import Judgement, judge
from spectheory.judging.output import output_tests
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.judged import judged_trace
from spectheory.pairs import resolve
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.reading import read_evidence
from spectheory.trace.samples import SAMPLES
from spectheory.trace.scores import Scores
from tests.made_up import each

HALF = 2.0**-7
"""This server ran in float16, in which numbers from 8 to 16, as logits are, lie 2**-7 apart."""


@pytest.fixture(scope="module")
def pair() -> ModelPair:
    return load_pair(resolve("builtin:target"), resolve("builtin:distilled"), device="cpu")


def judged(pair: ModelPair, name: str, entry: int | None) -> Judgement:
    log = read_evidence(SAMPLES / (f"{name}.json" if entry is None else f"{name}_T{entry}.json"))
    assert isinstance(log, CallLog)
    return judge(log, judged_trace(pair, log))


@each("name", ["onnxruntime_genai_stats", "openvino_extended_perf_metrics"])
def test_calls_at_temperature_zero_are_the_expected_ones(name: str, pair: ModelPair) -> None:
    answer = judged(pair, name, 0)
    (greedy,) = answer.standings
    assert greedy.calls.low <= greedy.calls.counted <= greedy.calls.high
    assert not answer.refuted
    assert not answer.output_refuted


@each(
    "name, entry",
    [("vllm_request_per_step_T1", None), ("onnxruntime_genai_stats", 1), ("openvino_extended_perf_metrics", 1)],
)
def test_one_text_at_temperature_one_refutes_drafts_of_another_kind(
    name: str, entry: int | None, pair: ModelPair
) -> None:
    """A hundred tokens tell sampled drafts from first choices and from independent ones, not token from block."""
    answer = judged(pair, name, entry)
    stands = {one.rule: not one.refuted for one in answer.standings}
    assert {rule: stands[rule] for rule in ("token", "block", "independent", "argmax")} == {
        "token": True,
        "block": True,
        "independent": False,
        "argmax": False,
    }


def scored(name: str, pair: ModelPair, temperature: float) -> tuple[Scores, Trace]:
    """A capture of vLLM's log-probabilities, and the pair's own of the same text."""
    scores = read_evidence(SAMPLES / f"{name}.json")
    assert isinstance(scores, Scores)
    (text,) = scores.texts
    ids = tuple(token for token in text.tokens if token is not None)
    request = Request("a", ids[: text.prompt], ids[text.prompt :], ended=text.ended)
    return scores, judged_trace(pair, CallLog((request,), temperature=temperature))


@each("name", ["vllm_completion_T0_logprobs", "vllm_completion_T1_logprobs"])
def test_log_probabilities_of_the_server_are_those_of_the_target(name: str, pair: ModelPair) -> None:
    """They are raw: of temperature 1 whatever the setting. Those of the draft are others (control)."""
    scores, trace = scored(name, pair, 1.0)
    theirs = Scores.join([scores, scores]).columns["log_target"]
    np.testing.assert_allclose(theirs, trace.columns["log_target"], atol=HALF, rtol=0)
    assert np.abs(theirs - trace.columns["log_draft"]).max() > 10 * HALF


def test_sampled_output_of_the_build_as_shipped_is_refuted(pair: ModelPair) -> None:
    """Fifteen tokens are enough: their surprisal is far above the target's entropy."""
    _, trace = scored("vllm_completion_T1_logprobs", pair, 1.0)
    assert any(test.refuted for test in output_tests(trace))
    _, greedy = scored("vllm_completion_T0_logprobs", pair, 1.0)
    assert (greedy.columns["target_rank"] == 1).all()
