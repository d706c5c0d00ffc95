"""Every capture of a real engine is read, and its numbers fit together: tokens = prompt's own + calls + accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spectheory.errors import SpectheoryError
from spectheory.trace import Trace, read_any
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.reading import read_evidence
from spectheory.trace.samples import SAMPLES
from spectheory.trace.scores import Scores
from tests.made_up import one_line

RUNS = ("onnxruntime_genai_stats", "openvino_extended_perf_metrics")
"""Captures at temperatures 0 and 1, a file each."""


def raw(name: str) -> Any:
    return json.loads((SAMPLES / f"{name}.json").read_text())


def log_of(path: Path) -> CallLog:
    evidence = read_evidence(path)
    assert isinstance(evidence, CallLog)
    return evidence


def captured(name: str, folder: Path, entry: int | None = None) -> tuple[CallLog, Request, Any]:
    """The log of a capture (of one of its entries), its request, and what the file holds."""
    content = raw(name) if entry is None else raw(f"{name}_T{entry}")[0]
    (folder / "log").write_text(json.dumps(content))
    log = log_of(folder / "log")
    (request,) = log.requests
    return log, request, content


def past_end(log: CallLog, request: Request) -> int:
    """Tokens that the counts hold beyond the text."""
    assert request.calls is not None
    assert request.total_accepted is not None
    return bool(log.prefill_emits_token) + request.calls + request.total_accepted - len(request.output)


def test_vllm_per_request(tmp_path: Path) -> None:
    log, request, content = captured("vllm_request_per_step_T1", tmp_path)
    assert (log.engine, log.k, log.temperature, len(request.prompt)) == ("vllm", 3, 1.0, 92)
    assert past_end(log, request) == 0
    survival = [sum(a >= i for a in request.accepted) for i in (1, 2, 3)]
    assert survival == content["per_pos"]
    assert request.by_drafted == {3: tuple(request.accepted.count(a) for a in range(4))}
    assert not request.ended


@pytest.mark.parametrize("entry", [0, 1])
def test_onnxruntime(entry: int, tmp_path: Path) -> None:
    log, request, content = captured("onnxruntime_genai_stats", tmp_path, entry)
    assert (log.k, log.temperature, log.prefill_emits_token) == (3, content["T"], False)
    assert past_end(log, request) == content["stats"]["tokens_discarded"] == 1
    outcomes = (content["stats"][f"{name}_accept_rounds"] for name in ("full", "partial", "zero"))
    assert request.calls == sum(outcomes) + content["stats"]["interrupted_rounds"]


@pytest.mark.parametrize("entry", [0, 1])
def test_openvino(entry: int, tmp_path: Path) -> None:
    """Its own counts leave the last call out; its tokens per pass are the text's at temperature 0 alone."""
    log, request, content = captured("openvino_extended_perf_metrics", tmp_path, entry)
    stats, sizes = content["stats"], content["main_raw"]["m_batch_sizes"]
    assert (log.k, log.temperature) == (3, content["T"])
    assert past_end(log, request) == 0
    assert request.calls == len(sizes) - 1 == stats["get_num_draft_tokens"] // 3 + 1
    assert request.total_accepted is not None
    assert 0 <= request.total_accepted - stats["get_num_accepted_tokens"] <= 3
    assert (sum(sizes) == len(request.output)) == (entry == 0) == bool(request.accepted)
    if request.accepted:
        assert sum(request.accepted[:-1]) == stats["get_num_accepted_tokens"]


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_two_temperatures_are_not_one_log(name: str, tmp_path: Path) -> None:
    (tmp_path / "both").write_text(json.dumps([raw(f"{name}_T{t}")[0] for t in (0, 1)]))
    with pytest.raises(SpectheoryError) as caught:
        read_evidence(tmp_path / "both")
    assert "entry 2 was sampled with {'temperature': 1.0}, others with {'temperature': 0.0}" in one_line(caught)


@pytest.mark.parametrize(("name", "temperature"), [("llama_v1_completions", None), ("llama_completion_n_probs", 1.0)])
def test_llama(name: str, temperature: float | None, tmp_path: Path) -> None:
    """Tokens of calls have log-probability 0, so all but the first; filters that are no samplers are not applied."""
    log, request, content = captured(name, tmp_path)
    assert (log.engine, log.temperature, log.top_k, log.min_p) == ("llama.cpp", temperature, None, None)
    assert past_end(log, request) == 0
    assert request.total_accepted == content["timings"]["draft_n_accepted"]
    assert request.calls is not None
    assert 0 <= 3 * request.calls - content["timings"]["draft_n"] <= 3  # three drafts a call, fewer in the last
    with pytest.raises(SpectheoryError) as caught:
        read_evidence(SAMPLES / f"{name}.json", "llama.cpp-logprobs" if temperature else "openai-logprobs")
    assert "llama.cpp writes 0 for every token of a call with drafts" in one_line(caught)
    values = content.get("completion_probabilities") or content["choices"][0]["logprobs"]["content"]
    assert [i for i, each in enumerate(values) if each["logprob"] != 0] == [0]


@pytest.mark.parametrize(("name", "output"), [("vllm_completion_T0_logprobs", 64), ("vllm_completion_T1_logprobs", 15)])
def test_vllm_completions_hold_the_target_on_its_own_text(name: str, output: int) -> None:
    """Joined with itself as a draft every token is accepted: one call of k + 1 tokens after the other."""
    path = SAMPLES / f"{name}.json"
    scores = read_evidence(path)
    assert isinstance(scores, Scores)
    (text,) = scores.texts
    (choice,) = raw(name)["choices"]
    assert text.tokens == (*choice["prompt_token_ids"], *choice["token_ids"])
    assert (text.prompt, text.first, len(text) - text.first) == (92, 92, output)
    assert list(text.log_probs[92:]) == choice["logprobs"]["token_logprobs"]
    trace = Scores.join([scores, scores])
    assert isinstance(trace, Trace)
    assert trace.columns["token"].tolist() == choice["token_ids"]
    assert trace.texts[0].ended == (choice["finish_reason"] == "stop")
    with pytest.raises(SpectheoryError):
        read_any(path)
